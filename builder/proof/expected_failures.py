"""What is expected of Theano's own tests, read from recipes/theano/conformance.toml."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from builder.common.errors import ConfigurationError
from builder.proof.pytest_results import Key, Outcome, Results

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


@dataclass(frozen=True)
class Configuration:
    """Flags that files run under, named by patterns, where tests compute on a device.

    That is ``cpu``, ``opencl``, which is the CPU of a stack for GPUs, or ``cuda``.
    """

    device: str
    flags: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """Tests that are expected to fail for one reason.

    ``stock`` says that they fail on stock Theano too; else the test itself is at fault.
    """

    tests: tuple[str, ...]
    configurations: tuple[str, ...]
    reason: str
    evidence: str
    stock: bool


@dataclass(frozen=True)
class Expectations:
    """The table: how tests are run, how long a file's take, and which fail."""

    configurations: Mapping[str, Configuration]
    quick_seconds: int
    seconds: Mapping[str, int]
    failures: tuple[Failure, ...]

    def on(self, device: str) -> Expectations:
        """The table with the configurations for a device."""
        chosen = {name: row for name, row in self.configurations.items() if row.device == device}
        return replace(self, configurations=chosen)

    def step(self, file: str) -> int:
        """``--suite=quick`` runs every how many-th test of a file.

        So many that they take about ``quick_seconds``; a file whose time is not listed is fast.
        """
        return max(1, math.ceil(self.seconds.get(file, 0) / self.quick_seconds))


Row = TypeVar("Row", Configuration, Failure)


def load(file: Path) -> Expectations:
    """Read the table.

    Raises:
        ConfigurationError: an unknown or missing key, or a configuration that does not exist.
    """
    table = tomllib.loads(file.read_text(encoding="utf-8"))
    if set(table) != {field.name for field in fields(Expectations)}:
        known = ", ".join(field.name for field in fields(Expectations))
        raise ConfigurationError(f"{file}: expected the keys {known}")
    found = Expectations(
        configurations={
            name: _row(file, Configuration, row) for name, row in table["configurations"].items()
        },
        quick_seconds=table["quick_seconds"],
        seconds=table["seconds"],
        failures=tuple(_row(file, Failure, row) for row in table["failures"]),
    )
    for failure in found.failures:
        if unknown := set(failure.configurations) - set(found.configurations):
            raise ConfigurationError(f"{file}: no configuration is called {', '.join(unknown)}")
    return found


def _row(file: Path, kind: type[Row], row: dict[str, Any]) -> Row:
    names = [field.name for field in fields(kind)]
    if set(row) != set(names):
        raise ConfigurationError(
            f"{file}: {row}: expected the keys {', '.join(names)}, each of them once"
        )
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return kind(**values)


def listed(failures: Iterable[Failure]) -> dict[Key, Failure]:
    """The expected failures by configuration and test."""
    return {
        (configuration, test): failure
        for failure in failures
        for configuration in failure.configurations
        for test in failure.tests
    }


def complaints(
    failures: Iterable[Failure], results: Results, reference: Mapping[Key, Outcome]
) -> list[str]:
    """Where tests did not end as listed, a line each; none if all did.

    Args:
        failures: those expected.
        results: of the tests that ran.
        reference: outcomes on stock Theano, as far as they are known.
    """
    expected = listed(failures)
    found = [
        f"{configuration}: {test}: failed: {outcome.reason}"
        for (configuration, test), outcome in results.outcomes.items()
        if outcome.outcome == "failed" and (configuration, test) not in expected
    ]
    for (configuration, test), failure in expected.items():
        key = configuration, test
        outcome = results.outcomes.get(key)
        tests = results.collected.get((configuration, test.partition("::")[0]))
        stock = reference.get(key)
        if outcome and outcome.outcome == "passed":
            found.append(f"{configuration}: {test}: passed, but is listed: {failure.reason}")
        if outcome is None and tests is not None and test not in tests:
            found.append(f"{configuration}: {test}: is listed, but there is no such test")
        if failure.stock and stock and stock.outcome != "failed":
            found.append(f"{configuration}: {test}: stock = true, but it {stock.outcome} there")
    return found
