"""build/compiled-with-the-package.patch compiles the virtual machine and Scan's loop with Theano.

Without the patch, the first process that uses a new compiledir compiles both into the compiledir.
"""

import importlib

import pytest

PROGRAM = """
import theano, theano.tensor as tt
x = tt.dvector()
sums, _ = theano.scan(lambda value, total: total + value, [x], [x[0] * 0])
function = theano.function([x], sums[-1])
print(type(function.fn).__name__, function([1, 2, 3]))
"""


def test_extensions_are_not_compiled_into_the_compiledir(run_python, tmp_path):
    result = run_python(PROGRAM, flags=f"base_compiledir={tmp_path}/compiled")
    assert result.stdout.split() == ["CVM", "6.0"], result.stderr
    extensions = ("cutils_ext", "lazylinker_ext", "scan_steps")
    directories = {file.name for file in tmp_path.glob("compiled/*/*") if file.is_dir()}
    assert directories
    assert not directories & set(extensions)


@pytest.mark.parametrize(
    "name",
    ["theano.gof.cutils_ext", "theano.gof.lazylinker_ext", "theano.scan_module.scan_steps"],
)
def test_extensions_are_in_the_package(name):
    assert importlib.import_module(name).__file__.endswith(".so")
