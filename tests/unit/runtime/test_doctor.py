"""Test the findings of the doctor: flags, names, virtual environments and failed probes."""

import re

import pytest

pytest.importorskip("tomllib", reason="tomllib needs Python 3.11")

from theano_fast import doctor, rc
from theano_fast.settings import Setting

# The flags of a stack.
STACK_FLAGS = {
    "blas.ldflags": "-lopenblas",
    "cxx": "/usr/bin/g++",
    "device": "cpu",
    "floatX": "float64",
    "gcc.cxxflags": "",
    "linker": "cvm",
    "openmp": "False",
}
# The output of a probe without problems; see doctor.Bench.probe.
SOUND = {
    "blas": [{"library": "libopenblas.so", "threads": 2, "version": "OpenBLAS 0.3.29"}],
    "cache": {
        "path": "/cache",
        "files": 3,
        "bytes": 2**20,
        "free": 2**32,
        "writable": True,
        "file_system": "ext4",
        "locked_by": "",
    },
    "compiler": {"cxx": "g++", "version": "g++ 12.2.0", "seconds": 0.1, "error": ""},
    "device": {"active": False, "contexts": {}},
    "flags": STACK_FLAGS,
    "openmp": [],
    "says": [],
}
HOST = {"cpus": 4, "cpus_usable": 2, "thread_variables": {"OMP_NUM_THREADS": "2"}}


@pytest.fixture
def examine_flags(monkeypatch):
    """Return a function that diagnoses a user's flags with fake probes.

    In the probes, Theano does not start if a flag is in ``broken``.
    """

    def examine(users, broken=(), measure=False):
        def fake_probe(self, flags, without=""):
            flags = users if flags is None else flags
            if wrong := [flag for flag in flags if flag in broken]:
                return {"error": f"ValueError: {wrong[0]}"}
            return {**SOUND, "flags": {**STACK_FLAGS, **flags}}

        def fake_measure(self, flags):
            return {"first": 2.0 if flags else 1.0, "call": 0.01}

        settings = tuple(Setting(*item, "THEANO_FLAGS") for item in users.items())
        monkeypatch.setattr(doctor.settings, "read_users", lambda _: settings)
        monkeypatch.setattr(doctor.Bench, "probe", fake_probe)
        monkeypatch.setattr(doctor.Bench, "measure", fake_measure)
        monkeypatch.delenv("VIRTUAL_ENV", raising=False)
        monkeypatch.setattr(doctor.facts, "describe_host", lambda: HOST)
        return doctor.examine(None, measure)

    return examine


def test_flags_with_the_stacks_values_are_no_findings(examine_flags):
    diagnosis = examine_flags({"floatX": "float64", "openmp": "False"})
    assert diagnosis["findings"] == []
    assert doctor.is_healthy(diagnosis)
    assert doctor.render(diagnosis).splitlines()[-1] == "nothing disables a part of the stack"


def test_a_flag_that_disables_nothing_is_listed_but_not_a_problem(examine_flags):
    diagnosis = examine_flags({"floatX": "float32"})
    assert doctor.is_healthy(diagnosis)
    assert "- floatX=float32 in THEANO_FLAGS, the stack's is float64" in doctor.render(diagnosis)


def test_a_flag_that_disables_blas_is_listed_with_its_cost_and_fix(examine_flags):
    diagnosis = examine_flags({"blas.ldflags": ""}, measure=True)
    assert not doctor.is_healthy(diagnosis)
    lines = doctor.render(diagnosis).splitlines()
    assert lines[0] == "! blas.ldflags= in THEANO_FLAGS, the stack's is -lopenblas"
    assert "first result after 2 s, 2 times the stack's 1 s" in lines[2]
    assert lines[3].strip() == "fix: remove it from THEANO_FLAGS"
    assert lines[-1] == "1 problem to fix"


@pytest.mark.parametrize(
    ("answers", "base"),
    [
        ([{"first": 1.0, "call": 0.3}, {"first": 2.0, "call": 0.2}], {"first": 1.0, "call": 0.2}),
        ([{"error": "crashed"}, {"first": 1.0, "call": 0.2}], {"first": 1.0, "call": 0.2}),
        ([{"first": 1.0, "call": 0.2}, {"error": "crashed"}], {"first": 1.0, "call": 0.2}),
        ([{"error": "crashed"}, {"error": "too slow"}], {"error": "too slow"}),
    ],
)
def test_the_stacks_time_is_the_least_of_the_successful_measurements(
    examine_flags, answers, base, monkeypatch
):
    users = {"blas.ldflags": ""}
    examine_flags(users)
    answers_left = iter(answers)

    def fake_measure(self, flags):
        return {"first": 2.0, "call": 0.4} if flags else next(answers_left)

    monkeypatch.setattr(doctor.Bench, "measure", fake_measure)
    diagnosis = doctor.examine(None, True)
    assert diagnosis["base"] == base
    assert base.get("error", "2 times the stack's") in doctor.render(diagnosis)


def test_a_flag_with_which_theano_does_not_start_hides_no_other_finding(examine_flags):
    diagnosis = examine_flags({"device": "gpu", "floatX": "float32", "cxx": "x"}, ("device", "cxx"))
    verdicts = {finding["setting"]["flag"]: finding["verdict"] for finding in diagnosis["findings"]}
    assert list(verdicts) == ["device", "floatX", "cxx"]
    assert verdicts["device"]["effect"] == "from before Theano 1.0: ValueError: device"
    assert verdicts["cxx"]["effect"] == "Theano does not start: ValueError: cxx"


def test_findings_have_the_documented_keys(examine_flags):
    (finding,) = examine_flags({"floatX": "float32"})["findings"]
    assert set(finding) == {"setting", "stacks", "verdict", "costs"}
    assert finding["setting"] == {"flag": "floatX", "value": "float32", "origin": "THEANO_FLAGS"}
    assert set(finding["verdict"]) == {"disables_part", "effect", "fix"}


def test_a_theano_that_does_not_start_is_reported(examine_flags):
    diagnosis = {"error": "ImportError: no numpy"}
    assert not doctor.is_healthy(diagnosis)
    assert doctor.render(diagnosis) == "Theano does not start: ImportError: no numpy"


@pytest.mark.parametrize(
    ("flag", "value", "effect"),
    [
        ("blas.ldflags", "", "no BLAS is linked"),
        ("blas.ldflags", "-lmkl_rt", "MKL chooses its own OpenMP"),
        ("blas.ldflags", "-lblas", "not the stack's BLAS"),
        ("openmp", "True", "no shipped module"),
        ("cxx", "", "everything runs in Python"),
        ("device", "gpu0", "from before Theano 1.0"),
        ("lib.cnmem", "0.8", "from before Theano 1.0"),
        ("gcc.cxxflags", "-O3", "no shipped module"),
        ("flaotX", "float32", "Theano has no such flag"),
    ],
)
def test_flags_that_disable_a_part_of_the_stack_have_a_fix(flag, value, effect):
    verdict = doctor.judge_setting(Setting(flag, value, "~/.theanorc:1"), STACK_FLAGS, "")
    assert verdict.disables_part
    assert verdict.effect.startswith(effect)
    assert verdict.fix


def test_compiler_flags_of_a_preset_disable_nothing():
    verdict = doctor.judge_setting(Setting("gcc.cxxflags", rc.FAST_CXXFLAGS, "x"), STACK_FLAGS, "")
    assert not verdict.disables_part
    assert "g++ compiles all modules" in verdict.effect


def test_the_fix_of_old_gpu_flags_depends_on_the_stacks_device():
    old = Setting("device", "gpu0", "~/.theanorc:1")
    assert "remove it from ~/.theanorc:1" in doctor.judge_setting(old, STACK_FLAGS, "").fix
    on_gpu = {**STACK_FLAGS, "device": "cuda"}
    assert doctor.judge_setting(old, on_gpu, "").fix == "device=gpu0 is now device=cuda0"


def test_missing_names_are_listed_with_their_replacement(examine_flags, monkeypatch):
    missing = (
        doctor.imports.Missing("sklearn.lda", "a.py:3", 2, "write B", required=True),
        doctor.imports.Missing("numpy.bool", "a.py:4", 1, "write bool", required=False),
    )
    diagnosis = {**examine_flags({}), "missing": [name.to_json() for name in missing]}
    assert not doctor.is_healthy(diagnosis)
    lines = doctor.render(diagnosis).splitlines()
    assert lines[:2] == ["! sklearn.lda is missing here: a.py:3 and 1 more", "    fix: write B"]
    assert lines[2].startswith("- numpy.bool")
    assert lines[-1] == "1 problem to fix"


def test_kernels_of_another_processor_are_a_problem():
    haswell, own = ({"blas": [{"kernels": name}]} for name in ("Haswell", "SkylakeX"))
    (problem,) = doctor.find_other_kernels(haswell, own)
    assert "Haswell" in problem
    assert "SkylakeX" in problem
    assert doctor.find_other_kernels(own, own) == []


def test_a_virtual_environment_of_another_python_is_reported(tmp_path):
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to("/bin/sh")
    (problem,) = doctor.find_other_venv({"VIRTUAL_ENV": str(tmp_path)})
    assert "-m venv DIR" in problem
    assert not list(doctor.find_other_venv({}))


def change_parts(**parts):
    """Return SOUND with changed entries, such as ``cache={"writable": False}``."""
    return {**SOUND, **{key: {**SOUND[key], **part} for key, part in parts.items()}}


@pytest.mark.parametrize(
    ("probed", "text"),
    [
        ({**SOUND, "compiler": {"cxx": "g++"}}, "no compiler: cxx=g\\+\\+ cannot be run"),
        (change_parts(compiler={"error": "no space left"}), "g\\+\\+ fails: no space left"),
        (change_parts(cache={"writable": False}), "/cache is read-only"),
        (change_parts(cache={"free": 2**20}), "only 1 MB"),
        ({**SOUND, "blas": SOUND["blas"] * 2}, "more than one BLAS"),
        ({**SOUND, "blas": [{**SOUND["blas"][0], "threads": 8}]}, "8 threads on 2 CPUs"),
        (change_parts(flags={"device": "cuda"}), "device=cuda is not in use"),
    ],
)
def test_problems_of_compiler_cache_blas_and_device_are_found(probed, text):
    (problem,) = doctor.find_problems(probed, 2)
    assert re.search(text, problem)
    assert doctor.find_problems(SOUND, 2) == []


def test_a_compilers_error_is_shortened():
    error = "Exception: ('node', X, '\\n', 'Compilation failed (status=1): ld: no -lx. ', '[X]')"
    assert doctor._shorten_error(error) == "Compilation failed (status=1): ld: no -lx."
    assert doctor._shorten_error("ImportError: x") == "ImportError: x"
