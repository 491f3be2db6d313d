"""What one process has compiled, another finds.

Without the patch, some ops were compiled again by every process: each pays for a run of g++.
"""

import pickle

import pytest
from theano.gof.cmodule import KeyData

FUNCTION = """
import theano, theano.tensor as tt
from theano.gof.cc import CLinker

compiled = []
compile_cmodule = CLinker.compile_cmodule

def recorded(self, *args, **kwargs):
    compiled.append([str(node.op) for node in self.node_order])
    return compile_cmodule(self, *args, **kwargs)

CLinker.compile_cmodule = recorded
x = tt.dmatrix()
# Ops without properties, and one whose C code is in a file.
outputs = [tt.dot(x, x), tt.alloc(x[0, 0], 3), x.dimshuffle(1, 0) + 0, tt.nnet.softmax(x)]
theano.function([x], outputs)
"""


def test_a_second_process_compiles_nothing(run_python):
    first = run_python(FUNCTION + "assert compiled")
    assert first.returncode == 0, first.stderr
    second = run_python(FUNCTION + "assert not compiled, compiled", PYTHONHASHSEED="1")
    assert second.returncode == 0, second.stderr


class Failing:
    """Cannot be pickled, by an error that is not pickle's."""

    def __reduce__(self):
        raise OSError("no room")


def test_a_key_is_written_whole_or_not(tmp_path):
    file = tmp_path / "key.pkl"
    data = KeyData({"key"}, "hash", str(file), str(tmp_path / "module.so"))
    data.save_pkl()
    before = file.read_bytes()
    assert pickle.loads(before).keys == {"key"}
    data.keys.add(Failing())
    with pytest.raises(OSError, match="no room"):
        data.save_pkl()
    assert file.read_bytes() == before
    assert list(tmp_path.iterdir()) == [file]
