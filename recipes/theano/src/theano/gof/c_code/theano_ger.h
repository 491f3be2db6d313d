#ifndef THEANO_GER_H
#define THEANO_GER_H

#include <numpy/arrayobject.h>

/* Compute Z = A + a * outer(x, y) for a scalar a. A must be Z, or must not overlap Z.
 * The first two loops are for contiguous rows or columns, and g++ vectorizes them. All
 * loops compute an element by the same operations in the same order. */
template <typename T>
static void theano_ger(PyArrayObject *A, PyArrayObject *a, PyArrayObject *x,
                       PyArrayObject *y, PyArrayObject *Z) {
    const npy_intp n = PyArray_DIM(Z, 0), m = PyArray_DIM(Z, 1);
    const npy_intp Ai = PyArray_STRIDE(A, 0) / (npy_intp)sizeof(T);
    const npy_intp Aj = PyArray_STRIDE(A, 1) / (npy_intp)sizeof(T);
    const npy_intp Zi = PyArray_STRIDE(Z, 0) / (npy_intp)sizeof(T);
    const npy_intp Zj = PyArray_STRIDE(Z, 1) / (npy_intp)sizeof(T);
    const npy_intp xi = PyArray_STRIDE(x, 0) / (npy_intp)sizeof(T);
    const npy_intp yj = PyArray_STRIDE(y, 0) / (npy_intp)sizeof(T);
    const T alpha = *(const T *)PyArray_DATA(a);
    const T *Adata = (const T *)PyArray_DATA(A);
    const T *xdata = (const T *)PyArray_DATA(x);
    const T *ydata = (const T *)PyArray_DATA(y);
    T *Zdata = (T *)PyArray_DATA(Z);
    if (Aj == 1 && Zj == 1 && yj == 1) {
        for (npy_intp i = 0; i < n; ++i) {
            const T ax = alpha * xdata[xi * i];
#pragma omp simd
            for (npy_intp j = 0; j < m; ++j)
                Zdata[Zi * i + j] = Adata[Ai * i + j] + ax * ydata[j];
        }
    } else if (Ai == 1 && Zi == 1 && xi == 1) {
        for (npy_intp j = 0; j < m; ++j) {
            const T yy = ydata[yj * j];
#pragma omp simd
            for (npy_intp i = 0; i < n; ++i)
                Zdata[i + Zj * j] = Adata[i + Aj * j] + alpha * xdata[i] * yy;
        }
    } else {
        for (npy_intp i = 0; i < n; ++i) {
            const T ax = alpha * xdata[xi * i];
            for (npy_intp j = 0; j < m; ++j)
                Zdata[Zi * i + Zj * j] = Adata[Ai * i + Aj * j] + ax * ydata[yj * j];
        }
    }
}

#endif
