"""tests/without-nose.patch: theano.test() runs pytest.

Without the patch, theano.test() needs nose, which does not run on Python 3.10 and later.
"""

import sys


def test_theano_test_runs_pytest(run_python, tmp_path):
    # pytest collects a class T_* only if theano.test() configures it to do so.
    (tmp_path / "test_some.py").write_text(
        "class T_some:\n    def test_something(self):\n        pass\n"
    )
    result = run_python(
        f"""
        import sys
        sys.path[:] = {sys.path!r}
        import theano
        sys.exit(theano.test("-p", "no:cacheprovider", {str(tmp_path / "test_some.py")!r}))
        """
    )
    assert result.returncode == 0, result.stderr
    assert "1 passed" in result.stdout
