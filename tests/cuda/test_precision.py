"""float32 stays float32 in cuDNN unless dnn.tf32 is set."""

import pytest

SHOW = """
import compile as stubs
stubs.start()
import theano
from theano.gpuarray import dnn
print(dnn.GpuDnnConv().c_compile_args())
"""


@pytest.mark.parametrize("tf32", [False, True])
def test_tf32_is_compiled_in_when_asked(run, tf32):
    done = run("-c", SHOW, flags=f"dnn.tf32={tf32}")
    assert done.returncode == 0, done.stderr
    assert ("-DTHEANO_DNN_TF32" in done.stdout) is tf32
