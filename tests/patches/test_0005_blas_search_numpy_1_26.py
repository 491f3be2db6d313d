"""numpy 1.26 has no numpy.distutils.__config__.

Without the patch, the search for a BLAS raises AttributeError: theano cannot be imported unless
blas.ldflags is set.
"""


def test_search_for_a_blas(run_python):
    result = run_python(
        """
        import theano
        print(repr(theano.configdefaults.default_blas_ldflags()))
        """,
        "-W",
        "error",
        # The search that runs at import, where no theanorc says what it finds, is not this one.
        flags="blas.ldflags=",
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith("'")
