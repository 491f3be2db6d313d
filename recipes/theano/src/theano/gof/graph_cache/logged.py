"""What optimization logs."""

from __future__ import annotations

import logging
from typing import Self


class Warnings(logging.Handler):
    """Counts what Theano logs as a warning or worse, inside of a with statement."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.count = 0

    def emit(self, record: logging.LogRecord) -> None:
        """Count a record."""
        self.count += 1

    def __enter__(self) -> Self:
        logging.getLogger("theano").addHandler(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        logging.getLogger("theano").removeHandler(self)
