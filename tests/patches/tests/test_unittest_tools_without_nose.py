"""tests/without-nose.patch: theano.tests.unittest_tools can be imported without nose.

DebugMode imports this module to print an error. Programs import it to call verify_grad. Without the
patch, the module needs nose and parameterized, which no environment has.
"""


def test_unittest_tools_need_no_nose(run_python):
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
