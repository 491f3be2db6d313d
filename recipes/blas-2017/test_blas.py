"""Check that NumPy and SciPy compute with the BLAS that argv[1] names, and load no other BLAS."""

import os
import re
import sys

import numpy
import scipy.linalg

rng = numpy.random.RandomState(0)
a = rng.standard_normal((300, 300))
z = a[0] + 1j * a[1]

assert numpy.allclose(numpy.linalg.inv(a).dot(a), numpy.eye(300))
# BLAS implementations have different calling conventions for functions that return complex numbers.
assert numpy.isclose(scipy.linalg.blas.zdotc(z, z), numpy.vdot(z, z))
t, q = scipy.linalg.schur(a, output="complex")
assert numpy.allclose(q.dot(t).dot(q.conj().T), a)

files = set(map(os.path.basename, open("/proc/self/maps").read().split()))
# With MKL, libblas.so.3 is a library that wraps MKL. With other implementations, it is a link.
loaded = set(name for name in files if re.match("lib.*(blas|lapack|mkl)", name))
loaded -= set(["libblas.so.3"])
assert loaded, "no BLAS"
assert all(sys.argv[1] in name for name in loaded), loaded
