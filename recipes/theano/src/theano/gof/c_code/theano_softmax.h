#ifndef THEANO_SOFTMAX_H
#define THEANO_SOFTMAX_H

/* The loops of Softmax over a row of n elements; strides are in elements. */

#include <Python.h>
#include <numpy/npy_common.h>
#include "theano_functions.h"

/* Return the largest element, in vectorized code; undefined if an element is NaN. */
template <typename T>
static inline T theano_row_max(npy_intp n, const T *x, npy_intp stride) {
    enum { AT_ONCE = 16 };
    T most[AT_ONCE], result = x[0];
    npy_intp i = 0;
    if (stride == 1 && n >= AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++)
            most[k] = x[k];
        for (i = AT_ONCE; i <= n - AT_ONCE; i += AT_ONCE)
            for (int k = 0; k < AT_ONCE; k++)
                most[k] = x[i + k] > most[k] ? x[i + k] : most[k];
        for (int k = 0; k < AT_ONCE; k++)
            result = most[k] > result ? most[k] : result;
    }
    for (; i < n; i++)
        result = x[i * stride] > result ? x[i * stride] : result;
    return result;
}

/* Set `to` to exp(x - most); return its sum, added in the elements' order. */
template <typename T>
static inline double theano_row_exp(npy_intp n, const T *__restrict x, npy_intp stride,
                                    T most, T *__restrict to, npy_intp to_stride) {
    double sum = 0;
    if (stride == 1 && to_stride == 1) {
#pragma omp simd
        for (npy_intp i = 0; i < n; i++)
            to[i] = exp(x[i] - most);
    } else {
        for (npy_intp i = 0; i < n; i++)
            to[i * to_stride] = exp(x[i * stride] - most);
    }
    for (npy_intp i = 0; i < n; i++)
        sum += to[i * to_stride];
    return sum;
}

#endif
