"""Record the failed optimizers that Theano logs.

By default, if an optimizer fails, Theano logs the error and continues without the optimizer: the
results are right, but calls take longer. The module runs on CPython 3.9 too, without pytest.
"""

from __future__ import annotations

import logging
import re
import sys

LOGGER = logging.getLogger("theano.gof.opt")
# The first words of log records that name an optimizer. After such a record, Theano logs the node
# and the traceback in separate records.
OPTIMIZER_PREFIXES = (
    "SeqOptimizer apply ",
    "Optimization failure due to: ",
    "EquilibriumOptimizer max'ed out",
)
# Addresses in representations differ from process to process.
ADDRESS = re.compile(r" object at 0x\w+")


class LoggedFailures(logging.Handler):
    """A logging handler that records failed optimizers inside a with statement.

    Attributes:
        lines: for each failure, Theano's name of the optimizer and the first line of the error.
    """

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        """Record the failure, if the log record names an optimizer."""
        message = record.getMessage()
        # With on_opt_error=raise, Theano also raises the error, so the caller sees it.
        raises = sys.modules["theano"].config.on_opt_error == "raise"
        if raises or not message.startswith(OPTIMIZER_PREFIXES):
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


def get_optimizer_name(line: str) -> str:
    """Return a line without the error's text, which depends on the version of NumPy."""
    return line.partition(" raised ")[0]
