"""Check that numpy and scipy load only the BLAS implementation that the first argument names."""

import os
import pathlib
import re
import sys

os.environ |= {"MKL_NUM_THREADS": "2", "OMP_NUM_THREADS": "2", "MKL_DYNAMIC": "FALSE"}

import numpy
import scipy.linalg

if sys.argv[1] == "mkl":
    # Only large products use several threads.
    for size, threads in ((64, 1), (500, 2)):
        square = numpy.ones((size, size), order="F")
        scipy.linalg.blas.dgemm(1.0, square, square)
        scipy.linalg.blas.dgemv(1.0, square, square[0])
        assert len(os.listdir("/proc/self/task")) == threads

rng = numpy.random.default_rng(0)
a = rng.standard_normal((300, 300))
z = a[0] + 1j * a[1]

assert numpy.allclose(numpy.linalg.inv(a) @ a, numpy.eye(300))
# BLAS implementations have different calling conventions for functions that return complex numbers.
assert numpy.isclose(scipy.linalg.blas.zdotc(z, z), numpy.vdot(z, z))
t, q = scipy.linalg.schur(a, output="complex")
assert numpy.allclose(q @ t @ q.conj().T, a)

files = {pathlib.Path(word) for word in pathlib.Path("/proc/self/maps").read_text().split()}
# With MKL, libblas.so.3 is a library that wraps MKL. With other implementations, it is a link.
loaded = {file.name for file in files if re.match("lib.*(blas|lapack|mkl)", file.name)}
loaded -= {"libblas.so.3"}
assert loaded, "no BLAS"
assert all(sys.argv[1] in name for name in loaded), loaded
