/* Functions that the host calls to compute and check the shapes of a GpuFusedLoops. A
 * function that can fail returns 0, or sets an exception and returns -1. Shapes and
 * strides are arrays of nd elements. */
#ifndef THEANO_FUSED_LOOPS_H
#define THEANO_FUSED_LOOPS_H

#include <gpuarray_helper.h>

/* Return the number of elements of an array. */
static inline size_t fused_size(const size_t *dims, unsigned nd) {
    size_t size = 1;
    for (unsigned k = 0; k < nd; k++)
        size *= dims[k];
    return size;
}

/* Return whether two shapes are equal. */
static inline int fused_equal(const size_t *left, const size_t *right, unsigned nd) {
    for (unsigned k = 0; k < nd; k++)
        if (left[k] != right[k])
            return 0;
    return 1;
}

/* Broadcast the shape `input` of an elementwise operation's input to the operation's
 * shape `dims`. All elements of `dims` are 1 before the call for the first input. Bit k
 * of `mask` is 1 if dimension k of the input is not declared broadcastable. As in
 * GpuElemwise, a length of 1 in such a dimension is valid only if all previous inputs
 * have length 1 there too. `number` is the input's number, for the error message. */
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

/* Check that arrays of two shapes can be joined along an axis: all other lengths must
 * be equal. */
static inline int fused_join(const size_t *left, const size_t *right, unsigned nd,
                             unsigned axis) {
    for (unsigned k = 0; k < nd; k++)
        if (k != axis && left[k] != right[k]) {
            PyErr_SetString(PyExc_ValueError,
                            "all the input array dimensions except for the "
                            "concatenation axis must match exactly");
            return -1;
        }
    return 0;
}

/* Normalize the bounds of a slice with step 1, so that
 * 0 <= *begin <= *end <= length. */
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

/* Normalize the index *begin into a dimension, and set *end to *begin + 1. */
static inline int fused_index(ssize_t length, ssize_t *begin, ssize_t *end) {
    if (*begin < 0)
        *begin += length;
    *end = *begin + 1;
    if (*begin >= 0 && *begin < length)
        return 0;
    PyErr_SetString(PyExc_IndexError, "index out of bounds");
    return -1;
}

/* Check that an increment's shape fits a subtensor with the shape `dims`. A length of 1
 * is broadcast, as in GpuIncSubtensor. */
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

/* Write an array's strides in bytes. A dimension of length 1 gets a stride of 0, which
 * broadcasts it. */
static inline void fused_strides(ssize_t *strides, PyGpuArrayObject *array) {
    for (unsigned k = 0; k < PyGpuArray_NDIM(array); k++)
        strides[k] = PyGpuArray_DIM(array, k) == 1 ? 0 : PyGpuArray_STRIDE(array, k);
}

/* Set *output to an array for a result with the shape `dims`. This array is `input`
 * itself if `input` is not NULL, `inplace` is true, and its shape is `dims`. */
static inline int fused_output(PyGpuArrayObject **output, PyGpuArrayObject *input,
                               int inplace, unsigned nd, const size_t *dims,
                               int typecode, PyGpuContextObject *context) {
    if (input != NULL) {
        /* Do not write into the previous call's result: it may share memory with an
         * input of this call. */
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

/* Return whether one flat index can address the elements of an array: whether it is
 * C-contiguous and has the shape `dims`. */
static inline int fused_flat(PyGpuArrayObject *array, const size_t *dims) {
    return GpuArray_IS_C_CONTIGUOUS(&array->ga) &&
           fused_equal(PyGpuArray_DIMS(array), dims, PyGpuArray_NDIM(array));
}

#endif
