"""Check results of scipy's main modules."""

import operator

import numpy
import scipy.linalg
import scipy.optimize
import scipy.sparse.linalg
import scipy.special
import scipy.stats

rng = numpy.random.default_rng(0)
a = rng.standard_normal((200, 200))
b = rng.standard_normal(200)
z = a[0] + 1j * a[1]

# BLAS implementations return complex numbers from Fortran functions in different ways.
for dtype in "FD":
    dotu, dotc = scipy.linalg.get_blas_funcs(("dotu", "dotc"), dtype=dtype)
    assert numpy.allclose(dotu(z, z), (z * z).sum(), rtol=1e-4)
    assert numpy.allclose(dotc(z, z), (z.conj() * z).sum(), rtol=1e-4)
assert numpy.isclose(scipy.linalg.blas.sdot(a[0], a[1]), a[0] @ a[1], rtol=1e-3)

assert numpy.allclose(a @ scipy.linalg.solve(a, b), b)
c = scipy.linalg.cholesky(a @ a.T + numpy.eye(200), lower=True)
assert numpy.allclose(c @ c.T, a @ a.T + numpy.eye(200))
t, q = scipy.linalg.schur(a, output="complex")
assert numpy.allclose(q @ t @ q.conj().T, a)

s = scipy.sparse.random(200, 200, 0.05, random_state=0, format="csc") + 10 * scipy.sparse.eye(
    200, format="csc"
)
assert numpy.allclose(s @ scipy.sparse.linalg.spsolve(s, b), b)
assert numpy.allclose(
    scipy.sparse.linalg.eigsh(s + s.T, k=1)[0], numpy.linalg.eigvalsh((s + s.T).toarray())[-1]
)

# Test operations on sparse matrices of all dtypes: compile-sparsetools-once.patch changes comparisons,
# and uses long's functions for long long.
for dtype in "?hlqLQdgD":
    x, y = (rng.integers(0, 3, (40, 60)).astype(dtype) for _ in "xy")
    for form in ("csr", "csc", "bsr"):
        for blocks in ((1, 1), (2, 3)) if form == "bsr" else ((),):
            matrices = [scipy.sparse.csr_matrix(i) for i in (x, y)]
            p, q = (i.tobsr(blocks) if blocks else i.asformat(form) for i in matrices)
            names = ["ne", "add"] + ["lt", "gt"] * (dtype not in "?D") + ["sub"] * (dtype != "?")
            for op in (getattr(operator, name) for name in names):
                assert numpy.array_equal(op(p, q).toarray(), op(x, y)), (dtype, form, blocks, op)
            assert numpy.array_equal(p.multiply(q).toarray(), x * y), (dtype, form, blocks)
            assert numpy.array_equal((p @ q.T).toarray(), x @ y.T), (dtype, form, blocks)
            assert numpy.array_equal(p.tocsr()[3:9].toarray(), x[3:9]), (dtype, form, blocks)

assert numpy.allclose(scipy.special.gamma([0.5, 5]), [numpy.pi**0.5, 24])
assert numpy.isclose(scipy.special.jv(0, 2.404825557695773), 0)
assert numpy.isclose(scipy.stats.norm.ppf(0.975), 1.959963984540054)
assert numpy.allclose(scipy.optimize.minimize(scipy.optimize.rosen, [0, 0]).x, 1, atol=1e-3)
