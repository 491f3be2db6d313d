"""build/flags-for-the-processor.patch chooses g++'s flags by the processor's instructions.

Without the patch, g++ 10 tunes for znver2 on a Zen 4, and does not vectorize loops of Composites.
"""

import json
import re
import subprocess

import pytest
from expressions import EXPRESSIONS
from theano import config, gof, tensor
from theano.compile import mode
from theano.gof.cmodule import GCC_compiler
from theano.misc import cpu

V2 = "SSSE3 SSE41 SSE42 POPCNT "
HASWELL = V2 + "AVX F16C FMA3 AVX2 "
SKYLAKE_X = HASWELL + "AVX512F AVX512CD AVX512BW AVX512DQ AVX512VL AVX512_SKX "
ICELAKE = SKYLAKE_X + (
    "AVX512VNNI AVX512IFMA AVX512VBMI AVX512VBMI2 AVX512BITALG AVX512VPOPCNTDQ AVX512_ICL "
)
# Maps a processor to NumPy's names of its features beyond SSE3, and to its level in
# theano/misc/cpu.py. The mark names the source of the features. Q: the CPUID bits that
# `qemu-x86_64 -cpu MODEL` of QEMU 7.2 emulates. X: the CPUID bits of an Intel Xeon of model 207.
# No mark: the instructions that gcc's manual lists for -march=MODEL.
PROCESSORS = {
    "qemu64, kvm64 (Q)": ("", "x86-64"),
    "Opteron of 2007 (Q: Opteron_G3)": ("POPCNT", "x86-64"),
    "Core 2 (Q: Conroe)": ("SSSE3", "x86-64"),
    "Core 2 of 45 nm (Q: Penryn)": ("SSSE3 SSE41", "x86-64"),
    "Rosetta without AVX, as Nehalem": (V2, "sse4.2"),
    "Nehalem (Q)": (V2, "sse4.2"),
    "Goldmont (Q: Denverton)": (V2, "sse4.2"),
    "Tremont (Q: Snowridge)": (V2, "sse4.2"),
    "Silvermont": (V2, "sse4.2"),
    "Sandy Bridge (Q)": (V2 + "AVX", "avx"),
    "Piledriver (Q: Opteron_G5)": (V2 + "AVX F16C FMA3 FMA4 XOP", "avx"),
    "virtual machine without FMA": (V2 + "AVX AVX2", "avx2"),
    "virtual machine without F16C": (V2 + "AVX AVX2 FMA3", "fma"),
    "virtual machine without SSE4.2": (ICELAKE.replace("SSE42", ""), "x86-64"),
    "virtual machine without AVX512VL": (HASWELL + "AVX512F AVX512CD AVX512BW", "fma"),
    "Rosetta with AVX2, as Haswell": (HASWELL, "fma"),
    "QEMU's max (Q)": (HASWELL, "fma"),
    "Haswell (Q)": (HASWELL, "fma"),
    "Alder Lake, Gracemont": (HASWELL, "fma"),
    "Zen 1 (Q: EPYC)": (HASWELL, "fma"),
    "Zen 2": (HASWELL, "fma"),
    "Zen 3 (Q: EPYC-Milan)": (HASWELL, "fma"),
    "Knights Landing": (HASWELL + "AVX512F AVX512CD AVX512ER AVX512PF AVX512_KNL", "fma"),
    "Skylake-X": (SKYLAKE_X, "avx512"),
    "Ice Lake": (ICELAKE, "avx512"),
    "Zen 4, Zen 5": (ICELAKE, "avx512"),
    "Sapphire Rapids (X)": (ICELAKE + "AVX512FP16 AVX512_SPR", "avx512"),
    "a later one": (ICELAKE + "AVX1024F", "avx512"),
}
# Maps a macro, which g++ defines if it may use some instructions, to NumPy's name of these
# instructions.
MACROS = {
    **{f"__{name}__": name for name in ("SSSE3", "AVX", "F16C", "AVX2", "FMA4", "XOP")},
    **{"__SSE4_1__": "SSE41", "__SSE4_2__": "SSE42", "__POPCNT__": "POPCNT", "__FMA__": "FMA3"},
    **{f"__AVX512{name}__": f"AVX512{name}" for name in ("F", "CD", "BW", "DQ", "VL", "ER", "PF")},
    **{f"__AVX512{name}__": f"AVX512{name}" for name in ("VBMI", "VBMI2", "IFMA", "VNNI")},
}
# Maps a level without FMA to the features of its processors, and to their vector width in bytes.
WITHOUT_FMA = {
    "x86-64": ("", 16),
    "sse4.2": (V2, 16),
    "avx": (V2 + "AVX", 32),
    "avx2": (V2 + "AVX AVX2", 32),
}
VECTORIZED = re.compile(r"mod\.cpp:(\d+):\d+: optimized: +loop vectorized using (\d+) byte")


@pytest.fixture
def flags(monkeypatch):
    """Return a function that sets and returns the g++ flags for a processor."""

    def choose(features):
        """Choose flags by NumPy's names of the processor's features, separated by spaces."""
        chosen = cpu.join_flags(cpu.find_levels(features.split()))
        monkeypatch.setattr(GCC_compiler, "march_flags", chosen)
        return chosen

    return choose


def list_level_names(levels):
    return [level.name for level in levels]


def run_compiler(*arguments):
    completed = subprocess.run(arguments, capture_output=True, text=True, check=False)
    assert completed.returncode == 0, completed.stderr
    return completed


def find_vectorized_widths(expression, dtype, directory):
    """Compile an expression's loops; return the widths of their vectors in bytes."""
    x, y = (tensor.vector(dtype=dtype) for _ in range(2))
    output = eval(expression, {"tensor": tensor, "x": x, "y": y})
    graph = gof.FunctionGraph([x, y], [output], clone=True)
    mode.get_default_mode().optimizer.optimize(graph)
    (node,) = graph.apply_nodes
    node.op.prepare_node(node, None, None, "c")
    arguments = node.op.c_linker(node, []).make_compile_arguments()
    command, library = GCC_compiler.write_source(
        **{**arguments, "module_name": "module"}, location=str(directory)
    )
    command[command.index("-shared")] = "-S"
    command[command.index(library)] = str(directory / "module.s")
    notes = run_compiler(*command, "-fopt-info-vec-optimized").stderr
    return {int(width) for _, width in VECTORIZED.findall(notes)}


@pytest.mark.parametrize("processor", PROCESSORS)
def test_flags_allow_only_instructions_that_the_processor_has(processor, flags):
    features, level = PROCESSORS[processor]
    chosen = flags(features)
    assert ["x86-64", *list_level_names(cpu.find_levels(features.split()))][-1] == level
    macros = run_compiler(config.cxx, *chosen, "-xc++", "-dM", "-E", "/dev/null")
    defined = {words.split()[1] for words in macros.stdout.splitlines()}
    assert {MACROS[macro] for macro in defined & MACROS.keys()} <= {*features.split()}


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("level", ["fma", "avx512"])
@pytest.mark.parametrize("name", EXPRESSIONS)
@pytest.mark.filterwarnings("ignore:.*Supervisor")
def test_functions_are_vectorized(name, level, dtype, flags, tmp_path):
    """g++ vectorizes functions at the levels fma and avx512, with the full vector width."""
    # No other level has fused multiply-add.
    assert {level for _, level in PROCESSORS.values()} <= {*WITHOUT_FMA, "fma", "avx512"}
    features, width = {"fma": (HASWELL, 32), "avx512": (SKYLAKE_X, 64)}[level]
    flags(features)
    assert max(find_vectorized_widths(EXPRESSIONS[name], dtype, tmp_path), default=0) == width


@pytest.mark.parametrize("level", WITHOUT_FMA)
@pytest.mark.filterwarnings("ignore:.*Supervisor")
def test_arithmetic_is_vectorized_without_fma(level, flags, tmp_path):
    features, width = WITHOUT_FMA[level]
    flags(features)
    widths = find_vectorized_widths("x * y + tensor.maximum(x, 0)", "float64", tmp_path)
    assert max(widths, default=0) == width


# Prints g++'s flags, the number of processes that Theano started to choose them, the compiledir and
# a result.
PROGRAM = """
import json, subprocess
import theano
from theano import tensor
from theano.gof.cmodule import GCC_compiler
started = []
class Popen(subprocess.Popen):
    def __init__(self, command, *args, **kwargs):
        started.append(str(command))
        super().__init__(command, *args, **kwargs)
original, subprocess.Popen = subprocess.Popen, Popen
arguments = GCC_compiler.compile_args()
subprocess.Popen = original
x = tensor.dvector()
result = theano.function([x], tensor.tanh(x) * 2)([0.5])[0]
print(json.dumps([arguments, len(started), theano.config.compiledir, result]))
"""
# Maps a level to features. A processor without these features does not reach the level.
HIDDEN = {
    "avx512": "AVX512F AVX512_SKX",
    "fma": "FMA3 AVX512F AVX512_SKX",
    "sse4.2": "SSE42 POPCNT FMA3 AVX AVX2 AVX512F AVX512_SKX",
}


@pytest.fixture
def run(run_python):
    """Return a function that runs PROGRAM and returns g++'s flags, the compiledir and the log."""

    def run(flags="", hide=""):
        completed = run_python(PROGRAM, flags=flags, NPY_DISABLE_CPU_FEATURES=hide)
        assert completed.returncode == 0, completed.stderr
        arguments, started, compiledir, result = json.loads(completed.stdout)
        assert started == 0
        assert result == pytest.approx(0.9242343145200195, rel=1e-14)
        return arguments, compiledir, completed.stderr

    return run


def test_native_means_this_processor(run):
    plain, compiledir, _ = run()
    native, native_compiledir, _ = run("gcc.cxxflags=-march=native -mtune=native")
    assert native == plain
    assert native_compiledir == compiledir
    assert not any("native" in argument for argument in native)


def test_another_march_flag_is_not_changed(run):
    arguments, _, warnings = run("gcc.cxxflags=-march=x86-64")
    assert [
        argument for argument in arguments if argument.startswith(("-march", "-mavx", "-msse"))
    ] == ["-march=x86-64"]
    assert warnings == ""


def test_processes_with_different_features_can_share_a_compiledir(run, tmp_path):
    """Each process uses flags for its own features.

    Different processors of a cluster share a compiledir if the user named it.
    """
    flags = f"compiledir={tmp_path}/shared"
    all_arguments, *_ = run(flags)
    for name, hide in HIDDEN.items():
        arguments, _, warnings = run(flags, hide)
        assert (arguments != all_arguments) == (name in list_level_names(cpu.levels))
        assert not {*cpu.list_level_flags(name)} <= {*arguments}
        slow = name != "avx512" or "fma" not in list_level_names(cpu.levels)
        assert ("fused multiply-add" in warnings) == slow
    assert run(flags)[0] == all_arguments


def test_hidden_features_change_the_compiledir(run):
    _, first, _ = run()
    _, second, _ = run(hide=HIDDEN["sse4.2"])
    # A processor without levels has none of these features.
    assert (first == second) == (not cpu.levels)


def test_one_warning_names_the_slow_functions(run):
    _, _, warnings = run(hide=HIDDEN["fma"])
    (line,) = warnings.splitlines()
    assert "not vectorized" in line
