"""A stack with AMD's own library, from an archive that is laid out as AMD's and made here."""

from __future__ import annotations

import json
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support import Project

from builder.common import errors, paths
from builder.environment import envs
from builder.package import canonical, solver
from builder.source import aocl

Run = Callable[..., subprocess.CompletedProcess[str]]

CHECKOUT = ("LICENSE", "builder", "invoke", "recipes", "requirements.txt", "runtime", "tasks.py")
STACK = "openblas-amdlibm"
LICENCE = "What AMD allows.\n"

# Theano in whole arrays, in a fused loop, and in a function that the stand-in lacks.
COUNT = """
import ctypes, sys
import numpy, theano, theano.tensor as T
amd = ctypes.CDLL(sys.prefix + "/lib/libalm.so")
def count(dtype, expression):
    before = ctypes.c_long.in_dll(amd, "lanes").value
    x = T.vector(dtype=dtype)
    values = numpy.linspace(0.5, 1, 4096).astype(dtype)
    result = theano.function([x], expression(x))(values)
    return ctypes.c_long.in_dll(amd, "lanes").value - before, result[-1]
for dtype in "float32", "float64":
    print(count(dtype, T.exp)[0], count(dtype, lambda x: T.exp(x) * x)[0],
          *count(dtype, lambda x: T.erf(x) * x))
scalar = ctypes.CDLL("libamdlibm.so").amd_exp
scalar.argtypes, scalar.restype = [ctypes.c_double], ctypes.c_double
print(scalar(0), ctypes.c_long.in_dll(amd, "scalars").value > 0)
"""


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("aocl") / "amd-libm"
    for directory in ("include", "lib"):
        (root / directory).mkdir(parents=True)
    for header in ("amdlibm.h", "amdlibm_vec.h"):
        (root / "include" / header).write_text("#error not what Theano needs\n")
    (root / "LICENSE").write_text(LICENCE)
    source = Path(__file__).parent / "data" / "libalm.c"
    library = root / "lib" / "libalm.so"
    gcc = ["gcc", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared"]
    subprocess.run([*gcc, "-Wl,-soname,libalm.so", "-o", library, source, "-lm"], check=True)
    file = root.parent / "aocl-libm-linux-gcc.tar.gz"
    with tarfile.open(file, "w:gz") as tar:
        tar.add(root, root.name)
    return file


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory, archive: Path) -> Project:
    """A copy of this checkout in which the stack with AMD's library is installed."""
    if envs.installed(STACK) is None:
        pytest.skip(f"build/envs/{STACK} is not built")
    made = Project(tmp_path_factory.mktemp("aocl") / "checkout", CHECKOUT, paths.cache())
    status, output = made.invoke("env", f"--stack={STACK}", f"--amdlibm-archive={archive}")
    assert status == 0, output
    return made


@pytest.fixture
def prefix(checkout: Project) -> Path:
    return checkout.root / "build" / "envs" / f"{STACK}-aocl"


def test_the_package_has_amds_files_and_its_licence(checkout: Project, archive: Path) -> None:
    [file] = (checkout.root / "build" / "channel" / "linux-64").glob("amdlibm-*-aocl_*.conda")
    found = {member.name: content for member, content in canonical.members(file)}
    with tarfile.open(archive) as tar:
        library = tar.extractfile("amd-libm/lib/libalm.so")
        assert library is not None
        assert found["lib/libalm.so"] == library.read()
    assert found["info/licenses/aocl-licence/LICENSE"].decode() == LICENCE
    index = json.loads(found["info/index.json"])
    assert index["license"] == "MIT AND LGPL-2.1-or-later AND LicenseRef-AOCL-LibM"
    assert aocl.keep(archive) in found["info/hash_input.json"].decode()


def test_theano_calls_amds_functions(prefix: Path, run: Run) -> None:
    result = run(prefix / "bin" / "python", "-c", COUNT)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert len(lines) == 3, result.stderr
    for arrays, loops, lacking, erf in lines[:2]:
        assert (arrays, loops, lacking) == ("4096", "4096", "0")
        assert float(erf) == pytest.approx(0.8427007929497149)
    assert lines[2] == ["1.0", "True"]


def test_the_environment_proves_itself(prefix: Path, run: Run) -> None:
    result = run(prefix / "bin" / "theano-fast", "verify", "--check", "libm")
    assert result.returncode == 0, result.stdout


def test_what_amds_library_computes_wrong_is_not_its_own(prefix: Path, run: Run) -> None:
    result = run(prefix / "bin" / "theano-fast", "info", "--json")
    known = json.loads(result.stdout)["amdlibm"]
    wrong = known["AMD's is wrong"]
    runnable = {2, 4, 8} if "avx512vl" in Path("/proc/cpuinfo").read_text() else {2, 4}
    assert {f"log of {lanes} lanes" for lanes in runnable} <= set(wrong)
    assert wrong["log of 2 lanes"] == "AMD's is -709, not -inf, at (0)"
    assert wrong["tanhf of 4 lanes"].endswith(", as on zen2")
    assert not {"log", "tanhf", "exp of 2 lanes", "sinh of 2 lanes"} & set(wrong)
    assert "erf of 2 lanes" in known["AMD's is missing"]


def test_a_processor_on_which_it_is_wrong_fails_verification(prefix: Path, run: Run) -> None:
    command = (prefix / "bin" / "theano-fast", "verify", "--check", "libm")
    result = run(*command, ELSEWHERE="1")
    assert result.returncode == 1, result.stdout
    assert "sinh of 2 lanes (_ZGVbN2v_amd_sinh) is 1" in " ".join(result.stdout.split())


def test_it_is_nobody_elses(checkout: Project) -> None:
    assert not (checkout.root / "envs").exists()
    assert (checkout.root / "build" / "locks" / f"{STACK}-aocl" / envs.LOCK_NAME).exists()
    # A channel that has both packages gives each stack its own.
    status, output = checkout.invoke("packages", f"--stack={STACK}")
    assert status == 0, output
    channel = str(checkout.root / "build" / "channel")
    for build, is_amds in ((STACK.replace("-", "_"), False), ("openblas_amdlibm_aocl", True)):
        solved = solver.call("solve", channel=channel, specs=[f"theano-stack * *_{build}"])
        [amdlibm] = [place for place in solved if "/amdlibm-" in place]
        assert ("aocl" in amdlibm) == is_amds


def test_a_truncated_archive_and_a_wrong_stack_are_one_error(
    checkout: Project, archive: Path, tmp_path: Path
) -> None:
    broken = tmp_path / archive.name
    broken.write_bytes(archive.read_bytes()[:-100])
    for stack, file, error in (
        (STACK, broken, errors.SourceUnavailable),
        ("openblas", archive, errors.UsageError),
    ):
        status, output = checkout.invoke("env", f"--stack={stack}", f"--amdlibm-archive={file}")
        assert status == error.exit_code, output
        assert output.startswith("error: ")
        assert len(output.splitlines()) == 2, output
