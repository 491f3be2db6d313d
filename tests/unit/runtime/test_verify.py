"""Test the selection of checks, the environment variables of their processes, and the verdict."""

import os
from pathlib import Path

import pytest

pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")

from theano_fast import checks, verify
from theano_fast.checks import CHECKS, Check
from theano_fast.checks.result import Record


def make_records(*statuses: str) -> list[Record]:
    return [Record("blas", status, 0, "") for status in statuses]


@pytest.mark.parametrize(
    ("statuses", "verified"),
    [
        (["passed", "passed"], True),
        (["passed", "skipped"], True),
        (["passed", "failed"], False),
        (["skipped"], False),
        ([], False),
    ],
)
def test_an_environment_is_verified_if_a_check_passed_and_none_failed(statuses, verified):
    assert verify.is_verified(make_records(*statuses)) is verified


def test_select_keeps_the_order_of_checks_and_omits_named_checks():
    assert [check.name for check in verify.select(["scan", "blas"])] == ["blas", "scan"]
    assert verify.select([]) == CHECKS
    assert [check.name for check in verify.select(["scan", "blas"], ["blas"])] == ["scan"]


def test_the_error_of_an_unknown_check_lists_all_checks():
    with pytest.raises(ValueError, match="unknown check gpu, x; the checks are packages, compiler"):
        verify.select(["gpu", "x"])


def test_checks_do_not_load_the_mpi_library_of_the_host(monkeypatch):
    monkeypatch.setenv("MPI4PY_LIBMPI", "/cluster/libmpi.so")
    assert verify.make_environment(CHECKS[0], Path("/tmp/x"))["MPI4PY_LIBMPI"] == os.devnull


def test_flags_of_the_check_override_the_users_flags(monkeypatch):
    monkeypatch.setenv("THEANO_FLAGS", "blas.ldflags=,openmp=False,compiledir=/home/me")
    environment = verify.make_environment(Check("blas", "", flags="openmp=True"), Path("/tmp/x"))
    flags = environment["THEANO_FLAGS"].split(",")
    assert flags[0] == "blas.ldflags="
    assert flags.index("openmp=True") > flags.index("openmp=False")
    assert flags[-1] == "compiledir=/tmp/x"


@pytest.mark.parametrize(
    ("code", "text"),
    [
        (3, "ended with exit status 3"),
        (-11, "was killed by SIGSEGV"),
        (-4, "was killed by SIGILL"),
        (-63, "was killed by signal 63"),
    ],
)
def test_the_exit_status_is_described(code, text):
    assert verify.describe_exit(code) == text


def test_every_check_is_a_module_and_every_module_a_check():
    modules = {path.stem for path in Path(checks.__file__).parent.glob("*.py")}
    assert modules - {"__init__", "__main__", "result"} == {check.name for check in CHECKS}
