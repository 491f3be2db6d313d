"""Test the table of expected failures, and its comparison with outcomes."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import ConfigurationError
from builder.proof import expected_failures
from builder.proof.expected_failures import Failure
from builder.proof.pytest_results import Outcome, Results
from builder.stack import stacks

FILE = "theano/tests/test_a.py"
TEST = f"{FILE}::test_one"
PASSED = Outcome("passed", 1.0, "")
FAILED = Outcome("failed", 1.0, "AssertionError: 1 == 2")
LISTED = Failure((TEST,), ("c",), "ragged arrays", "ValueError", stock=True)


def find_deviations(outcome: Outcome, failure: Failure | None, stock: Outcome | None = None) -> str:
    """Return the deviations of the outcome of TEST from the table, one per line.

    Args:
        failure: the row of TEST in the table of expected failures, if it has a row.
        stock: the outcome on stock Theano, if TEST ran there.
    """
    results = Results({("c", TEST): outcome}, {("c", FILE): (TEST,)})
    reference = {("c", TEST): stock} if stock else {}
    return "\n".join(
        expected_failures.find_deviations([failure] if failure else [], results, reference)
    )


def test_expected_failures_are_no_deviations() -> None:
    assert find_deviations(PASSED, None) == ""
    assert find_deviations(FAILED, LISTED) == ""
    assert find_deviations(FAILED, LISTED, stock=FAILED) == ""


def test_an_unlisted_failure_is_a_deviation() -> None:
    assert find_deviations(FAILED, None) == f"c: {TEST}: failed: AssertionError: 1 == 2"
    elsewhere = Failure((TEST,), ("python",), "", "", stock=False)
    assert "failed" in find_deviations(FAILED, elsewhere)


def test_a_listed_test_that_passes_is_a_deviation() -> None:
    assert (
        find_deviations(PASSED, LISTED)
        == f"c: {TEST}: passed, but is listed as failing: ragged arrays"
    )


def test_a_listed_test_that_does_not_exist_is_a_deviation() -> None:
    missing_test = Failure((f"{FILE}::test_gone",), ("c",), "", "", stock=False)
    assert "does not exist" in find_deviations(PASSED, missing_test)
    # If a file did not run, its tests may exist.
    in_other_file = Failure(("theano/tests/test_b.py::test_gone",), ("c",), "", "", stock=False)
    assert find_deviations(PASSED, in_other_file) == ""


def test_a_failure_that_passes_on_stock_contradicts_its_evidence() -> None:
    assert "stock = true, but it passed on stock" in find_deviations(FAILED, LISTED, stock=PASSED)


def test_the_quick_suite_skips_tests_in_proportion_to_a_files_seconds() -> None:
    table = expected_failures.Expectations({}, 8, {"fast": 8, "slow": 9, "slower": 80}, ())
    assert [table.compute_step(file) for file in ("fast", "slow", "slower", "unknown")] == [
        1,
        2,
        10,
        1,
    ]


def test_each_configuration_belongs_to_one_device() -> None:
    table = expected_failures.load_expectations(paths.CONFORMANCE)
    devices = {stack.device for stack in stacks.load_all()} | {"opencl"}
    names = {value: set(table.select_device(value).configurations) for value in devices}
    assert all(names.values())
    assert set.union(*names.values()) == set(table.configurations)
    assert not set.intersection(*names.values())
    assert table.select_device("cpu").failures == table.failures


def test_each_expected_failure_is_listed_once_with_reason_and_evidence() -> None:
    table = expected_failures.load_expectations(paths.CONFORMANCE)
    keys = [
        (configuration, test)
        for failure in table.failures
        for configuration in failure.configurations
        for test in failure.tests
    ]
    assert len(keys) == len(set(keys))
    assert all(failure.reason and failure.evidence for failure in table.failures)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("quick_seconds", "quick_minutes"),
        ("flags = ", "theano_flags = "),
        ('device = "cpu", ', ""),
        ("failures = []", 'failures = [{tests = ["a"], reason = "", evidence = ""}]'),
        (
            "failures = []",
            'failures = [{tests = [], configurations = ["d"], reason = "", evidence = "", '
            "stock = true}]",
        ),
    ],
)
def test_the_error_of_an_invalid_table_names_its_file(old: str, new: str, tmp_path: Path) -> None:
    text = "quick_seconds = 8\nfailures = []\nseconds = {}\n[configurations]\n"
    text += 'c = { device = "cpu", flags = "", files = [] }\n'
    file = tmp_path / paths.CONFORMANCE.name
    file.write_text(text)
    expected_failures.load_expectations(file)
    file.write_text(text.replace(old, new))
    with pytest.raises(ConfigurationError, match=str(file)):
        expected_failures.load_expectations(file)
