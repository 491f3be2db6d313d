"""Without the patch, the C code that runs a scan's steps does not compile on CPython 3.11."""


def test_scan_runs_in_c(run_python):
    result = run_python(
        """
        import numpy as np, theano, theano.tensor as tt
        from theano.scan_module import scan_perform_ext
        assert scan_perform_ext.perform.__module__.endswith("scan_perform")

        x = tt.dvector("x")
        sums, _ = theano.scan(lambda a, b: a + b, sequences=x, outputs_info=np.float64(0))
        assert (theano.function([x], sums)(np.arange(5.)) == np.cumsum(np.arange(5.))).all()
        """,
    )
    assert result.returncode == 0, result.stderr


def test_a_step_that_fails_raises_its_error(run_python):
    result = run_python(
        """
        import numpy as np, theano, theano.tensor as tt
        x, w = tt.dmatrix("x"), tt.dmatrix("w")
        steps, _ = theano.scan(lambda row, w: tt.dot(row, w), sequences=x, non_sequences=w)
        try:
            theano.function([x, w], steps, mode=theano.Mode(optimizer=None))(
                np.ones((2, 3)), np.ones((4, 5)))
        except ValueError as error:
            assert "scan_fn" in str(error), error
        else:
            raise SystemExit("no error")
        """
    )
    assert result.returncode == 0, result.stderr
