#ifndef THEANO_THUNKS_VALUES_H
#define THEANO_THUNKS_VALUES_H

/* Helpers of precompiled ops: read integers from inputs, and set outputs. */

#include "thunk.h"

/* The number of references to the old value of an output: the storage and
 * outputs[i]. */
enum { IN_STORAGE = 2 };

/* Return an integer of any supported type as npy_intp. */
static npy_intp integer_at(const void *data, int type_num) {
    switch (type_num) {
    case NPY_BOOL:
    case NPY_UINT8: return *(const npy_uint8 *)data;
    case NPY_INT8: return *(const npy_int8 *)data;
    case NPY_INT16: return *(const npy_int16 *)data;
    case NPY_UINT16: return *(const npy_uint16 *)data;
    case NPY_INT32: return *(const npy_int32 *)data;
    case NPY_UINT32: return *(const npy_uint32 *)data;
    default: return *(const npy_int64 *)data;
    }
}

static npy_intp integer(const thunk *self, PyArrayObject **inputs, int i) {
    if (self->types[i] >= 0)
        return integer_at(PyArray_DATA(inputs[i]), self->types[i]);
    npy_int64 value;
    PyArray_ScalarAsCtype((PyObject *)inputs[i], &value);
    return integer_at(&value, ~self->types[i]);
}

/* Set an output to an array and steal the reference; NULL means an error. */
static int put(PyArrayObject **output, PyObject *array) {
    Py_XSETREF(*output, (PyArrayObject *)array);
    return array ? 0 : -1;
}

static bool has_dims(PyArrayObject *array, int nd, const npy_intp *dims) {
    return array && PyArray_NDIM(array) == nd &&
           PyArray_CompareLists(PyArray_DIMS(array), dims, nd);
}

static int put_empty(PyArrayObject **output, int nd, npy_intp *dims, int type_num,
                     int in_fortran_order) {
    if (has_dims(*output, nd, dims))
        return 0;
    return put(output, PyArray_EMPTY(nd, dims, type_num, in_fortran_order));
}

/* Return whether an array is plain: of the type, C-contiguous, aligned and in native
 * byte order. */
static bool is_plain(PyArrayObject *array, int type_num) {
    return PyArray_TYPE(array) == type_num && PyArray_IS_C_CONTIGUOUS(array) &&
           PyArray_ISBEHAVED_RO(array);
}

/* Return whether a plain array can be copied to another array by memcpy. */
static bool can_copy(PyArrayObject *to, PyArrayObject *from) {
    const char *first = PyArray_BYTES(to), *other = PyArray_BYTES(from);
    return is_plain(to, PyArray_TYPE(from)) && (first + PyArray_NBYTES(to) <= other ||
                                                other + PyArray_NBYTES(from) <= first);
}

static int put_copy(PyArrayObject **output, PyArrayObject *from) {
    if (!has_dims(*output, PyArray_NDIM(from), PyArray_DIMS(from)) ||
        !is_plain(from, PyArray_TYPE(from)) || !can_copy(*output, from))
        return put(output, PyArray_FromAny((PyObject *)from, NULL, 0, 0,
                                           NPY_ARRAY_ENSURECOPY, NULL));
    memcpy(PyArray_DATA(*output), PyArray_DATA(from), PyArray_NBYTES(from));
    return 0;
}

#endif
