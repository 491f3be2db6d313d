"""Check results of SciPy 0.19.1."""

import numpy
import scipy.linalg
import scipy.optimize
import scipy.signal
import scipy.sparse.linalg
import scipy.special
import scipy.stats

assert scipy.__version__ == "0.19.1"
rng = numpy.random.RandomState(0)
a = rng.standard_normal((200, 200))
b = rng.standard_normal(200)
z = a[0] + 1j * a[1]

# Fortran compilers have different calling conventions for functions that return complex numbers.
for dtype in "FD":
    dotu, dotc = scipy.linalg.get_blas_funcs(("dotu", "dotc"), dtype=dtype)
    assert numpy.allclose(dotu(z, z), (z * z).sum(), rtol=1e-4)
    assert numpy.allclose(dotc(z, z), (z.conj() * z).sum(), rtol=1e-4)

assert numpy.allclose(a.dot(scipy.linalg.solve(a, b)), b)
c = scipy.linalg.cholesky(a.dot(a.T) + numpy.eye(200), lower=True)
assert numpy.allclose(c.dot(c.T), a.dot(a.T) + numpy.eye(200))
t, q = scipy.linalg.schur(a, output="complex")
assert numpy.allclose(q.dot(t).dot(q.conj().T), a)

s = scipy.sparse.eye(200, format="csc") * 10 + scipy.sparse.random(200, 200, 0.05, format="csc")
assert numpy.allclose(s.dot(scipy.sparse.linalg.spsolve(s, b)), b)
largest = scipy.sparse.linalg.eigsh(s + s.T, k=1)[0]
assert numpy.allclose(largest, numpy.linalg.eigvalsh((s + s.T).toarray())[-1])

assert numpy.allclose(scipy.special.gamma([0.5, 5]), [numpy.pi**0.5, 24])
assert numpy.isclose(scipy.special.jv(0, 2.404825557695773), 0)
assert numpy.isclose(scipy.stats.norm.ppf(0.975), 1.959963984540054)
assert numpy.allclose(scipy.optimize.minimize(scipy.optimize.rosen, [0, 0]).x, 1, atol=1e-3)
assert numpy.allclose(scipy.signal.convolve2d([[1, 2]], [[3, 4]]), [[3, 10, 8]])
