"""Check numpy's results, the names of the BLAS and LAPACK that it uses, and its lazy submodules."""

import pathlib
import sys

import numpy

lazy = {"ctypeslib", "fft", "ma", "polynomial", "testing"}
assert lazy <= set(dir(numpy))
assert not {f"numpy.{name}" for name in lazy} & set(sys.modules)
assert numpy.ma is sys.modules["numpy.ma"]
assert numpy.polynomial.Polynomial([1, 2])(3) == 7
assert numpy.dtype("(2,3)f8").shape == (2, 3)
assert numpy.asmatrix("1 2; 3 4").sum() == 10

rng = numpy.random.default_rng(0)
a = rng.standard_normal((200, 200))

u, s, vt = numpy.linalg.svd(a)
assert numpy.allclose((u * s) @ vt, a)

w, v = numpy.linalg.eigh(a + a.T)
assert numpy.allclose((v * w) @ v.T, a + a.T)

z = a + 1j * a.T
assert numpy.allclose(numpy.vdot(z, z), (abs(z) ** 2).sum())
assert numpy.allclose(z @ z, a @ a - a.T @ a.T + 1j * (a @ a.T + a.T @ a))

assert numpy.allclose(numpy.fft.ifft(numpy.fft.fft(z)), z)

# Without CBLAS, numpy.dot is a plain loop.
assert b"libcblas.so.3" in pathlib.Path(numpy.core._multiarray_umath.__file__).read_bytes()

config = numpy.show_config(mode="dicts")["Build Dependencies"]
assert (config["blas"]["name"], config["lapack"]["name"]) == ("blas", "lapack")
