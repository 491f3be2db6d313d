"""build/modules-are-cached.patch caches all modules, so that another process finds them.

Without the patch, each process compiles the modules of some ops again.
"""

import pickle

import pytest
from recording import COMPILED
from theano.gof.cmodule import KeyData

FUNCTION = f"""{COMPILED}
x = tt.dmatrix()
# Use ops without properties, and an op whose C code is in a file.
outputs = [tt.dot(x, x), tt.alloc(x[0, 0], 3), x.dimshuffle(1, 0) + 0, tt.nnet.softmax(x)]
theano.function([x], outputs)
"""


def test_a_second_process_compiles_nothing(run_python):
    first = run_python(FUNCTION + "assert compiled")
    assert first.returncode == 0, first.stderr
    second = run_python(FUNCTION + "assert not compiled, compiled", PYTHONHASHSEED="1")
    assert second.returncode == 0, second.stderr


class Unpicklable:
    """An object that raises OSError, not PicklingError, when it is pickled."""

    def __reduce__(self):
        raise OSError("no room")


def test_a_key_file_is_written_completely_or_not_at_all(tmp_path):
    file = tmp_path / "key.pkl"
    data = KeyData({"key"}, "hash", str(file), str(tmp_path / "module.so"))
    data.save_pkl()
    before = file.read_bytes()
    assert pickle.loads(before).keys == {"key"}
    data.keys.add(Unpicklable())
    with pytest.raises(OSError, match="no room"):
        data.save_pkl()
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]


FROM_A_FILE = """
import theano
class OfFile(theano.gof.COp):
    __props__ = ()
    def __init__(self): super().__init__(["{file}"], "APPLY_SPECIFIC(compute)")
    def make_node(self, x): return theano.Apply(self, [x], [x.type()])
x = theano.tensor.dscalar()
print(theano.function([x], OfFile()(x))(1.0))
"""
CODE = """#section support_code_apply
int APPLY_SPECIFIC(compute)(PyArrayObject *x, PyArrayObject **z) {{
    Py_XDECREF(*z);
    *z = (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER);
    *(double *)PyArray_DATA(*z) += {number};
    return 0;
}}
"""


def test_code_that_changed_is_compiled_again(run_python, tmp_path):
    """An op whose code is in a file is compiled again when the file changes."""
    file = tmp_path / "code.c"
    for number in (1, 2, 1, 3):
        file.write_text(CODE.format(number=number))
        completed = run_python(FROM_A_FILE.format(file=file), flags=f"base_compiledir={tmp_path}")
        assert completed.stdout.split() == [f"{number + 1}.0"], completed.stderr
