"""tests/without-nose.patch: theano.test() names the missing tests and packages.

Without the patch, it reports nothing if no tests are installed.
"""


def test_missing_packages_are_named(run_python):
    result = run_python("import sys, theano; sys.modules['theano.gof.tests'] = None; theano.test()")
    assert result.returncode == 1
    assert "not installed: pytest, parameterized, theano-tests" in result.stderr


def test_given_files_need_no_other_tests(run_python):
    result = run_python("import theano; theano.test('some.py')")
    assert result.stderr.endswith("not installed: pytest, parameterized\n")
