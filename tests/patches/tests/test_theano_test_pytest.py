"""Without the patch, theano.test() asks for nose, which does not run on Python 3.10 and later."""

import sys


def test_theano_test(run_python, tmp_path):
    # The class is named as only Theano's own tests are.
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
