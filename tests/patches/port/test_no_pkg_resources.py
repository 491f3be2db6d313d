"""port/no-distutils.patch imports theano.gpuarray without setuptools.

Without the patch, the import fails without setuptools, because it needs pkg_resources.
"""


def test_theano_imports_without_pkg_resources(run_python):
    code = """
        import sys
        sys.modules["pkg_resources"] = None
        import theano.gpuarray.linalg
    """
    result = run_python(code)
    assert result.returncode == 0, result.stderr
