#ifndef THEANO_SOFTMAX_H
#define THEANO_SOFTMAX_H

/* The loops of Softmax over a row of n elements. Strides are numbers of elements, not
 * of bytes. */

#include <Python.h>
#include <numpy/npy_common.h>
#include "theano_functions.h"

/* Return the largest of n elements; undefined if an element is NaN. Sixteen running
 * maxima let g++ vectorize the loop. */
template <typename T>
static inline T theano_row_max(npy_intp n, const T *x, npy_intp stride) {
    enum { AT_ONCE = 16 };
    T maxima[AT_ONCE], result = x[0];
    npy_intp i = 0;
    if (stride == 1 && n >= AT_ONCE) {
        for (int k = 0; k < AT_ONCE; k++)
            maxima[k] = x[k];
        for (i = AT_ONCE; i <= n - AT_ONCE; i += AT_ONCE)
            for (int k = 0; k < AT_ONCE; k++)
                maxima[k] = x[i + k] > maxima[k] ? x[i + k] : maxima[k];
        for (int k = 0; k < AT_ONCE; k++)
            result = maxima[k] > result ? maxima[k] : result;
    }
    for (; i < n; i++)
        result = x[i * stride] > result ? x[i * stride] : result;
    return result;
}

/* Set y[i] to exp(x[i] - maximum) for each of n elements. Return the sum of all y[i],
 * added in this order in double. */
template <typename T>
static inline double theano_row_exp(npy_intp n, const T *__restrict x, npy_intp stride,
                                    T maximum, T *__restrict y, npy_intp y_stride) {
    double sum = 0;
    if (stride == 1 && y_stride == 1) {
#pragma omp simd
        for (npy_intp i = 0; i < n; i++)
            y[i] = exp(x[i] - maximum);
    } else {
        for (npy_intp i = 0; i < n; i++)
            y[i * y_stride] = exp(x[i * stride] - maximum);
    }
    for (npy_intp i = 0; i < n; i++)
        sum += y[i * y_stride];
    return sum;
}

#endif
