"""results/copies-of-functions.patch: threads can call copies of a function, and compile.

Without the patch, copies in different threads run the same inner function of a Scan or an
OpFromGraph at the same time, so results are wrong. Compilation in two threads raises
AssertionError.
"""

import sys
import threading

import numpy as np
import pytest
import theano
from theano import tensor as tt

X = tt.dmatrix()
INNER = {
    "Scan": lambda: theano.scan(lambda a, p: tt.sort(a) + p, X, [tt.zeros(3, "float64")])[0],
    "OpFromGraph": lambda: theano.OpFromGraph([X], [tt.sort(-tt.sort(X, axis=0), axis=0)])(X),
}


@pytest.fixture(autouse=True)
def _switch_threads_often():
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(interval)


def call_in_threads(*functions):
    """Call each function in its own thread; return the exceptions that the functions raised."""
    raised = []

    def call(function):
        try:
            function()
        except Exception as error:
            raised.append(error)

    threads = [threading.Thread(target=call, args=(function,)) for function in functions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return raised


@pytest.mark.parametrize("kind", INNER)
def test_copies_in_two_threads_compute_correct_results(kind):
    function = theano.function([X], [INNER[kind]()])
    values = [np.random.RandomState(seed).rand(20, 3) for seed in range(2)]
    expected = [function(value)[0] for value in values]

    def calls(function, value, expected):
        for _ in range(1000):
            assert np.array_equal(function(value)[0], expected)

    copies = function, function.copy()
    assert not call_in_threads(
        *(lambda i=i: calls(copies[i], values[i], expected[i]) for i in range(2))
    )


def test_an_error_releases_the_inner_function():
    function = theano.function([X], [INNER["Scan"]()])
    with pytest.raises(ValueError, match="mis-match"):
        function(np.ones((2, 5)))
    assert not call_in_threads(lambda: function.copy()(np.ones((2, 3))))


def test_six_threads_can_compile_at_the_same_time(run_python, tmp_path):
    """The compile cache is empty at first, so all threads compile."""
    completed = run_python(
        """
        import sys, threading
        sys.setswitchinterval(1e-5)
        import numpy as np, theano
        from theano import tensor as tt

        raised, x = [], tt.dvector()

        def compile(k):
            try:
                for i in range(8):
                    h, _ = theano.scan(
                        lambda a, p: a + p * k + i, x, [tt.constant(0, dtype="float64")]
                    )
                    one, other = theano.function([x], [tt.tanh(x * (k + 1)) + i, h])(np.ones(3))
                    assert np.allclose(one, np.tanh(k + 1) + i)
                    assert np.allclose(other[0], 1 + i)
            except Exception as error:
                raised.append(error)

        threads = [threading.Thread(target=compile, args=(k,)) for k in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not raised, raised
        """,
        flags=f"base_compiledir={tmp_path}/c",
    )
    assert completed.returncode == 0, completed.stderr


def test_a_process_can_compile_if_it_was_forked_while_another_thread_compiled(run_python):
    completed = run_python(
        """
        import os, threading
        import theano
        from theano.compile import threads

        held, done = threading.Event(), threading.Event()

        def hold():
            with threads.lock:
                held.set()
                done.wait()

        thread = threading.Thread(target=hold)
        thread.start()
        held.wait()
        child = os.fork()
        if not child:
            x = theano.tensor.dscalar()
            os._exit(int(theano.function([x], x + 1)(1)))
        done.set()
        thread.join()
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 2
        """
    )
    assert completed.returncode == 0, completed.stderr


@pytest.mark.parametrize("kind", INNER)
def test_two_functions_of_one_graph_can_run_in_two_threads(kind):
    """Without optimization, the functions share one op and thus the op's inner function."""
    mode = theano.Mode("cvm", None)
    functions = [theano.function([X], [output], mode=mode) for output in [INNER[kind]()] * 2]
    values = [np.random.RandomState(seed).rand(20, 3) for seed in range(2)]
    expected = [functions[0](value)[0] for value in values]

    def calls(i):
        for _ in range(300):
            assert np.array_equal(functions[i](values[i])[0], expected[i])

    assert not call_in_threads(*(lambda i=i: calls(i) for i in range(2)))
