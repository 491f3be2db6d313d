"""Test the default number of threads: variables, available CPUs and the quota of a cgroup."""

import ast
import os
from pathlib import Path

import pytest
from theano_fast import threads


@pytest.fixture(autouse=True)
def eight_cpus_and_no_quota(monkeypatch):
    """Let this process run on eight CPUs, without a quota of its control group."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    monkeypatch.setattr(threads, "read_cgroup_quota", lambda: None)


def write_control_group(root: Path, line: str, files: dict[str, str]) -> str:
    """Write a root file system with this process's control group; return its path.

    Args:
        line: the content of /proc/self/cgroup.
        files: the content of files below /sys/fs/cgroup.
    """
    (root / "proc/self").mkdir(parents=True, exist_ok=True)
    (root / "proc/self/cgroup").write_text(line + "\n")
    for name, text in files.items():
        path = root / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n")
    return str(root)


class TestApply:
    def test_all_thread_variables_and_the_mark_are_set(self):
        environ: dict[str, str] = {}
        assert threads.apply(environ) == 8
        assert environ == dict.fromkeys((*threads.VARIABLES, threads.MARK), "8")

    @pytest.mark.parametrize("name", threads.USER_VARIABLES)
    def test_if_the_user_set_one_variable_no_variable_is_set(self, name):
        environ = {name: "3"}
        assert threads.apply(environ) is None
        assert environ == {name: "3"}

    def test_an_empty_variable_counts_as_unset(self):
        assert threads.apply({"OMP_NUM_THREADS": ""}) == 8

    def test_a_child_process_on_fewer_cpus_computes_its_own_number_of_threads(self, monkeypatch):
        environ: dict[str, str] = {}
        threads.apply(environ)
        monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5})
        assert threads.apply(environ) == 1
        assert set(environ.values()) == {"1"}

    def test_if_the_program_changed_a_variable_the_others_are_removed(self):
        environ: dict[str, str] = {}
        threads.apply(environ)
        environ["OMP_NUM_THREADS"] = "2"
        assert threads.apply(environ) is None
        assert environ == {"OMP_NUM_THREADS": "2"}


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, {"GOMP_SPINCOUNT": threads.SPINS}),
        ({"GOMP_SPINCOUNT": "7"}, {"GOMP_SPINCOUNT": "7"}),
        ({"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
    ],
)
def test_spinning_is_limited_unless_the_user_chose_how_threads_wait(environ, expected):
    threads.limit_spinning(environ)
    assert environ == expected


class TestAvailable:
    @pytest.mark.parametrize(
        ("quota", "slurm", "expected"),
        [
            (None, "", 8),
            (2.5, "", 3),
            (0.1, "", 1),
            (64.0, "", 8),
            (None, "4", 4),
            (2.0, "4", 2),
            (None, "no number", 8),
            (None, "0", 1),
        ],
    )
    def test_the_number_of_threads_is_the_least_of_cpus_quota_and_slurm(
        self, monkeypatch, quota, slurm, expected
    ):
        monkeypatch.setattr(threads, "read_cgroup_quota", lambda: quota)
        assert threads.count_available({"SLURM_CPUS_PER_TASK": slurm}) == expected


class TestCgroupQuota:
    @pytest.fixture(autouse=True)
    def restore_functions(self, monkeypatch, eight_cpus_and_no_quota):
        """Undo the replacements of eight_cpus_and_no_quota."""
        monkeypatch.undo()

    @pytest.mark.parametrize(
        ("line", "files", "expected"),
        [
            ("0::/", {"cpu.max": "150000 100000"}, 1.5),
            ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, 2),
            ("0::/a/b", {"a/b/cpu.max": "100000 100000", "a/cpu.max": "200000 100000"}, 1),
            ("0::/a", {"a/cpu.max": "max 100000"}, None),
            ("0::/seen/from/outside", {"cpu.max": "50000 100000"}, 0.5),
            (
                "4:cpu,cpuacct:/a",
                {"cpu/a/cpu.cfs_quota_us": "300000", "cpu/a/cpu.cfs_period_us": "100000"},
                3,
            ),
            ("4:cpu:/", {"cpu/cpu.cfs_quota_us": "-1", "cpu/cpu.cfs_period_us": "100000"}, None),
            ("4:cpuset:/a", {"cpu/a/cpu.cfs_quota_us": "1", "cpu/a/cpu.cfs_period_us": "1"}, None),
            ("not a control group", {}, None),
        ],
    )
    def test_the_quota_is_the_least_quota_of_the_group_and_its_ancestors(
        self, tmp_path, line, files, expected
    ):
        assert threads.read_cgroup_quota(write_control_group(tmp_path, line, files)) == expected

    def test_without_control_groups_there_is_no_quota(self, tmp_path):
        assert threads.read_cgroup_quota(str(tmp_path)) is None


def test_theanos_loops_obey_the_same_variables():
    """Theano needs no theano_fast, and threads imports only os, so both define the variables."""
    source = Path(__file__).parents[3] / "recipes/theano/src/theano/tensor/linkers/threads.py"
    (names,) = (
        node.value
        for node in ast.parse(source.read_text()).body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "VARIABLES"
    )
    assert ast.literal_eval(names) == threads.VARIABLES


def test_the_module_imports_only_os():
    tree = ast.parse(Path(threads.__file__).read_text())
    imported = [node.names[0].name for node in tree.body if isinstance(node, ast.Import)]
    assert imported == ["os"]
