"""The flags for -march=native are kept, and found while nothing waits for them."""

from __future__ import annotations

import contextlib
import itertools
import json
import logging
import shutil
import threading
from pathlib import Path
from typing import Any

from theano import config
from theano.configdefaults import gcc_version_str
from theano.gof.utils import replace_file
from theano.misc import trust

_logger = logging.getLogger("theano.gof.cmodule")

# The file of the compiledir that holds the flags.
MARCH_FLAGS = "march_flags.json"

# The thread that finds them, once there is one.
detection: threading.Thread | None = None


def describe_compiler() -> list[Any]:
    """Return what the flags for -march=native depend on, g++ and the CPU, as JSON can hold it.

    Raises:
        OSError: there is no compiler, or no /proc/cpuinfo.
    """
    compiler = shutil.which(config.cxx)
    if compiler is None:
        raise FileNotFoundError(config.cxx)
    status = Path(compiler).stat()
    with Path("/proc/cpuinfo").open() as file:
        # A blank line ends the first processor.
        cpu = [" ".join(line.split()) for line in itertools.takewhile(str.strip, file)]
    changing = ("cpu MHz", "bogomips")
    return [
        config.cxx,
        gcc_version_str,
        status.st_size,
        status.st_mtime_ns,
        [line for line in cpu if not line.startswith(changing)],
    ]


def load() -> list[str] | None:
    """Return the flags for -march=native that this compiler gave on this CPU before, or None."""
    try:
        compiler, flags = json.loads(trust.read(Path(config.compiledir, MARCH_FLAGS)))
        return flags if compiler == describe_compiler() else None
    except (OSError, TypeError, ValueError):
        return None


def store(flags: list[str]) -> None:
    """Keep the flags for -march=native for other processes, or log why they are not kept."""
    try:
        replace_file(
            Path(config.compiledir, MARCH_FLAGS),
            json.dumps([describe_compiler(), flags]).encode(),
        )
    except (OSError, TypeError) as error:
        _logger.info("The flags for -march=native are not kept: %s", error)


def find_ahead(compiler: Any) -> None:
    """Begin to find the flags: four processes, half a second.

    Args:
        compiler: the class GCC_compiler.
    """
    global detection  # noqa: PLW0603 (as the flags are one, and everybody's)
    if config.cxx and detection is None and compiler.march_flags is None and load() is None:

        def detect() -> None:
            # Whoever needs the arguments gets the error.
            with contextlib.suppress(Exception):
                compiler.compile_args()

        detection = threading.Thread(target=detect)
        detection.start()


def wait() -> None:
    """Wait for the thread that finds the flags, if another one does."""
    if detection is not None and detection is not threading.current_thread():
        detection.join()
