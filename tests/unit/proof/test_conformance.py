"""Test conformance runs: the selection of tests, locks, resumed runs, and devices."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import CommandFailed, ConfigurationError, EnvironmentFailed, UsageError
from builder.environment.envs import Lock
from builder.measure import references
from builder.options import Options
from builder.package.channel import Package
from builder.package.package_cache import Plan
from builder.pipeline import Build
from builder.proof import conformance, nvidia, opencl
from builder.proof.expected_failures import Configuration, Expectations
from builder.proof.pytest_runs import Interpreter
from builder.stack import stacks

TABLE = Expectations(
    configurations={
        "c": Configuration("cpu", "", ("*",)),
        "python": Configuration("cpu", "cxx=", ("a",)),
    },
    quick_seconds=8,
    seconds={"a": 16, "b": 160},
    failures=(),
)


@pytest.mark.parametrize("shard", ["0/2", "3/2", "2", "a/b", "1/0", "-1/2"])
def test_a_shard_that_is_not_i_of_n_is_refused(shard: str) -> None:
    with pytest.raises(UsageError, match="--shard"):
        conformance.make_selection("full", shard)


def test_an_unknown_suite_lists_all_suites() -> None:
    with pytest.raises(UsageError, match="quick, full"):
        conformance.make_selection("half", "1/1")


def select_parts(suite: str, shard: str) -> list[tuple[str, str, slice]]:
    """Return (configuration, file, slice of the file's tests) for each part of TABLE."""
    parts = conformance.make_parts(TABLE, ["a", "b"], conformance.make_selection(suite, shard))
    return [(part.configuration, part.file, slice(part.first, None, part.step)) for part in parts]


def test_full_runs_all_tests_and_begins_with_the_longest_part() -> None:
    everything = slice(0, None, 1)
    assert select_parts("full", "1/1") == [
        ("c", "b", everything),
        ("c", "a", everything),
        ("python", "a", everything),
    ]


def test_quick_runs_every_nth_test_of_a_long_file() -> None:
    assert {file: part.step for _, file, part in select_parts("quick", "1/1")} == {"a": 2, "b": 20}


def test_a_pattern_without_a_file_is_an_error() -> None:
    everything = conformance.make_selection("full", "1/1")
    with pytest.raises(ConfigurationError, match="python: no file matches a"):
        conformance.make_parts(TABLE, ["b"], everything)


@pytest.mark.parametrize("suite", conformance.SUITES)
def test_each_test_of_a_suite_is_in_one_shard(suite: str) -> None:
    tests = range(100)
    suite_tests = {(c, f, n) for c, f, part in select_parts(suite, "1/1") for n in tests[part]}
    shard_tests = [
        (c, f, n)
        for shard in ("1/3", "2/3", "3/3")
        for c, f, part in select_parts(suite, shard)
        for n in tests[part]
    ]
    assert len(shard_tests) == len(set(shard_tests))
    assert set(shard_tests) == suite_tests


def test_the_lock_of_a_run_has_the_packages_of_tests(monkeypatch: pytest.MonkeyPatch) -> None:
    built = [
        Package(Path(f"/c/{name}-1.0-h0_0.conda"), "noarch", "ab" * 32, 5)
        for name in ("theano-tests", "keras-tests", "theano")
    ]
    build = Build(stacks.load("openblas+keras"), Plan((), {}, {}, {}), Options())
    monkeypatch.setattr(Build, "create", lambda *_: build)
    monkeypatch.setattr(Build, "build_packages", lambda _: built)
    monkeypatch.setattr(
        Build, "resolve", lambda self, _: Lock(self.stack.name, self.stack.programs, ())
    )
    lock = conformance._lock_with_tests("openblas+keras")
    assert lock.stack == "openblas+keras"
    assert lock.specs == (*build.stack.programs, "keras-tests", "theano-tests")


def test_each_program_has_its_own_table() -> None:
    assert conformance.find_table("openblas") == paths.CONFORMANCE
    for name in ("keras-2.2", "pymc3", "pymc3-3.7", "pymc3-3.11"):
        assert conformance.find_table(f"openblas+{name}").parent.name == name
    assert conformance.find_table("2017-mkl").parent.name == "theano-0.8"
    for name in ("openblas+mpi4py", "openblas+keras+pymc3"):
        with pytest.raises(UsageError, match=r"one of: keras, keras-2\.2, lasagne, nolearn, "):
            conformance.find_table(name)


@pytest.mark.parametrize(
    ("file", "is_test_file"),
    [
        ("/site/theano/tensor/tests/test_basic.py", True),
        ("/site/theano/tests/unittest_tools.py", False),
        ("/site/lasagne/tests/layers/test_conv.py", True),
        ("/site/keras_tests/keras/backend/backend_test.py", True),
        ("/site/keras/utils/test_utils.py", False),
    ],
)
def test_test_files_are_recognized_by_their_names(file: str, is_test_file: bool) -> None:
    assert bool(conformance.TESTS.search(file)) == is_test_file


def test_a_run_is_resumed_only_with_the_same_inputs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "conformance.toml"
    table.write_text("")
    monkeypatch.setattr(paths, "CONFORMANCE", table)
    monkeypatch.setattr(paths, "TEST_RUNS", tmp_path / "runs")
    quick = conformance.make_selection("quick", "1/1")

    def is_resumed(subject: str) -> bool:
        with conformance._lock_run("openblas", quick, subject) as directory:
            has_events = (directory / "events").exists()
            (directory / "events").mkdir(exist_ok=True)
        return has_events

    assert [is_resumed("a"), is_resumed("a"), is_resumed("b")] == [False, True, False]
    table.write_text("quick_seconds = 1")
    assert not is_resumed("b")


def test_two_runs_of_the_same_suite_at_the_same_time_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "TEST_RUNS", tmp_path / "runs")
    quick, full = (conformance.make_selection(suite, "1/1") for suite in conformance.SUITES)
    with conformance._lock_run("openblas", quick, "a") as directory:
        with (
            pytest.raises(CommandFailed, match="openblas-quick"),
            conformance._lock_run("openblas", quick, "b"),
        ):
            pass
        assert directory.exists()
        with conformance._lock_run("openblas", full, "a"):
            pass
    with conformance._lock_run("openblas", quick, "a"):
        pass


def test_each_device_has_its_own_environment_variables_and_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    interpreter = Interpreter(Path("/python"), Path("/site"), ())
    checked_directories = []
    monkeypatch.setattr(opencl, "make_environ", lambda directory: {"NAMES": str(directory)})
    monkeypatch.setattr(
        opencl, "check_device", lambda python, environ: checked_directories.append(environ["NAMES"])
    )
    monkeypatch.setattr(nvidia, "find_gpu", lambda python, environ: "NVIDIA T4")

    def find_variables_and_name(device: str) -> tuple[set[str], str]:
        environ, name = conformance._make_environ(device, interpreter, tmp_path)
        return set(environ) & {"NAMES", *nvidia.ENVIRON}, name

    assert find_variables_and_name("cpu") == (set(), "cpu")
    assert find_variables_and_name("opencl") == ({"NAMES"}, "opencl")
    assert find_variables_and_name("cuda") == (set(nvidia.ENVIRON), "NVIDIA T4")
    assert checked_directories == [str(tmp_path / "opencl")]


def test_a_gpu_is_used_only_with_the_flag() -> None:
    usual, gpu = (conformance.make_selection("full", "1/1", gpu) for gpu in (False, True))
    assert conformance._choose_device("openblas", usual) == "cpu"
    assert conformance._choose_device("cuda", usual) == "opencl"
    assert conformance._choose_device("cuda", gpu) == "cuda"
    with pytest.raises(UsageError, match="--gpu"):
        conformance.check_stack("openblas", gpu, 1)
    with pytest.raises(UsageError, match="stock Theano"):
        conformance.run_reference(gpu, 1)
    assert str(usual) != str(gpu)


def test_a_reference_run_installs_stock_theano(monkeypatch: pytest.MonkeyPatch) -> None:
    def create(name: str, _: Options) -> Path:
        raise EnvironmentFailed(f"{name} could not be installed")

    monkeypatch.setattr(references, "install_reference", create)
    with pytest.raises(EnvironmentFailed, match="stock"):
        conformance.run_reference(conformance.make_selection("quick", "1/1"), 1)
