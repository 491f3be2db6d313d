"""Machines with one home and different CPUs must not load each other's machine code.

Without the patch the compiledir's name is the same on all of them, and an older CPU dies of SIGILL
in the modules that a newer one compiled.
"""

import numpy as np
import pytest
from theano import configdefaults
from theano.gof.cmodule import GCC_compiler

CPUINFO = """\
processor\t: 0
vendor_id\t: GenuineIntel
cpu family\t: 6
model\t\t: {model}
model name\t: Some CPU @ 2.10GHz
stepping\t: 7
cpu MHz\t\t: {mhz}
flags\t\t: {flags}
power management:

processor\t: 1
vendor_id\t: GenuineIntel
model\t\t: 1
"""
FLAGS = "fpu sse sse2 pni ssse3 sse4_1 sse4_2 popcnt avx f16c fma avx2 bmi1 bmi2 avx512f sha_ni"


@pytest.fixture
def features(tmp_path):
    def features(model=85, mhz="2100.000", flags=FLAGS):
        cpuinfo = tmp_path / "cpuinfo"
        cpuinfo.write_text(CPUINFO.format(model=model, mhz=mhz, flags=flags))
        return configdefaults.cpu_features(str(cpuinfo))

    return features


def test_identical_machines_share(features):
    reordered = " ".join(reversed(FLAGS.split()))
    with_mitigations = FLAGS + " ibrs stibp md_clear arat hwp cpuid_fault"
    assert features() == features(mhz="800.000") == features(flags=reordered)
    assert features() == features(flags=with_mitigations)


@pytest.mark.parametrize("missing", ["avx512f", "fma", "bmi2", "popcnt", "sse4_2", "sha_ni"])
def test_machines_with_fewer_instructions_do_not(features, missing):
    assert features() != features(flags=FLAGS.replace(missing, ""))


def test_other_models_do_not(features):
    assert features() != features(model=143)


def test_unknown_machines_have_a_name(tmp_path):
    assert configdefaults.cpu_features(str(tmp_path / "missing"))


def test_default_compiledir_names_cpu_python_numpy_and_compiler():
    name = configdefaults.default_compiledir_format % configdefaults.compiledir_format_dict
    assert configdefaults.cpu_features() in name
    assert np.__version__ in name
    assert configdefaults.compiledir_format_dict["python_version"] in name
    assert configdefaults.gcc_version_str in name


def test_theanorc_can_name_the_stack_too(run_python, tmp_path):
    (tmp_path / ".theanorc").write_text(
        "[global]\ncompiledir_format = compiledir_mkl-%(cpu_features)s\n"
    )
    result = run_python("import theano; print(theano.config.compiledir)")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith("compiledir_mkl-" + configdefaults.cpu_features())


# By g++'s name: that of /proc/cpuinfo, of what it makes code for unasked.
INSTRUCTIONS = {
    **{
        name: name for name in ("3dnow", "abm", "adx", "aes", "avx", "avx2", "bmi2", "cx16", "f16c")
    },
    **{name: name for name in ("fma", "fma4", "gfni", "mmx", "movbe", "popcnt", "sse", "sse2")},
    **{name: name for name in ("sse4a", "ssse3", "tbm", "vaes", "vpclmulqdq", "xop")},
    **{
        f"avx512{name}": f"avx512{name}"
        for name in ("bw", "cd", "dq", "er", "f", "ifma", "pf", "vl")
    },
    **{
        f"avx512{name}": f"avx512_{name}" for name in ("4fmaps", "4vnniw", "bf16", "bitalg", "fp16")
    },
    **{
        f"avx512{name}": f"avx512_{name}" for name in ("vbmi2", "vnni", "vp2intersect", "vpopcntdq")
    },
    **{f"amx-{name}": f"amx_{name}" for name in ("bf16", "int8", "tile")},
    **{"avx512vbmi": "avx512vbmi", "avxvnni": "avx_vnni", "bmi": "bmi1", "lzcnt": "abm"},
    **{"pclmul": "pclmulqdq", "sahf": "lahf_lm", "sha": "sha_ni", "sse3": "pni"},
    **{"sse4.1": "sse4_1", "sse4.2": "sse4_2"},
}
# What it has code of for who asks: the system's, locks, random numbers, prefetching.
ON_REQUEST = {
    *("cldemote", "clflushopt", "clwb", "clzero", "enqcmd", "fsgsbase", "fxsr", "hle", "hreset"),
    *("kl", "lwp", "movdir64b", "movdiri", "mwaitx", "pconfig", "pku", "prefetchwt1", "prfchw"),
    *("ptwrite", "rdpid", "rdrnd", "rdseed", "rtm", "serialize", "sgx", "shstk", "tsxldtrk"),
    *("uintr", "waitpkg", "wbnoinvd", "widekl", "xsave", "xsavec", "xsaveopt", "xsaves"),
}


@pytest.mark.parametrize("name", INSTRUCTIONS)
def test_all_that_code_is_made_for_counts(features, name):
    every = " ".join(INSTRUCTIONS.values()).split()
    rest = [each for each in every if each != INSTRUCTIONS[name]]
    assert features(flags=" ".join(rest)) != features(flags=" ".join(every))


def test_nothing_else_is_told_to_gcc():
    GCC_compiler.compile_args()
    told = {flag.removeprefix("-m").removeprefix("no-") for flag in GCC_compiler.march_flags}
    told = {name for name in told if name[0] != "-" and "=" not in name}
    assert told <= {*INSTRUCTIONS, *ON_REQUEST}
