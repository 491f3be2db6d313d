"""Thresholds of Python's garbage collector during the compilation of functions."""

from __future__ import annotations

import contextlib
import gc
import threading


class RareCollections(contextlib.ContextDecorator):
    """Collect cyclic garbage rarely inside of the context.

    Compilation makes millions of small objects that live long, and each collection visits all of
    them. A higher threshold avoids most collections and still bounds the memory of garbage. When
    the outermost context ends, the new objects move to the oldest generation without a collection,
    up to `threshold` objects; then a full collection runs.

    Contexts are nested (a Scan compiles its inner function) and used in several threads. The end of
    the outermost context restores the caller's threshold.

    Attributes:
        threshold: the number of new objects after which a collection runs.
        inside: the number of contexts that are active.
        spared: the number of objects that moved to the oldest generation since the last collection.
    """

    threshold = 1000000

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.spared = 0

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.callers = gc.get_threshold()
                # 0 means that the caller switched the collector off.
                if self.callers[0] > 0:
                    gc.set_threshold(max(self.callers[0], self.threshold), *self.callers[1:])
            self.inside += 1

    def __exit__(self, *exc_info: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                if self.callers[0] > 0:
                    self.make_old()
                gc.set_threshold(*self.callers)

    def make_old(self) -> None:
        """Move the new objects to Python's oldest generation."""
        self.spared += gc.get_count()[0]
        if self.spared > self.threshold:
            gc.collect()
            self.spared = 0
        # gc.unfreeze would also unfreeze the caller's frozen objects.
        elif gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()


rare_collections = RareCollections()
