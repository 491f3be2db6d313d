"""A process compiles several modules with kernels in one run of g++, and later processes none.

Without cuda/gpuarray-kernels.patch, each process compiles the modules of reductions again.
"""

import json
from pathlib import Path

import pytest

COMPILATION = Path(__file__).parents[2] / "bench" / "compilation.py"

# Append the command of each run of g++ that compiles modules to the list `started`.
COUNT = """
import json, sys
started = []
def hook(event, arguments):
    if event == "subprocess.Popen" and any(str(part).endswith(".cpp") for part in arguments[1]):
        started.append(arguments[1])
sys.addaudithook(hook)
"""
# Run bench/compilation.py; then print the number of runs of g++.
STEP = f"""{COUNT}
import runpy
runpy.run_path({str(COMPILATION)!r}, run_name="__main__")
print(len(started))
"""
# Sum squares in two types: the kernels have the same names and different sources. Print the number
# of runs of g++, and whether the results are correct.
PROGRAM = f"""{COUNT}
if PREPARE:
    import compile as stubs
    stubs.start()
import numpy as np
import theano
import theano.tensor as T
x, y = T.ftensor3(), T.dtensor3()
mode = theano.compile.get_mode("FAST_RUN").including("gpuarray")
sums = [variable for v in (x, y) for variable in (T.sqr(v).sum(2), v.sum(2), T.sqr(v).sum())]
function = theano.function([x, y], sums, mode=mode)
ops = [type(node.op).__name__ for node in function.maker.fgraph.toposort()]
assert ops.count("GpuCAReduceCuda") == 6, ops
value = np.arange(24).reshape(2, 3, 4)
results = function(value.astype("float32"), value.astype("float64"))
expected = [(value**2).sum(2), value.sum(2), (value**2).sum()] * 2
correct = [bool((result == e).all()) for result, e in zip(results, expected)]
print(json.dumps([len(started), correct]))
"""


@pytest.fixture
def compiledir(tmp_path):
    """Return the flag for an empty compiledir."""
    return f"base_compiledir={tmp_path}/compiled"


def test_modules_with_equal_names_of_kernels_are_compiled_together(emulate, compiledir):
    """Strings with the names of the kernels do not conflict, and the results are correct."""
    done = emulate("-c", PROGRAM.replace("PREPARE", "False"), flags=f"cmodule.jobs=1,{compiledir}")
    assert done.returncode == 0, done.stderr
    n_runs, correct = json.loads(done.stdout.splitlines()[-1])
    assert correct == [True] * 6
    assert "which takes longer" not in done.stderr
    assert n_runs < 6


def test_another_process_compiles_nothing(run, compiledir):
    """The second process compiles neither a module by g++ nor a kernel by NVRTC."""
    program = PROGRAM.replace("PREPARE", "True")
    first, second = (run("-c", program, flags=f"dnn.enabled=False,{compiledir}") for _ in range(2))
    assert first.kernels
    assert second.returncode == 0, second.stderr
    assert json.loads(second.stdout.splitlines()[-1])[0] == 0
    assert second.kernels == []


# Compile a function with an op whose kernel contains a name that is not declared; print the error.
BROKEN = """
import compile as stubs
stubs.start()
import theano
from theano.gpuarray import basic_ops
from theano.gpuarray.type import GpuArrayType
eye = basic_ops.GpuEye.gpu_kernels
def gpu_kernels(self, node, name):
    (kernel,) = eye(self, node, name)
    kernel.code = kernel.code.replace("for (", "not_declared(); for (")
    return [kernel]
basic_ops.GpuEye.gpu_kernels = gpu_kernels
n = theano.tensor.lscalar()
try:
    theano.function([n], basic_ops.GpuEye("float32", None)(n, n, n))
except RuntimeError as error:
    print(error)
"""
# Multiply arrays by constants of several types and layouts. Print the commands of g++, the number
# of constants on the device, and whether the results are correct.
CONSTANTS = f"""{COUNT}
import numpy as np
import theano
import theano.tensor as T
from theano.gpuarray.type import GpuArrayConstant
types = ["bool", "int8", "int64", "uint16", "float32", "float64"]
matrices = [(np.arange(60).reshape(6, 10) % 7).astype(name) for name in types]
constants = [m[::2, ::-3] for m in matrices] + [m.T[:3, :4] for m in matrices]
inputs = [T.matrix(dtype=c.dtype) for c in constants]
values = [(np.arange(12).reshape(3, 4) % 5).astype(c.dtype) for c in constants]
def combine(x, c):
    return x & c if c.dtype == bool else x * c
function = theano.function(inputs, [combine(x, T.constant(c)) for x, c in zip(inputs, constants)])
nodes = function.maker.fgraph.toposort()
n_constants = len({{v for node in nodes for v in node.inputs if isinstance(v, GpuArrayConstant)}})
pairs = zip(function(*values), map(combine, values, constants))
correct = all(bool((result == expected).all()) for result, expected in pairs)
print(json.dumps([started, n_constants, correct]))
"""


def test_the_optimizer_compiles_no_module_to_transfer_constants(emulate, compiledir):
    """One run of g++ compiles all modules, with -O1 unless a flag sets another level."""
    done = emulate("-c", CONSTANTS, flags=f"cmodule.jobs=1,{compiledir}")
    assert done.returncode == 0, done.stderr
    commands, n_constants, correct = json.loads(done.stdout.splitlines()[-1])
    assert correct
    assert n_constants >= 12
    (command,) = commands
    assert [part for part in command if part.startswith("-O")] == ["-O3", "-O1", "-O0"]


@pytest.mark.parametrize("graph", ["lstm", "transformer"])
def test_a_training_step_from_a_warm_cache_needs_no_compiler(run, compiledir, graph):
    """Print the seconds until the first result, by phase, from an empty and from a warm cache."""
    device = "device=cuda0,force_device=True,dnn.enabled=False,gcc.cxxflags="
    n_runs, n_kernels = [], []
    for cache in ("empty", "warm"):
        done = run("-c", STEP, "theano", graph, flags=f"{device},{compiledir}")
        assert done.returncode == 0, done.stderr
        measured, n_started = map(json.loads, done.stdout.splitlines()[-2:])
        n_runs.append(n_started)
        n_kernels.append(len(done.kernels))
        phases = {phase: round(seconds, 2) for phase, seconds in measured["phases"].items()}
        print(graph, f"{cache} cache: {n_started} runs of g++, {n_kernels[-1]} kernels,", phases)
    assert n_runs[0] > n_runs[1] == 0
    assert n_kernels[0] > n_kernels[1] == 0


def test_threads_compile_the_kernels_of_modules(run, compiledir, tmp_path):
    """Each kernel is compiled once: libgpuarray receives the kernels that threads compile."""
    flags = f"dnn.enabled=False,{compiledir}"
    early = tmp_path / "early"
    done = run("-c", PROGRAM.replace("PREPARE", "True"), flags=flags, EARLY_KERNELS=str(early))
    assert done.returncode == 0, done.stderr
    assert set(done.kernels) == {("sm_90", "0")}
    # Each sum along an axis has one kernel. Each sum of all elements has two kernels.
    assert len(early.read_text().splitlines()) == 8
    files = [path for path in tmp_path.rglob("gpuarray_kernels/*/*/*") if path.is_file()]
    assert len(done.kernels) == len(files) - 6


def test_a_kernel_that_does_not_compile_early_has_its_error(run, compiledir, tmp_path):
    early = tmp_path / "early"
    done = run("-c", BROKEN, flags=compiledir, EARLY_KERNELS=str(early))
    assert done.returncode == 0, done.stderr
    assert "NVRTC_ERROR_COMPILATION" in done.stdout
    # First a thread compiles the kernel, then libgpuarray compiles it. Both compilations fail.
    assert early.read_text().count("sm_90 6") == 1
    assert done.kernels.count(("sm_90", "6")) == 1


# Initialize the device: libgpuarray requests the kernels of its BLAS. NVRTC compiles them for a
# Blackwell GPU, for which the environment has no machine code.
START = "import compile as stubs; stubs.start()"
BLACKWELL = {"CAPABILITY": "120"}
# Request a kernel ahead, but initialize no module. Wait at most 60 seconds until a thread has
# compiled the kernel.
AHEAD = f"""{START}
import os, time, types
from theano.gpuarray import early_kernels, elemwise_kernels
source = '#include "cluda.h"' + chr(10) + 'KERNEL void k(float *x) {{ x[0] = 1; }}'
code = elemwise_kernels.declare_kernels([source], "k")
module = types.SimpleNamespace(support_code=[code], hash_placeholder="HASH", code_hash="")
early_kernels.compile_kernels_ahead([module])
end = time.time() + 60
while not os.path.exists(os.environ["EARLY_KERNELS"]) and time.time() < end:
    time.sleep(0.01)
"""


@pytest.mark.parametrize("cached", [False, True])
def test_threads_do_not_wait_for_a_kernel_of_libgpuarray(run, compiledir, tmp_path, cached):
    """libgpuarray passes the header of all kernels, although it has cached its own kernels."""
    if cached:
        assert run("-c", START, flags=compiledir, **BLACKWELL).kernels
    early = tmp_path / "early"
    done = run("-c", AHEAD, flags=compiledir, EARLY_KERNELS=str(early), **BLACKWELL)
    assert done.returncode == 0, done.stderr
    assert early.read_text() == "sm_90 0\n"


@pytest.mark.parametrize(("capability", "architecture"), [("75", "sm_75"), ("120", "sm_90")])
def test_the_driver_translates_no_kernel_that_a_thread_compiled(
    run, compiledir, tmp_path, capability, architecture
):
    """Threads compile to machine code. On Blackwell, the driver translates PTX of compute_90."""
    files = {name: tmp_path / name.lower() for name in ("EARLY_KERNELS", "TRANSLATIONS")}
    settings = {name: str(file) for name, file in files.items()}
    program = PROGRAM.replace("PREPARE", "True")
    flags = f"dnn.enabled=False,{compiledir}"
    done = run("-c", program, flags=flags, CAPABILITY=capability, **settings)
    assert done.returncode == 0, done.stderr
    assert set(done.kernels) == {(architecture, "0")}
    n_early, n_translated = (
        len(file.read_text().splitlines()) if file.exists() else 0 for file in files.values()
    )
    print(
        f"{len(done.kernels)} kernels, {n_early} in threads, the driver translates {n_translated}"
    )
    assert n_early >= 8
    assert n_translated == (len(done.kernels) if capability == "120" else 0)


@pytest.mark.parametrize("capability", ["75", "80", "86", "89", "90"])
def test_the_kernels_of_libgpuarrays_blas_are_shipped(run, compiledir, tmp_path, capability):
    """NVRTC compiles no kernel when a device is initialized, and the driver translates none."""
    translations = tmp_path / "translations"
    variables = {"CAPABILITY": capability, "TRANSLATIONS": str(translations)}
    done = run("-c", START, flags=compiledir, **variables)
    assert done.returncode == 0, done.stderr
    assert done.kernels == []
    assert not translations.exists()
    files = [path for path in tmp_path.rglob("gpuarray_kernels/*/*/*") if path.is_file()]
    assert len(files) == 6


def test_a_device_of_another_architecture_has_other_kernels(run, compiledir):
    """libgpuarray's key is the same for both devices: both are compiled for compute_90."""
    kernels = [run("-c", START, flags=compiledir, CAPABILITY=c).kernels for c in ("100", "120")]
    assert kernels[0] == kernels[1] != []
    assert run("-c", START, flags=compiledir, CAPABILITY="100").kernels == []


def test_a_damaged_kernel_is_compiled_again(run, compiledir, tmp_path):
    """A file that is too short, as after a loss of power, is replaced."""
    n_kernels = len(run("-c", START, flags=compiledir, **BLACKWELL).kernels)
    files = [path for path in tmp_path.rglob("gpuarray_kernels/*/*/*") if path.is_file()]
    assert len(files) == n_kernels
    for number, file in enumerate(files):
        content = file.read_bytes()
        file.write_bytes(content[: len(content) * number // n_kernels])
    done = run("-c", START, flags=compiledir, **BLACKWELL)
    assert done.returncode == 0, done.stderr
    assert len(done.kernels) == n_kernels
    assert run("-c", START, flags=compiledir, **BLACKWELL).kernels == []


def test_kernels_that_others_could_have_written_are_not_loaded(run, tmp_path):
    folder = tmp_path / "cached"
    folder.mkdir()
    folder.chmod(0o777)
    for _ in range(2):
        assert run("-c", START, flags=f"gpuarray.cache_path={folder}", **BLACKWELL).kernels
