import re

import pytest

pytest.importorskip("tomllib", reason="a stack's Python has tomllib (3.11)")

from theano_fast import doctor, rc
from theano_fast.settings import Setting

STACKS = {
    "blas.ldflags": "-lopenblas",
    "cxx": "/usr/bin/g++",
    "device": "cpu",
    "floatX": "float64",
    "gcc.cxxflags": "",
    "linker": "cvm",
    "openmp": "False",
}
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
    "flags": STACKS,
    "openmp": [],
    "says": [],
}
HOST = {"cpus": 4, "cpus_usable": 2, "thread_variables": {"OMP_NUM_THREADS": "2"}}


@pytest.fixture
def examined(monkeypatch):
    """A function: what is told of a user's flags, where Theano ends with an error for some."""

    def examine(users, broken=(), measured=False):
        def probe(self, flags):
            flags = users if flags is None else flags
            if wrong := [flag for flag in flags if flag in broken]:
                return {"error": f"ValueError: {wrong[0]}"}
            return {**SOUND, "flags": {**STACKS, **flags}}

        def cost(self, flags):
            return {"first": 2.0 if flags else 1.0, "call": 0.01}

        found = tuple(Setting(*item, "THEANO_FLAGS") for item in users.items())
        monkeypatch.setattr(doctor.settings, "users", lambda _: found)
        monkeypatch.setattr(doctor.Bench, "probe", probe)
        monkeypatch.setattr(doctor.Bench, "cost", cost)
        monkeypatch.setattr(doctor.facts, "host", lambda: HOST)
        return doctor.examine(None, measured)

    return examine


def test_the_stacks_own_settings_are_no_findings(examined):
    known = examined({"floatX": "float64", "openmp": "False"})
    assert known["findings"] == []
    assert doctor.healthy(known)
    assert doctor.render(known).splitlines()[-1] == "nothing undoes the stack"


def test_a_choice_is_told_and_healthy(examined):
    known = examined({"floatX": "float32"})
    assert doctor.healthy(known)
    assert "- floatX=float32 in THEANO_FLAGS, the stack's is float64" in doctor.render(known)


def test_a_flag_that_undoes_the_stack_is_told_with_its_cost_and_mend(examined):
    known = examined({"blas.ldflags": ""}, measured=True)
    assert not doctor.healthy(known)
    lines = doctor.render(known).splitlines()
    assert lines[0] == "! blas.ldflags= in THEANO_FLAGS, the stack's is -lopenblas"
    assert "until its first result 2 s, not 1: 2 times" in lines[2]
    assert lines[3].strip() == "mend: take it out of THEANO_FLAGS"
    assert lines[-1] == "1 to mend"


def test_what_one_flag_breaks_the_others_are_still_seen_in(examined):
    known = examined({"device": "gpu", "floatX": "float32", "cxx": "x"}, ("device", "cxx"))
    told = {each["setting"]["flag"]: each["verdict"] for each in known["findings"]}
    assert list(told) == ["device", "floatX", "cxx"]
    assert told["device"]["effect"] == "of before Theano 1.0: ValueError: device"
    assert told["cxx"]["effect"] == "Theano does not start: ValueError: cxx"


def test_a_stack_that_does_not_start_is_told(examined):
    known = {"error": "ImportError: no numpy"}
    assert not doctor.healthy(known)
    assert doctor.render(known) == "Theano does not start: ImportError: no numpy"


@pytest.mark.parametrize(
    ("flag", "value", "effect"),
    [
        ("blas.ldflags", "", "no BLAS is linked"),
        ("blas.ldflags", "-lmkl_rt", "MKL with threads of its own choice"),
        ("blas.ldflags", "-lblas", "another BLAS"),
        ("openmp", "True", "no module fits"),
        ("cxx", "", "everything runs in Python"),
        ("device", "gpu0", "of before Theano 1.0"),
        ("lib.cnmem", "0.8", "of before Theano 1.0"),
        ("gcc.cxxflags", "-O3", "no module fits"),
        ("flaotX", "float32", "Theano has no such flag"),
    ],
)
def test_these_undo_the_stack(flag, value, effect):
    verdict = doctor.judge(Setting(flag, value, "~/.theanorc:1"), STACKS, "")
    assert verdict.undoes
    assert verdict.effect.startswith(effect)
    assert verdict.mend


def test_flags_of_our_own_preset_are_a_choice():
    verdict = doctor.judge(Setting("gcc.cxxflags", rc.FAST_CXXFLAGS, "x"), STACKS, "")
    assert not verdict.undoes
    assert "g++ makes them all" in verdict.effect


def test_old_flags_of_a_gpu_are_mended_by_the_stacks_device():
    old = Setting("device", "gpu0", "~/.theanorc:1")
    assert "take it out of ~/.theanorc:1" in doctor.judge(old, STACKS, "").mend
    on_gpu = {**STACKS, "device": "cuda"}
    assert doctor.judge(old, on_gpu, "").mend == "device=gpu0 is now device=cuda0"


def changed(**parts):
    return {**SOUND, **{key: {**SOUND[key], **part} for key, part in parts.items()}}


@pytest.mark.parametrize(
    ("known", "problem"),
    [
        ({**SOUND, "compiler": {"cxx": "g++"}}, "no compiler: cxx=g\\+\\+ cannot be run"),
        (changed(compiler={"error": "no space left"}), "g\\+\\+ fails: no space left"),
        (changed(cache={"writable": False}), "/cache is read-only"),
        (changed(cache={"free": 2**20}), "1 MB left"),
        ({**SOUND, "blas": SOUND["blas"] * 2}, "more than one BLAS"),
        ({**SOUND, "blas": [{**SOUND["blas"][0], "threads": 8}]}, "8 threads on 2 CPUs"),
        (changed(flags={"device": "cuda"}), "device=cuda is not in use"),
    ],
)
def test_problems_that_are_no_flags(known, problem):
    (told,) = doctor.problems(known, 2)
    assert re.search(problem, told)
    assert doctor.problems(SOUND, 2) == []


def test_of_a_compilers_failure_the_essence_is_told():
    error = "Exception: ('node', X, '\\n', 'Compilation failed (status=1): ld: no -lx. ', '[X]')"
    assert doctor._essence(error) == "Compilation failed (status=1): ld: no -lx."
    assert doctor._essence("ImportError: x") == "ImportError: x"
