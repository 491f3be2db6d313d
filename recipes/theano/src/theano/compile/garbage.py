"""Python's collector of cyclic garbage, while functions are compiled."""

from __future__ import annotations

import contextlib
import gc
import threading


class RareCollections(contextlib.ContextDecorator):
    """Collect cyclic garbage rarely, but not never, while anyone is inside.

    Compilation makes millions of small objects, and Python would walk those that live again and
    again. Waiting for more new ones saves most of that and still bounds the memory that garbage
    takes. When the last one leaves, the new objects become old ones without being walked, until
    that, too, has spared as many as may wait.

    The caller's own threshold comes back when the last one leaves: functions are compiled inside
    each other (Scan's) and in several threads.
    """

    # How many new objects may wait.
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
        # To unfreeze what the caller froze would undo it.
        elif gc.get_freeze_count() == 0:
            gc.freeze()
            gc.unfreeze()


rare_collections = RareCollections()
