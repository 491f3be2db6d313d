"""A logging handler that records the optimizers that Theano says have failed.

By default Theano logs such a failure, leaves the optimizer out and goes on: the results are right,
and calls take longer. It runs on CPython 3.9 too, without pytest.
"""

from __future__ import annotations

import logging
import re
import sys

LOGGER = logging.getLogger("theano.gof.opt")
# The records that name an optimizer; others follow with the node and the traceback.
NAMING = ("SeqOptimizer apply ", "Optimization failure due to: ", "EquilibriumOptimizer max'ed out")
# Addresses in representations differ from process to process.
ADDRESS = re.compile(r" object at 0x\w+")


class LoggedFailures(logging.Handler):
    """Records failed optimizers inside a with statement.

    Attributes:
        lines: for each failure, Theano's words for the optimizer, and the first line of its error.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Note the failure that a record names."""
        message = record.getMessage()
        if not message.startswith(NAMING):
            return
        line = ADDRESS.sub("", message.partition("\n")[0])
        # Theano logs inside the except clause.
        error = sys.exc_info()[1]
        if error is not None:
            line += f" raised {type(error).__name__}: {error}".partition("\n")[0]
        self.lines.append(line)

    def __enter__(self) -> LoggedFailures:
        LOGGER.addHandler(self)
        return self

    def __exit__(self, *exc_info: object) -> None:
        LOGGER.removeHandler(self)


def optimizer(line: str) -> str:
    """Return the part of a line that names the optimizer: errors' texts differ with NumPy."""
    return line.partition(" raised ")[0]
