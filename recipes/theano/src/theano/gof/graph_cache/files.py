"""The files that optimized graphs are kept in."""

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
from typing import TYPE_CHECKING

from theano import config
from theano.gof.destroyhandler import DestroyHandler
from theano.gof.fg import FunctionGraph
from theano.gof.graph_cache.claims import claims
from theano.gof.graph_cache.pickling import Pickler, Unpickler, make_graph
from theano.gof.module_files import CHECKSUM_SIZE, make_checksum
from theano.gof.utils import replace_file
from theano.misc import compiledirs, trust

if TYPE_CHECKING:
    from theano.gof.graph import Variable
    from theano.gof.graph_cache.describing import Describer

_logger = logging.getLogger("theano.gof.graph_cache")

# In the compiledir.
DIRECTORY = "optimized_graphs"
# In bytes, of all files.
MAX_TOTAL = 2**29


class Entry:
    """The place of one graph among those that are kept."""

    def __init__(self, name: str, described: Describer) -> None:
        """A place in the compiledir.

        Args:
            name: the hash of the graph's description.
            described: what described it.
        """
        self.path = Path(config.compiledir, DIRECTORY, name)
        self.seeds = [seed / DIRECTORY / name for seed in compiledirs.seeds()]
        self.described = described

    def load(self, inputs: Iterable[Variable]) -> FunctionGraph | None:
        """Return the optimized graph, or None if it is not kept yet.

        If another process makes it now, it is waited for, and for its modules.

        Args:
            inputs: what the function's graph computes from; clones of them become the inputs of the
                optimized one.
        """
        for path in self.seeds:
            if fgraph := self._load(path, inputs):
                return fgraph
        claims.claim(self.path)
        if fgraph := self._load(self.path, inputs):
            find_modules()
        return fgraph

    def _load(self, path: Path, inputs: Iterable[Variable]) -> FunctionGraph | None:
        try:
            content = trust.read(path)
            # Those not loaded for long will be removed.
            with contextlib.suppress(OSError):
                os.utime(path)
            checksum, pickled = content[:CHECKSUM_SIZE], content[CHECKSUM_SIZE:]
            if checksum != make_checksum(pickled):
                raise ValueError("its checksum is another one")
            return self._make(zlib.decompress(pickled), inputs)
        except FileNotFoundError as error:
            _logger.debug("no graph: %s", error)
        except Exception as error:
            # What can go wrong with a file that is not ours is anyone's guess.
            _logger.debug("%s is passed over: %r", path, error)
        return None

    def _make(self, pickled: bytes, inputs: Iterable[Variable]) -> FunctionGraph:
        destroys, update_mapping, flat = Unpickler(io.BytesIO(pickled), self.described).load()
        inputs = [variable.clone() for variable in inputs]
        fgraph = FunctionGraph(
            inputs, make_graph(inputs, *flat), clone=False, update_mapping=update_mapping
        )
        if destroys:
            fgraph.attach_feature(DestroyHandler())
        return fgraph

    def store(self, fgraph: FunctionGraph) -> None:
        """Keep an optimized graph; if it cannot be written, that is logged."""
        stream = io.BytesIO()
        pickler = Pickler(stream, self.described)
        try:
            flat = pickler.flatten(fgraph.inputs, fgraph.outputs, fgraph.toposort())
            pickler.dump((hasattr(fgraph, "destroyers"), fgraph.update_mapping, flat))
            # A fifth of the bytes; a higher level makes few less.
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
            _logger.info("an optimized graph is not kept: %s", error)


# The compiledir's time of change when its modules were last looked for.
looked = 0


def find_modules() -> None:
    """Have this process know the modules that others compiled meanwhile."""
    global looked  # noqa: PLW0603 (as the cache of modules is one)
    # Late, for this is imported by it.
    from theano.gof import cmodule  # noqa: PLC0415

    changed = Path(config.compiledir).stat().st_mtime_ns
    if cmodule._module_cache is not None and changed != looked:
        cmodule._module_cache.refresh(cleanup=False)
    looked = changed


def remove_old(compiledir: str | Path, age: float) -> None:
    """Remove the graphs that nobody loaded or stored for `age` seconds.

    Of the others, the oldest go that are more than MAX_TOTAL bytes together.
    """
    files = []
    try:
        for entry in os.scandir(Path(compiledir, DIRECTORY)):
            status = entry.stat()
            files.append((status.st_mtime, status.st_size, entry.path))
    except OSError as error:
        # There is none, or another process removes them.
        _logger.debug("no graphs: %s", error)
    total = 0
    for mtime, size, path in sorted(files, reverse=True):
        total += size
        if total > MAX_TOTAL or time.time() - mtime > age:
            with contextlib.suppress(OSError):
                Path(path).unlink()
