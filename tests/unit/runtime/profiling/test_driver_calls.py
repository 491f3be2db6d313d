"""Test the counts of NVIDIA's driver calls; the driver is fake."""

import importlib
import json
import sys
from pathlib import Path
from types import SimpleNamespace as Made

import pytest
from theano_fast import profiles, stack
from theano_fast.profiling import command, driver_calls, pages


def write_counts(file, **counts):
    """Write (calls, nanoseconds) of each group of driver calls, as driver_calls.cpp does."""
    rows = [driver_calls.GROUP.pack(name.encode(), *pair) for name, pair in counts.items()]
    file.write_bytes(b"".join(rows))


@pytest.fixture
def counter(tmp_path):
    """Return a counter, and the wrapped call of a function.

    Each call adds kernel launches of 1000 ns each to the counter's file. The file always contains 7
    copies.
    """
    file = tmp_path / "counts"
    file.write_bytes(b"")
    state = {"calls": 0}

    def call(function, launches):
        state["calls"] += launches
        write_counts(file, launches=(state["calls"], 1000 * state["calls"]), copies=(7, 7000))

    counter = driver_calls.Counter(file)
    return counter, counter.wrap(call, lambda stats: stats.name)


def test_the_first_two_calls_are_counted_one_by_one_and_later_calls_on_average(counter):
    counter, call = counter
    function = Made(profile=Made(name="train.py:3"))
    for launches in (50, 40, 10, 10, 13):
        call(function, launches)
    call(Made(profile=None), 1000)
    report = counter.to_json()["train.py:3"]
    assert report["calls"] == 5
    assert [call["launches"]["calls"] for call in report["first"]] == [50, 40]
    assert report["later"] == {"launches": {"calls": 11, "us": 11}}
    (title, heads, copies, launches) = sorted(driver_calls.render(counter.to_json()), key=len)
    assert "train.py:3" in title + heads + copies + launches
    assert "11.0" in copies + launches


def test_the_process_may_load_the_driver_in_a_later_call(counter):
    counter, call = counter
    count = counter.wrap(lambda function: None, lambda stats: stats.name)
    function = Made(profile=Made(name="f"))
    for _ in range(driver_calls.FIRST + 1):
        count(function)
    call(function, 8)
    assert counter.to_json()["f"]["later"]["launches"] == {"calls": 4, "us": 4}


def test_a_function_with_one_call_has_no_later_calls(counter):
    counter, call = counter
    call(Made(profile=Made(name="f")), 3)
    assert counter.to_json()["f"]["later"] == {}
    assert driver_calls.render(counter.to_json())


def test_without_nvidias_driver_there_are_no_counts(tmp_path):
    (tmp_path / "counts").write_bytes(b"")
    assert driver_calls.read(tmp_path / "counts") == {}
    counter = driver_calls.Counter(tmp_path / "counts")
    counter.wrap(lambda function: None, lambda stats: "f")(Made(profile=Made()))
    assert driver_calls.render(counter.to_json()) == []
    assert pages.render_driver(counter.to_json()) == ""


def test_calls_are_counted_from_the_import_of_theano(tmp_path, monkeypatch):
    package = tmp_path / "theano" / "compile"
    package.mkdir(parents=True)
    for folder in (package, package.parent):
        (folder / "__init__.py").write_text("")
    (package / "function_module.py").write_text(
        "class Function:\n    profile = 'f'\n    def __call__(self):\n        return 5\n"
    )
    for name in [name for name in sys.modules if name.split(".")[0] == "theano"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "counts").write_bytes(b"")
    counter = driver_calls.Counter(tmp_path / "counts")
    finder = driver_calls.CountAtImport(counter, str)
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    function = importlib.import_module(finder.MODULE).Function()
    assert finder not in sys.meta_path
    assert function() == 5
    assert counter.calls == {"f": 1}


@pytest.mark.parametrize(("device", "compiled"), [("cpu", False), ("cuda", True)])
def test_driver_calls_are_counted_only_in_a_stack_for_gpus(tmp_path, monkeypatch, device, compiled):
    monkeypatch.setattr(stack, "load", lambda: Made(axes={"device": device}))
    commands = []
    monkeypatch.setattr(
        driver_calls.subprocess, "run", lambda command, check: commands.append(command)
    )
    environment = driver_calls.prepare(tmp_path)
    assert bool(commands) is compiled
    assert sorted(environment) == (sorted(["LD_AUDIT", driver_calls.VARIABLE]) * compiled)


def test_driver_calls_are_not_counted_without_a_stack(tmp_path, monkeypatch):
    def load():
        raise stack.StackError("none")

    monkeypatch.setattr(stack, "load", load)
    assert driver_calls.prepare(tmp_path) == {}


def test_a_node_whose_name_has_several_lines_is_one_row(files):
    text = files("train_fn")[1].read_text()
    lines = text.splitlines()
    (profile,) = profiles.parse(text)
    name = profile.tables["Apply"].rows[0].name
    index = next(i for i, line in enumerate(lines) if line.endswith(name))
    lines[index] += "{[[0. 0.]"
    lines.insert(index + 1, " [1. 1.]]}")
    (changed,) = profiles.parse("\n".join(lines))
    assert changed.tables["Apply"].rows[0].name == name + "{[[0. 0.] [1. 1.]]}"


def test_the_counts_are_in_the_json_report_and_the_page(files, tmp_path, monkeypatch):
    counts = {"f": {"calls": 1, "first": [{"launches": {"calls": 4, "us": 1}}], "later": {}}}

    def run(arguments, env, check):
        flags = dict(flag.split("=") for flag in env["THEANO_FLAGS"].split(","))
        Path(flags["profiling.destination"]).write_text(files("train_fn")[1].read_text())
        Path(f"{arguments[3]}.driver").write_text(json.dumps(counts))
        return Made(returncode=0)

    monkeypatch.setattr(driver_calls, "prepare", lambda _: {})
    monkeypatch.setattr(command.subprocess, "run", run)
    assert command.main(["--out", str(tmp_path / "f"), "train.py"]) == 0
    assert json.loads((tmp_path / "f.json").read_text())["driver"] == counts
    assert "launches" in (tmp_path / "f.html").read_text()
