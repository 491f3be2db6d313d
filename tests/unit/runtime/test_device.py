"""Test that the check ``device`` finds wrong results and memory leaks; the device is fake."""

import pytest

np = pytest.importorskip("numpy", reason="the builder's Python has no NumPy")
theano = pytest.importorskip("theano", reason="the builder's Python has no Theano")
device = pytest.importorskip("theano_fast.checks.device")
T = theano.tensor

CONV2D = T.nnet.conv2d


@pytest.fixture(autouse=True)
def isolate():
    """Replace the fixture of tests/unit/conftest.py, because these tests start a compiler."""


@pytest.mark.parametrize("wrong", [1.5, np.nan])
def test_the_largest_error_is_reported(wrong):
    expected = np.array([[1.0, 2.0], [100.0, 4.0]])
    allowed = expected / 100
    assert device.compare_results("product", expected + allowed / 2, expected, allowed) == []
    actual = expected + np.array([[0, wrong], [1.5, 0]])
    (message,) = device.compare_results("product", actual, expected, allowed)
    assert message == f"product: the error is {wrong:.2g}, allowed is 0.02"
    assert device.compare_results("product", actual, expected, 0.02) != []


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_a_wrong_convolution_is_named(dtype, monkeypatch):
    factor = 1.0

    def conv2d(x, w, **options):
        if x.dtype == "float64":
            return CONV2D(x, w, **options)
        # Theano has no float16 convolution on the CPU. Sum in float32, like cuDNN.
        y = CONV2D(T.cast(x, "float32"), T.cast(w, "float32"), **options)
        return T.cast(y * np.float32(factor), dtype) if x.dtype == dtype else T.cast(y, x.dtype)

    def find_errors():
        failures, _ = device.check_convolutions()
        return [message.split(":")[0] for message in failures if "is not used" not in message]

    monkeypatch.setattr(T.nnet, "conv2d", conv2d)
    assert find_errors() == []
    factor = 1.02
    kinds = ("conv2d", "gradient of conv2d for the inputs", "gradient of conv2d for the weights")
    assert find_errors() == [f"{kind} in {dtype}" for kind in kinds]


class Context:
    """A fake GPU context; ``free_gmem`` is the device's free memory in bytes."""

    free_gmem = 1 << 40


@pytest.mark.parametrize(("allocated", "kept"), [([9, 0], 0), ([9, 0.01], 0.01), ([0, 9], 9)])
def test_memory_that_the_second_run_keeps_is_a_leak(allocated, kept):
    """The two runs of a proof allocate these numbers of GiB, and free nothing."""
    context = Context()
    sizes = iter(allocated)

    def allocate():
        context.free_gmem -= int(next(sizes) * 2**30)
        return [], {"gflops": 1}

    failures, measurements = device.run_proofs(context, (allocate,))
    assert measurements == {"gflops": 1, "kept": int(kept * 2**30)}
    leaks = ["9216 MiB of the device's memory are not freed"]
    assert failures == (leaks if kept == 9 else [])


def test_a_failed_proof_is_reported_once():
    assert device.run_proofs(Context(), (lambda: (["wrong product"], {}),))[0] == ["wrong product"]
