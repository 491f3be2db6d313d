"""cuDNN computes float32 convolutions in float32, unless dnn.tf32 permits TensorFloat-32."""

import pytest

SHOW = """
import compile as stubs
stubs.start()
import theano
from theano.gpuarray import dnn
print(dnn.GpuDnnConv().c_compile_args())
"""


@pytest.mark.parametrize("tf32", [False, True])
def test_dnn_tf32_adds_a_compiler_flag(run, tf32):
    done = run("-c", SHOW, flags=f"dnn.tf32={tf32}")
    assert done.returncode == 0, done.stderr
    assert ("-DTHEANO_DNN_TF32" in done.stdout) is tf32
