"""Check results of NumPy 1.13.3, and that NumPy uses CBLAS."""

import numpy
import numpy.testing

assert numpy.__version__ == "1.13.3"
rng = numpy.random.RandomState(0)
a = rng.standard_normal((200, 200))

u, s, vt = numpy.linalg.svd(a)
assert numpy.allclose((u * s).dot(vt), a)

w, v = numpy.linalg.eigh(a + a.T)
assert numpy.allclose((v * w).dot(v.T), a + a.T)

z = a + 1j * a.T
assert numpy.allclose(numpy.vdot(z, z), (abs(z) ** 2).sum())
assert numpy.allclose(z.dot(z), a.dot(a) - a.T.dot(a.T) + 1j * (a.dot(a.T) + a.T.dot(a)))
assert numpy.allclose(numpy.fft.ifft(numpy.fft.fft(z)), z)

# Without CBLAS, numpy.dot runs a loop of its own instead of calling BLAS.
assert b"libcblas.so.3" in open(numpy.core.multiarray.__file__, "rb").read()
