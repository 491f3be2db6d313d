"""build/flags-for-the-processor.patch puts the CPU's instructions into the compiledir's name.

Without the patch, machines with different CPUs and one home directory share a compiledir. Programs
on the older CPU load modules of the newer CPU, and SIGILL kills them.
"""

import numpy as np
from theano import configdefaults


def test_default_compiledir_names_cpu_python_numpy_and_compiler():
    name = configdefaults.default_compiledir_format % configdefaults.compiledir_format_dict
    assert configdefaults.cpu_features() in name
    assert np.__version__ in name
    assert configdefaults.compiledir_format_dict["python_version"] in name
    assert configdefaults.gcc_version_str in name


def test_compiledir_format_of_theanorc_can_contain_cpu_features(run_python, tmp_path):
    (tmp_path / ".theanorc").write_text(
        "[global]\ncompiledir_format = compiledir_mkl-%(cpu_features)s\n"
    )
    result = run_python("import theano; print(theano.config.compiledir)")
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip().endswith("compiledir_mkl-" + configdefaults.cpu_features())
