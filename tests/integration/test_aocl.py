"""Test ``--amdlibm-archive`` with a fake archive of AMD's AOCL-LibM.

The archive has the layout of AMD's archive. Its library is compiled from ``data/libalm.c``, which
has three wrong functions.
"""

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

# For each dtype, this program prints four numbers: the numbers of elements that the fake library
# computes for exp(x), for the fused loop exp(x) * x, and for erf(x) * x; and the value of erf(1).
# The library has no erf. The last line contains exp(0) from the scalar function, and True if the
# library counted calls of scalar functions.
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
    """Compile the fake library and pack it; return the archive."""
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
    """Copy this checkout, and install STACK with the fake library in the copy."""
    if envs.read_installed_digest(STACK) is None:
        pytest.skip(f"build/envs/{STACK} is not built")
    checkout = Project(tmp_path_factory.mktemp("aocl") / "checkout", CHECKOUT, paths.get_cache())
    status, output = checkout.invoke("env", f"--stack={STACK}", f"--amdlibm-archive={archive}")
    assert status == 0, output
    return checkout


@pytest.fixture
def prefix(checkout: Project) -> Path:
    """Return the prefix of the environment with the fake library."""
    return checkout.root / "build" / "envs" / f"{STACK}-aocl"


def test_the_package_has_amds_files_and_its_licence(checkout: Project, archive: Path) -> None:
    [file] = (checkout.root / "build" / "channel" / "linux-64").glob("amdlibm-*-aocl_*.conda")
    contents = {member.name: content for member, content in canonical.read_members(file)}
    with tarfile.open(archive) as tar:
        library = tar.extractfile("amd-libm/lib/libalm.so")
        assert library is not None
        assert contents["lib/libalm.so"] == library.read()
    assert contents["info/licenses/aocl-licence/LICENSE"].decode() == LICENCE
    index = json.loads(contents["info/index.json"])
    assert index["license"] == "MIT AND LGPL-2.1-or-later AND LicenseRef-AOCL-LibM"
    assert aocl.cache_archive(archive) in contents["info/hash_input.json"].decode()


def test_theano_calls_amds_functions(prefix: Path, run: Run) -> None:
    result = run(prefix / "bin" / "python", "-c", COUNT)
    lines = [line.split() for line in result.stdout.splitlines()]
    assert len(lines) == 3, result.stderr
    for array_count, loop_count, erf_count, erf in lines[:2]:
        assert (array_count, loop_count, erf_count) == ("4096", "4096", "0")
        assert float(erf) == pytest.approx(0.8427007929497149)
    assert lines[2] == ["1.0", "True"]


def test_the_environment_is_verified(prefix: Path, run: Run) -> None:
    result = run(prefix / "bin" / "theano-fast", "verify", "--check", "libm")
    assert result.returncode == 0, result.stdout


def test_inaccurate_functions_are_not_used(prefix: Path, run: Run) -> None:
    result = run(prefix / "bin" / "theano-fast", "info", "--json")
    survey = json.loads(result.stdout)["amdlibm"]
    wrong = survey["AMD's is wrong"]
    # The survey runs functions of 8 doubles only on a processor with AVX-512.
    lane_counts = {2, 4, 8} if "avx512vl" in Path("/proc/cpuinfo").read_text() else {2, 4}
    assert {f"log of {lanes} lanes" for lanes in lane_counts} <= set(wrong)
    assert wrong["log of 2 lanes"] == "AMD's is -709, not -inf, at (0)"
    assert wrong["tanhf of 4 lanes"].endswith(", as on zen2")
    assert not {"log", "tanhf", "exp of 2 lanes", "sinh of 2 lanes"} & set(wrong)
    assert "erf of 2 lanes" in survey["AMD's is missing"]


def test_a_function_that_is_wrong_on_this_processor_fails_verification(
    prefix: Path, run: Run
) -> None:
    """Verification finds an error that the survey during the build could not find."""
    command = (prefix / "bin" / "theano-fast", "verify", "--check", "libm")
    result = run(*command, ELSEWHERE="1")
    assert result.returncode == 1, result.stdout
    assert "sinh of 2 lanes (_ZGVbN2v_amd_sinh) is 1" in " ".join(result.stdout.split())


def test_no_other_stack_uses_amds_library(checkout: Project) -> None:
    assert not (checkout.root / "envs").exists()
    assert (checkout.root / "build" / "locks" / f"{STACK}-aocl" / envs.LOCK_NAME).exists()
    # The channel contains two packages of amdlibm: AMD's and this project's. Stacks choose one.
    status, output = checkout.invoke("packages", f"--stack={STACK}")
    assert status == 0, output
    channel = str(checkout.root / "build" / "channel")
    for build, is_amds in ((STACK.replace("-", "_"), False), ("openblas_amdlibm_aocl", True)):
        solved = solver.call("solve", channel=channel, specs=[f"theano-stack * *_{build}"])
        [amdlibm] = [address for address in solved if "/amdlibm-" in address]
        assert ("aocl" in amdlibm) == is_amds


def test_a_truncated_archive_and_a_wrong_stack_are_errors(
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
