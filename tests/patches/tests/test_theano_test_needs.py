"""tests/without-nose.patch: theano.test() names the packages to install.

Without the patch, theano.test() reports nothing if Theano's tests are not installed.
"""


def test_missing_packages_are_named(run_python):
    result = run_python("import sys, theano; sys.modules['theano.gof.tests'] = None; theano.test()")
    assert result.returncode == 1
    assert "not installed: pytest, parameterized, theano-tests" in result.stderr


def test_theano_tests_are_not_needed_to_test_a_file(run_python):
    result = run_python("import theano; theano.test('some.py')")
    assert result.stderr.endswith("not installed: pytest, parameterized\n")
