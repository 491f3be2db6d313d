"""Test the suggestions for a profiled program, and the trials that measure remedies."""

from pathlib import Path
from subprocess import TimeoutExpired
from types import SimpleNamespace as Made

import pytest
from theano_fast import profiles, stack
from theano_fast.profiling import advice, pages


def make_row(name, kind, seconds, node=1, notes=()):
    """Make a row; ``node`` is the number of nodes or, in the table Apply, the node's index."""
    return profiles.Row(name, kind, seconds, 50.0, 1, node, notes)


def make_profile(*ops, applies=()):
    """Make a profile from rows of the tables Ops and Apply."""
    tables = {"Ops": profiles.Table(ops), "Apply": profiles.Table(applies)}
    return profiles.Profile("Function profiling", 1, 2.0, {}, "step", tables)


def test_a_suggestion_names_an_op_that_ran_in_python_and_its_node():
    profile = make_profile(
        make_row("Split{2}", "Py", 0.1),
        make_row("dot", "Py", 0.2),
        make_row("Elemwise{exp}", "Py", 0.3),
        make_row("RandomFunction{normal}", "C", 0.4),
        applies=(make_row("dot(x, y)", "", 0.2, 7, ("input 0: (2, 2)", "train.py:3: dot")),),
    )
    first, second = advice.find_python_ops([profile])
    assert first.startswith("0.200 s, 50% of step: dot ran in Python: no BLAS is linked")
    assert first.endswith("(node 7 train.py:3: dot)")
    assert "Split{2}" in second


@pytest.fixture
def siblings(monkeypatch):
    """Replace the sibling environments: /envs/mkl is for the CPU, and /envs/cuda for GPUs."""
    axes = {"/envs/mkl": "cpu", "/envs/cuda": "cuda"}
    monkeypatch.setattr(stack, "find_siblings", lambda: tuple(map(Path, axes)))
    monkeypatch.setattr(
        stack, "load", lambda prefix: stack.Stack(prefix.name, {"device": axes[str(prefix)]})
    )


@pytest.mark.parametrize(("cpus", "counts"), [(1, []), (2, ["1"]), (3, ["1"]), (8, ["1", "4"])])
def test_remedies_depend_on_the_number_of_cpus_and_siblings_device(siblings, cpus, counts):
    remedies = list(advice.list_remedies(cpus))
    names = [remedy.name for remedy in remedies]
    environments = [remedy.environment for remedy in remedies if remedy.environment]
    assert [variables["OMP_NUM_THREADS"] for variables in environments] == counts
    assert ("openmp = True" in names) == (cpus > 1)
    assert [name for name in names if name.startswith("stack")] == ["stack mkl"]
    assert remedies[-1].python == "/envs/mkl/bin/python"


@pytest.fixture
def measure_remedies(monkeypatch):
    """Return a function that measures the remedies a, b and c, and returns the trials by name.

    Its arguments are the results of five runs, seconds or exceptions: the unchanged program, the
    program with a, with b and with c, and the unchanged program again.
    """

    def measure(*results):
        remaining = iter(results)

        def run(words, remedy, limit):
            assert words == ["train.py"]
            result = next(remaining)
            if isinstance(result, BaseException):
                raise result
            return result

        monkeypatch.setattr(advice, "time_calls", run)
        trials = advice.measure_remedies(
            ["train.py"], [advice.Remedy(name, "file") for name in "abc"]
        )
        assert next(remaining, None) is None
        return {trial.name.split(",")[-1].strip(): trial for trial in trials}

    return measure


FAILS = profiles.ProfileError("ended with exit status 1 no floatX")


def test_the_faster_of_two_unchanged_runs_is_the_baseline(measure_remedies, capsys):
    trials = measure_remedies(4.0, 1.0, FAILS, TimeoutExpired("python", 1), 2.0)
    assert [(name, trial.factor) for name, trial in trials.items()] == [
        ("a", 2.0),
        ("again", 0.5),
        ("b", None),
        ("c", None),
    ]
    assert str(trials["a"]).split() == ["2.00", "x", "a", "file"]
    assert "no floatX" in str(trials["b"])
    assert "took more than" in trials["c"].reason
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "1 of 5, unchanged: about 0 s left"
    assert lines[2] == "3 of 5, b: ended with exit status 1 no floatX"


def test_if_the_unchanged_program_fails_no_remedy_is_tried(measure_remedies):
    trials = measure_remedies(FAILS)
    assert {trial.factor for trial in trials.values()} == {None}
    reason = "not tried: unchanged, the program ended with exit status 1 no floatX"
    assert [trial.reason for trial in trials.values()] == [reason] * 4


def test_results_before_an_interrupt_are_kept(measure_remedies):
    trials = measure_remedies(4.0, 2.0, KeyboardInterrupt())
    assert (trials["a"].factor, trials["b"].reason) == (2.0, advice.INTERRUPTED)
    assert trials["c"].reason == trials["again"].reason == "not tried: interrupted"


def test_the_second_unchanged_run_may_fail(measure_remedies):
    trials = measure_remedies(4.0, 2.0, 8.0, 1.0, FAILS)
    assert [trial.factor for trial in trials.values()] == [4.0, 2.0, 0.5, None]
    assert "no floatX" in trials["again"].reason


@pytest.mark.parametrize("status", [0, 1])
def test_the_time_of_a_run_is_the_sum_of_its_calls_in_the_profile(monkeypatch, files, status):
    def run(words, env, **_):
        flags = dict(flag.split("=") for flag in env["THEANO_FLAGS"].split(","))
        assert (words, flags["floatX"], env["OMP_NUM_THREADS"]) == (["py", "a.py"], "float32", "1")
        Path(flags["profiling.destination"]).write_text(files("train_fn")[0].read_text())
        return Made(returncode=status, stderr="Traceback\nTypeError: x\n" if status else "")

    monkeypatch.setattr(advice.subprocess, "run", run)
    remedy = advice.Remedy("", "", "floatX=float32", {"OMP_NUM_THREADS": "1"}, "py")
    if status:
        with pytest.raises(profiles.ProfileError, match="exit status 1 TypeError: x"):
            advice.time_calls(["a.py"], remedy, None)
    else:
        assert advice.time_calls(["a.py"], remedy, None) == pytest.approx(55.918, abs=0.01)


def test_the_page_has_escaped_suggestions_and_trials():
    page = pages.render_advice(["a < b"], [advice.Trial("floatX", "theanorc", 1.5)])
    assert "a &lt; b" in page
    assert ">1.50<" in page
    assert pages.render_advice([], []) == ""
