"""Read the expected test failures from a conformance.toml, and find deviations from them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, TypeVar

from builder.common.errors import ConfigurationError
from builder.common.files import read_toml
from builder.proof.pytest_results import Key, Outcome, Results


@dataclass(frozen=True)
class Configuration:
    """Test files that run with the same Theano flags on the same device.

    Attributes:
        device: ``cpu``, ``opencl`` (PoCL on the CPU, in a stack for GPUs) or ``cuda``.
        flags: THEANO_FLAGS.
        files: patterns of the paths of test files, such as ``theano/*``.
    """

    device: str
    flags: str
    files: tuple[str, ...]


@dataclass(frozen=True)
class Failure:
    """Tests that are expected to fail for one reason.

    Attributes:
        tests: the ids of the tests.
        configurations: the names of the configurations in which the tests fail.
        reason: the reason of the failures.
        evidence: the proof of the reason.
        stock: whether the tests also fail on stock Theano. If not, the tests themselves are wrong,
            or the device lacks a feature.
    """

    tests: tuple[str, ...]
    configurations: tuple[str, ...]
    reason: str
    evidence: str
    stock: bool


@dataclass(frozen=True)
class Expectations:
    """The content of a conformance.toml.

    Attributes:
        configurations: the configurations by name.
        quick_seconds: the CPU seconds that ``--suite=quick`` spends on a file.
        seconds: the CPU seconds of all tests of a file, by path.
        failures: the expected failures.
    """

    configurations: Mapping[str, Configuration]
    quick_seconds: int
    seconds: Mapping[str, int]
    failures: tuple[Failure, ...]

    def select_device(self, device: str) -> Expectations:
        """Return the expectations with only the configurations for a device."""
        configurations = {
            name: row for name, row in self.configurations.items() if row.device == device
        }
        return replace(self, configurations=configurations)

    def compute_step(self, file: str) -> int:
        """Return the number n for which every n-th test of a file takes about ``quick_seconds``.

        ``--suite=quick`` runs these tests. If ``seconds`` does not contain the file, n is 1.
        """
        return max(1, math.ceil(self.seconds.get(file, 0) / self.quick_seconds))


Row = TypeVar("Row", Configuration, Failure)


def load_expectations(file: Path) -> Expectations:
    """Read a conformance.toml.

    Raises:
        ConfigurationError: an unknown or missing key, or a configuration that does not exist.
    """
    table = read_toml(file)
    if set(table) != {field.name for field in fields(Expectations)}:
        keys = ", ".join(field.name for field in fields(Expectations))
        raise ConfigurationError(f"{file}: expected the keys {keys}")
    expectations = Expectations(
        configurations={
            name: _parse_row(file, Configuration, row)
            for name, row in table["configurations"].items()
        },
        quick_seconds=table["quick_seconds"],
        seconds=table["seconds"],
        failures=tuple(_parse_row(file, Failure, row) for row in table["failures"]),
    )
    for failure in expectations.failures:
        if unknown := set(failure.configurations) - set(expectations.configurations):
            raise ConfigurationError(f"{file}: no configuration is called {', '.join(unknown)}")
    return expectations


def _parse_row(file: Path, kind: type[Row], row: dict[str, Any]) -> Row:
    """Parse a row of the file into the dataclass ``kind``.

    Raises:
        ConfigurationError: the keys of the row are not the fields of ``kind``.
    """
    names = [field.name for field in fields(kind)]
    if set(row) != set(names):
        raise ConfigurationError(f"{file}: {row}: expected the keys {', '.join(names)}, each once")
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in row.items()
    }
    return kind(**values)


def index_failures(failures: Iterable[Failure]) -> dict[Key, Failure]:
    """Index the expected failures by configuration and test."""
    return {
        (configuration, test): failure
        for failure in failures
        for configuration in failure.configurations
        for test in failure.tests
    }


def find_deviations(
    failures: Iterable[Failure], results: Results, reference: Mapping[Key, Outcome]
) -> list[str]:
    """Describe the deviations of tests from the expected failures.

    A deviation is an unlisted failure, a listed test that passed or does not exist, or a wrong
    value of ``stock``.

    Args:
        failures: the expected failures.
        results: the results of the tests that ran.
        reference: the outcomes on stock Theano; empty if they were not recorded.
    """
    expected = index_failures(failures)
    deviations = [
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
            deviations.append(
                f"{configuration}: {test}: passed, but is listed as failing: {failure.reason}"
            )
        if outcome is None and tests is not None and test not in tests:
            deviations.append(f"{configuration}: {test}: is listed, but does not exist")
        if failure.stock and stock and stock.outcome != "failed":
            deviations.append(
                f"{configuration}: {test}: stock = true, but it {stock.outcome} on stock Theano"
            )
    return deviations
