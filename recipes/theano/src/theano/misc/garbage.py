"""Thresholds of Python's garbage collector during imports and the compilation of functions."""

from __future__ import annotations

import contextlib
import gc
import threading


class RareCollections(contextlib.ContextDecorator):
    """Collect cyclic garbage rarely inside of the context.

    An import or a compilation makes many small objects that live long, and a full collection visits
    all of them. A higher threshold avoids most collections, and still bounds the memory of garbage.
    When the outermost context ends, the new objects move to the oldest generation without a
    collection. When more than `threshold` objects have moved, a full collection runs.

    Contexts can be nested, because a Scan compiles its inner function. Several threads can use
    them. The end of the outermost context restores the caller's thresholds.

    Attributes:
        threshold: the number of new objects after which a collection runs.
        lock: protects the other attributes.
        inside: the number of active contexts.
        spared: the number of objects that moved to the oldest generation since the last full
            collection.
        caller_thresholds: gc.get_threshold() before the outermost context.
    """

    threshold = 1000000

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.inside = 0
        self.spared = 0

    def __enter__(self) -> None:
        with self.lock:
            if self.inside == 0:
                self.caller_thresholds = gc.get_threshold()
                # 0 means that the caller switched the collector off.
                if self.caller_thresholds[0] > 0:
                    gc.set_threshold(
                        max(self.caller_thresholds[0], self.threshold), *self.caller_thresholds[1:]
                    )
            self.inside += 1

    def __exit__(self, *exc_info: object) -> None:
        with self.lock:
            self.inside -= 1
            if self.inside == 0:
                if self.caller_thresholds[0] > 0:
                    self.make_old()
                gc.set_threshold(*self.caller_thresholds)

    def make_old(self) -> None:
        """Move the new objects to Python's oldest generation, or run a full collection."""
        self.spared += gc.get_count()[0]
        if self.spared > self.threshold:
            gc.collect()
            self.spared = 0
        # Skip this if the caller has frozen objects, because gc.unfreeze would unfreeze them too.
        elif gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()


rare_collections = RareCollections()
