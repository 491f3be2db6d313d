/* Shapes of GpuFusedLoops: functions of the host. They return -1 and set an exception
 * if shapes do not fit. */
#ifndef THEANO_FUSED_LOOPS_H
#define THEANO_FUSED_LOOPS_H

#include <gpuarray_helper.h>

static inline size_t fused_size(const size_t *dims, unsigned nd) {
    size_t size = 1;
    for (unsigned k = 0; k < nd; k++)
        size *= dims[k];
    return size;
}

static inline int fused_equal(const size_t *one, const size_t *other, unsigned nd) {
    for (unsigned k = 0; k < nd; k++)
        if (one[k] != other[k])
            return 0;
    return 1;
}

/* Broadcast an input of an elementwise operation. Bit k of `mask`: dimension k is not
 * declared broadcastable. As in GpuElemwise, the length 1 of such a dimension is
 * broadcast only if all inputs before have the length 1 too. */
static inline int fused_broadcast(size_t *dims, const size_t *input, unsigned mask,
                                  unsigned nd, int number) {
    for (unsigned k = 0; k < nd; k++) {
        if (!(mask >> k & 1))
            continue;
        if (dims[k] == 1)
            dims[k] = input[k];
        if (input[k] != dims[k]) {
            PyErr_Format(
                PyExc_ValueError,
                "GpuElemwise. Input dimension mis-match. Input %d (indices start at 0) "
                "has shape[%d] == %llu, but the output's size on that axis is %llu.",
                number, k, (unsigned long long)input[k], (unsigned long long)dims[k]);
            return -1;
        }
    }
    return 0;
}

static inline int fused_join(const size_t *one, const size_t *other, unsigned nd,
                             unsigned axis) {
    for (unsigned k = 0; k < nd; k++)
        if (k != axis && one[k] != other[k]) {
            PyErr_SetString(PyExc_ValueError,
                            "all the input array dimensions except for the "
                            "concatenation axis must match exactly");
            return -1;
        }
    return 0;
}

/* Compute the bounds of a slice with step 1. */
static inline void fused_slice(ssize_t length, ssize_t *begin, ssize_t *end) {
    ssize_t *bounds[] = {begin, end};
    for (ssize_t *bound : bounds) {
        if (*bound < 0)
            *bound += length;
        if (*bound < 0)
            *bound = 0;
        if (*bound > length)
            *bound = length;
    }
    if (*end < *begin)
        *end = *begin;
}

static inline int fused_index(ssize_t length, ssize_t *begin, ssize_t *end) {
    if (*begin < 0)
        *begin += length;
    *end = *begin + 1;
    if (*begin >= 0 && *begin < length)
        return 0;
    PyErr_SetString(PyExc_IndexError, "index out of bounds");
    return -1;
}

/* Check an increment's shape. A length of 1 is broadcast, as GpuIncSubtensor does it.
 */
static inline int fused_increment(const size_t *increment, const size_t *dims,
                                  unsigned nd) {
    for (unsigned k = 0; k < nd; k++)
        if (increment[k] != 1 && increment[k] != dims[k]) {
            PyErr_SetString(PyExc_RuntimeError,
                            "GpuIncSubtensor: the increment and the "
                            "subtensor have different shapes");
            return -1;
        }
    return 0;
}

/* A length of 1 is broadcast by a stride of 0. */
static inline void fused_strides(ssize_t *strides, PyGpuArrayObject *array) {
    for (unsigned k = 0; k < PyGpuArray_NDIM(array); k++)
        strides[k] = PyGpuArray_DIM(array, k) == 1 ? 0 : PyGpuArray_STRIDE(array, k);
}

/* Provide memory for a result. It takes the memory of `input` if that is not NULL,
 * `inplace` is true, and the shapes are equal. */
static inline int fused_output(PyGpuArrayObject **output, PyGpuArrayObject *input,
                               int inplace, unsigned nd, const size_t *dims,
                               int typecode, PyGpuContextObject *context) {
    if (input != NULL) {
        /* The last call's result may have the memory of an input of this call. */
        Py_CLEAR(*output);
        if (inplace && fused_equal(PyGpuArray_DIMS(input), dims, nd)) {
            Py_INCREF(input);
            *output = input;
            return 0;
        }
    }
    if (*output != NULL && !GpuArray_IS_C_CONTIGUOUS(&(*output)->ga))
        Py_CLEAR(*output);
    return theano_prep_output(output, nd, dims, typecode, GA_C_ORDER, context) ? -1 : 0;
}

/* Return whether a flat index can address an array. */
static inline int fused_flat(PyGpuArrayObject *array, const size_t *dims) {
    return GpuArray_IS_C_CONTIGUOUS(&array->ga) &&
           fused_equal(PyGpuArray_DIMS(array), dims, PyGpuArray_NDIM(array));
}

#endif
