"""Test the thread counts of BLAS libraries; fake functions replace the libraries' functions."""

import sys
from pathlib import Path

import pytest
from theano_fast import blas

OPENBLAS = blas.Blas("openblas", "lib/libopenblas.so.0")
MKL = blas.Blas("mkl", "lib")


@pytest.fixture
def mkl_state(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Replace MKL; return its state: the set number of threads, and the number of cores."""
    state = {"threads": 3, "cores": 4}
    monkeypatch.setattr(blas, "read_version", lambda _: "Math Kernel Library")
    monkeypatch.setattr(blas, "count_threads", lambda _: min(state["threads"], state["cores"]))
    monkeypatch.setattr(blas, "set_threads", lambda _, count: state.update(threads=count))
    return state


def test_mkl_uses_as_many_threads_as_cores(mkl_state: dict[str, int]) -> None:
    assert blas.read_most_threads(MKL) == 4
    assert mkl_state["threads"] == 3


def test_mkl_without_a_limit_uses_any_number_of_threads(mkl_state: dict[str, int]) -> None:
    mkl_state["cores"] = sys.maxsize
    assert blas.read_most_threads(MKL) == sys.maxsize


def test_openblas_has_the_limit_of_its_build(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blas, "read_version", lambda _: "OpenBLAS 0.3.29 MAX_THREADS=128")
    assert blas.read_most_threads(OPENBLAS) == 128


def test_the_name_of_mkl_is_its_family_because_it_has_many_files(tmp_path: Path) -> None:
    assert blas.Blas("mkl", str(tmp_path)).name == "mkl"
    assert OPENBLAS.name == "libopenblas.so.0"
