"""Test the comparison of stacks by their rates of matrix products; measurements are fake."""

from subprocess import CompletedProcess

import pytest

pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")

from theano_fast import gemm_comparison

RATES = {
    "mkl": {"blas": "oneMKL", "rates": {"float32 64 on 1": 40.0, "float32 64 on 2": 90.0}},
    "openblas": {"blas": "OpenBLAS", "rates": {"float32 64 on 1": 10.0, "float32 64 on 2": 40.0}},
}


def test_the_fastest_stack_has_the_largest_geometric_mean():
    lines = gemm_comparison.render(RATES).splitlines()
    assert lines[0].split() == ["GFLOP/s", "of", "gemm", "mkl", "openblas"]
    assert lines[1].startswith("float32, 64, 1 thread ")
    assert lines[2].split()[-2:] == ["90.0", "40.0"]
    assert lines[3].split()[-2:] == ["60.0", "20.0"]
    assert lines[-1] == "mkl is the fastest here: 3.00 times the speed of openblas"


def test_a_single_stack_is_not_compared():
    assert "no other stack" in gemm_comparison.render({"mkl": RATES["mkl"]})


@pytest.fixture
def pending_results(monkeypatch):
    """Replace the measuring processes; return their pending results, which a test sets."""
    processes = []
    monkeypatch.setattr(gemm_comparison.subprocess, "run", lambda *_, **__: processes.pop(0))
    return processes


def make_process(rate):
    """Make the result of a measuring process that printed one rate."""
    return CompletedProcess([], 0, f'{{"blas": "b", "rates": {{"x": {rate}}}}}', "")


def test_the_best_rate_of_all_rounds_is_kept(pending_results, tmp_path, capsys):
    pending_results += [make_process(rate) for rate in (1, 5, 3, 4, 2, 4)]
    best = gemm_comparison.compare({"a": tmp_path, "b": tmp_path})
    assert best["a"]["rates"] == {"x": 3}
    assert best["b"]["rates"] == {"x": 5}
    assert [line[:9] for line in capsys.readouterr().err.splitlines()] == [
        f"{number} of 6, {name}" for number, name in enumerate("ababab", 1)
    ]


def test_a_failed_measurement_names_its_reason(pending_results, tmp_path):
    pending_results.append(CompletedProcess([], 1, "", "Traceback\nno numpy\n"))
    with pytest.raises(gemm_comparison.ComparisonError, match="cannot be measured: no numpy"):
        gemm_comparison.compare({"a": tmp_path})
