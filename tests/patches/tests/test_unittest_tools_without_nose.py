"""DebugMode's errors and programs that use verify_grad import theano.tests.unittest_tools.

Without the patch, that needs nose and parameterized, which no environment has; so does what
theano.sandbox.cuda has to say.
"""


def test_unittest_tools(run_python):
    result = run_python(
        """
        import sys
        sys.modules["nose"] = sys.modules["parameterized"] = None
        import numpy as np, theano, theano.tests.unittest_tools as utt
        from theano.compile.debugmode import BadThunkOutput
        x = theano.tensor.dvector()
        error = BadThunkOutput(2 * x, "one", np.ones(2), "two", np.zeros(2), [np.ones(2)])
        assert "thunk1" in str(error)
        utt.verify_grad(theano.tensor.tanh, [np.array([.1, .2])], rng=np.random.RandomState(0))
        """
    )
    assert result.returncode == 0, result.stderr


def test_the_old_back_end_tells_of_the_new_one(run_python):
    result = run_python("import theano.sandbox.cuda")
    assert "transition to the new GPU back-end" in result.stderr


def test_who_can_do_without_it_does(run_python):
    """As nolearn, by way of Lasagne: where nose is not, this was an ImportError."""
    result = run_python(
        """
        try:
            from theano.sandbox.cuda.basic_ops import gpu_contiguous
        except ImportError:
            print("without")
        """
    )
    assert result.stdout == "without\n", result.stderr
