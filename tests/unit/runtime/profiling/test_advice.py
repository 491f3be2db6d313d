from pathlib import Path
from subprocess import TimeoutExpired
from types import SimpleNamespace as Made

import pytest
from theano_fast import profiles, stack
from theano_fast.profiling import advice, pages


def row(name, kind, seconds, node=1, notes=()):
    return profiles.Row(name, kind, seconds, 50.0, 1, node, notes)


def profile(*ops, applies=()):
    tables = {"Ops": profiles.Table(ops), "Apply": profiles.Table(applies)}
    return profiles.Profile("Function profiling", 1, 2.0, {}, "step", tables)


def test_what_ran_in_python_is_named_by_node():
    read = profile(
        row("Split{2}", "Py", 0.1),
        row("dot", "Py", 0.2),
        row("Elemwise{exp}", "Py", 0.3),
        row("RandomFunction{normal}", "C", 0.4),
        applies=(row("dot(x, y)", "", 0.2, 7, ("input 0: (2, 2)", "train.py:3: dot")),),
    )
    first, second = advice.of_profiles([read])
    assert first.startswith("0.200 s, 50% of step: dot ran in Python: BLAS is not bound")
    assert first.endswith("(node 7 train.py:3: dot)")
    assert "Split{2}" in second


@pytest.fixture
def alone(monkeypatch):
    """Other environments, of which there is one on the CPU and one not."""
    axes = {"/envs/mkl": "cpu", "/envs/cuda": "cuda"}
    monkeypatch.setattr(stack, "beside", lambda: tuple(map(Path, axes)))
    monkeypatch.setattr(
        stack, "load", lambda prefix: stack.Stack(prefix.name, {"device": axes[str(prefix)]})
    )


@pytest.mark.parametrize(("cpus", "counts"), [(1, []), (2, ["1"]), (3, ["1"]), (8, ["1", "4"])])
def test_remedies_are_those_of_the_machine(alone, cpus, counts):
    tried = list(advice.remedies(cpus))
    assert [each.environment["OMP_NUM_THREADS"] for each in tried if each.environment] == counts
    assert ("openmp = True" in [each.name for each in tried]) == (cpus > 1)
    assert [each.name for each in tried if each.name.startswith("stack")] == ["stack mkl"]
    assert tried[-1].python == "/envs/mkl/bin/python"


@pytest.fixture
def measured(monkeypatch):
    """A function: what is told of remedies a, b and c, of runs of so many seconds or an error."""

    def measure(*seconds):
        each = iter(seconds)

        def run(words, remedy, limit):
            assert words == ["train.py"]
            took = next(each)
            if isinstance(took, BaseException):
                raise took
            return took

        monkeypatch.setattr(advice, "run", run)
        tries = advice.measure(["train.py"], [advice.Remedy(name, "there") for name in "abc"])
        assert next(each, None) is None
        return {tried.name.split(",")[-1].strip(): tried for tried in tries}

    return measure


FAILS = profiles.ProfileError("ended with exit status 1 no floatX")


def test_a_factor_is_to_the_faster_of_both_runs_without(measured, capsys):
    tries = measured(4.0, 1.0, FAILS, TimeoutExpired("python", 1), 2.0)
    assert [(name, tried.factor) for name, tried in tries.items()] == [
        ("a", 2.0),
        ("once more", 0.5),
        ("b", None),
        ("c", None),
    ]
    assert str(tries["a"]).split() == ["2.00", "x", "a", "there"]
    assert "no floatX" in str(tries["b"])
    assert "took more than" in tries["c"].told
    told = capsys.readouterr().err.splitlines()
    assert told[0] == "1 of 5, as it is: some 0 s left"
    assert told[2] == "3 of 5, b: ended with exit status 1 no floatX"


def test_where_it_fails_as_it_is_nothing_else_is_tried(measured):
    tries = measured(FAILS)
    assert {tried.factor for tried in tries.values()} == {None}
    told = "not tried: as it is, it ended with exit status 1 no floatX"
    assert [tried.told for tried in tries.values()] == [told] * 4


def test_what_was_measured_before_an_interrupt_stays(measured):
    tries = measured(4.0, 2.0, KeyboardInterrupt())
    assert (tries["a"].factor, tries["b"].told) == (2.0, advice.INTERRUPTED)
    assert tries["c"].told == tries["once more"].told == "not tried: interrupted"


def test_the_run_at_the_end_may_fail(measured):
    tries = measured(4.0, 2.0, 8.0, 1.0, FAILS)
    assert [tried.factor for tried in tries.values()] == [4.0, 2.0, 0.5, None]
    assert "no floatX" in tries["once more"].told


@pytest.mark.parametrize("status", [0, 1])
def test_a_run_is_in_the_calls_of_functions(monkeypatch, files, status):
    def run(words, env, **_):
        flags = dict(each.split("=") for each in env["THEANO_FLAGS"].split(","))
        assert (words, flags["floatX"], env["OMP_NUM_THREADS"]) == (["py", "a.py"], "float32", "1")
        Path(flags["profiling.destination"]).write_text(files("train_fn")[0].read_text())
        return Made(returncode=status, stderr="Traceback\nTypeError: x\n" if status else "")

    monkeypatch.setattr(advice.subprocess, "run", run)
    remedy = advice.Remedy("", "", "floatX=float32", {"OMP_NUM_THREADS": "1"}, "py")
    if status:
        with pytest.raises(profiles.ProfileError, match="exit status 1 TypeError: x"):
            advice.run(["a.py"], remedy, None)
    else:
        assert advice.run(["a.py"], remedy, None) == pytest.approx(55.918, abs=0.01)


def test_the_page_has_both():
    page = pages.of_advice(["a < b"], [advice.Tried("floatX", "theanorc", 1.5)])
    assert "a &lt; b" in page
    assert ">1.50<" in page
    assert pages.of_advice([], []) == ""
