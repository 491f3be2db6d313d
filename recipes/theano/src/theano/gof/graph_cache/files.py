"""Files of the graph cache: read, write and remove optimized graphs."""

from __future__ import annotations

import contextlib
import io
import logging
import os
import pickle
import time
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from theano import config
from theano.gof.atomic_files import replace_file
from theano.gof.destroyhandler import DestroyHandler
from theano.gof.fg import FunctionGraph
from theano.gof.graph_cache.claims import claims
from theano.gof.graph_cache.pickling import Pickler, Unpickler
from theano.gof.module_files import CHECKSUM_SIZE, make_checksum
from theano.misc import compiledirs, trust

if TYPE_CHECKING:
    from theano.gof.graph import Variable
    from theano.gof.graph_cache.describing import Describer

_logger = logging.getLogger("theano.gof.graph_cache")

# The directory of the graph cache, relative to the compiledir.
DIRECTORY = "optimized_graphs"
# The limit of the total size of the files, in bytes.
MAX_TOTAL = 2**29


class WarningCounter(logging.Handler):
    """Count the warnings and errors that Theano logs in a context.

    Attributes:
        count: the number of warnings and errors.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count a warning or error."""
        self.count += 1

    def __enter__(self) -> Self:
        logging.getLogger("theano").addHandler(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        logging.getLogger("theano").removeHandler(self)


class Entry:
    """A cache entry: the file of one optimized graph. The file need not exist yet."""

    def __init__(self, name: str, describer: Describer) -> None:
        """Set the paths of the entry in the compiledir and in the seed caches; read nothing.

        Args:
            name: the cache key: the hash of the graph's description.
            describer: the Describer that described the graph.
        """
        self.path = Path(config.compiledir, DIRECTORY, name)
        self.seeds = [seed / DIRECTORY / name for seed in compiledirs.list_seeds()]
        self.describer = describer

    def load(self, inputs: Iterable[Variable]) -> FunctionGraph | None:
        """Read the optimized graph; return None if it is not cached.

        If another process is making the function, wait until it has optimized the graph and
        compiled the modules.

        Args:
            inputs: the inputs of the function's graph. The optimized graph gets clones of them as
                inputs.
        """
        for path in self.seeds:
            if fgraph := self._load(path, inputs):
                return fgraph
        claims.claim(self.path)
        if fgraph := self._load(self.path, inputs):
            refresh_module_cache()
        return fgraph

    def _load(self, path: Path, inputs: Iterable[Variable]) -> FunctionGraph | None:
        """Read the graph from a file; return None if the file is missing or damaged."""
        try:
            content = trust.read_trusted(path)
            # Record the time of last use, because the least recently used entries are removed.
            with contextlib.suppress(OSError):
                os.utime(path)
            checksum, pickled = content[:CHECKSUM_SIZE], content[CHECKSUM_SIZE:]
            if checksum != make_checksum(pickled):
                raise ValueError("the checksum is wrong")
            return self._make(zlib.decompress(pickled), inputs)
        except FileNotFoundError as error:
            _logger.debug("no graph: %s", error)
        except Exception as error:
            # Unpickling a damaged entry can raise any exception.
            _logger.debug("%s is ignored: %r", path, error)
        return None

    def _make(self, pickled: bytes, inputs: Iterable[Variable]) -> FunctionGraph:
        """Make the optimized graph, with clones of the inputs, from pickled bytes."""
        unpickler = Unpickler(io.BytesIO(pickled), self.describer)
        destroys, update_mapping, flat = unpickler.load()
        inputs = [variable.clone() for variable in inputs]
        fgraph = FunctionGraph(
            inputs,
            unpickler.make_graph(inputs, *flat),
            clone=False,
            update_mapping=update_mapping,
        )
        if destroys:
            fgraph.attach_feature(DestroyHandler())
        return fgraph

    def store(self, fgraph: FunctionGraph) -> None:
        """Write an optimized graph to the file; log an error instead of raising it."""
        stream = io.BytesIO()
        pickler = Pickler(stream, self.describer)
        try:
            flat = pickler.flatten(fgraph.inputs, fgraph.outputs, fgraph.toposort())
            pickler.dump((hasattr(fgraph, "destroyers"), fgraph.update_mapping, flat))
            # Level 1 compresses to a fifth of the size. Higher levels compress little more.
            pickled = zlib.compress(stream.getvalue(), 1)
            self.path.parent.mkdir(0o755, parents=True, exist_ok=True)
            replace_file(self.path, make_checksum(pickled) + pickled)
        except (
            AttributeError,
            OSError,
            RecursionError,
            TypeError,
            pickle.PicklingError,
        ) as error:
            _logger.info("an optimized graph is not cached: %s", error)


# The compiledir's modification time when the module cache was last refreshed, in nanoseconds.
refreshed_at = 0


def refresh_module_cache() -> None:
    """Refresh the module cache if other processes have added modules to the compiledir."""
    global refreshed_at  # noqa: PLW0603 (the module cache is global too)
    # Import it here, because cmodule imports this module.
    from theano.gof import cmodule  # noqa: PLC0415

    changed_at = Path(config.compiledir).stat().st_mtime_ns
    if cmodule._module_cache is not None and changed_at != refreshed_at:
        cmodule._module_cache.refresh(cleanup=False)
    refreshed_at = changed_at


def remove_old(compiledir: str | Path, age: float) -> None:
    """Remove the graphs that no process has loaded or stored for `age` seconds.

    Also remove the least recently used graphs, so that at most MAX_TOTAL bytes remain.
    """
    files = []
    try:
        for entry in os.scandir(Path(compiledir, DIRECTORY)):
            status = entry.stat()
            files.append((status.st_mtime, status.st_size, entry.path))
    except OSError as error:
        # There is no directory, or another process is removing files.
        _logger.debug("no graphs: %s", error)
    total = 0
    for mtime, size, path in sorted(files, reverse=True):
        total += size
        if total > MAX_TOTAL or time.time() - mtime > age:
            with contextlib.suppress(OSError):
                Path(path).unlink()
