#ifndef THEANO_THUNKS_VALUES_H
#define THEANO_THUNKS_VALUES_H

/* Helpers of precompiled ops: read integers from inputs, and set outputs. */

#include "thunk.h"

/* The number of references to an output's old value before a computation: from the
 * storage and from outputs[i]. */
enum { IN_STORAGE = 2 };

/* Return the integer at `data`, whose NumPy type number is type_num, as npy_intp. */
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

/* Return input i, an array of one integer or a NumPy scalar, as npy_intp. */
static npy_intp integer(const thunk *self, PyArrayObject **inputs, int i) {
    if (self->types[i] >= 0)
        return integer_at(PyArray_DATA(inputs[i]), self->types[i]);
    npy_int64 value;
    PyArray_ScalarAsCtype((PyObject *)inputs[i], &value);
    return integer_at(&value, ~self->types[i]);
}

/* Set an output to an array, and steal the reference to the array. Return 0, or -1 if
 * the array is NULL, after a failure. */
static int put(PyArrayObject **output, PyObject *array) {
    Py_XSETREF(*output, (PyArrayObject *)array);
    return array ? 0 : -1;
}

/* Return whether an array exists and has the dimensions `dims`. */
static bool has_dims(PyArrayObject *array, int nd, const npy_intp *dims) {
    return array && PyArray_NDIM(array) == nd &&
           PyArray_CompareLists(PyArray_DIMS(array), dims, nd);
}

/* Set an output to an uninitialized array, unless it has the dimensions `dims` already.
 * Return 0, or -1 with an exception set. */
static int put_empty(PyArrayObject **output, int nd, npy_intp *dims, int type_num,
                     int in_fortran_order) {
    if (has_dims(*output, nd, dims))
        return 0;
    return put(output, PyArray_EMPTY(nd, dims, type_num, in_fortran_order));
}

/* Return whether an array has a type and is plain: C-contiguous, aligned, and in native
 * byte order. */
static bool is_plain(PyArrayObject *array, int type_num) {
    return PyArray_TYPE(array) == type_num && PyArray_IS_C_CONTIGUOUS(array) &&
           PyArray_ISBEHAVED_RO(array);
}

/* Return whether an array has a type, is stored by columns (Fortran-contiguous), is
 * aligned, and is in native byte order. */
static bool is_plain_by_columns(PyArrayObject *array, int type_num) {
    return PyArray_TYPE(array) == type_num && PyArray_IS_F_CONTIGUOUS(array) &&
           PyArray_ISBEHAVED_RO(array);
}

/* Return whether two contiguous arrays share memory. */
static bool overlap(PyArrayObject *one, PyArrayObject *other) {
    const char *first = PyArray_BYTES(one), *second = PyArray_BYTES(other);
    return first < second + PyArray_NBYTES(other) &&
           second < first + PyArray_NBYTES(one);
}

/* Return whether memcpy can copy elements of the plain array `from` to `to`: whether
 * `to` is plain, has the same type, and does not overlap `from`. */
static bool can_copy(PyArrayObject *to, PyArrayObject *from) {
    return is_plain(to, PyArray_TYPE(from)) && !overlap(to, from);
}

/* Set an output to a copy of an array; reuse the output's memory if memcpy can copy the
 * array to it. Return 0, or -1 with an exception set. */
static int put_copy(PyArrayObject **output, PyArrayObject *from) {
    if (!has_dims(*output, PyArray_NDIM(from), PyArray_DIMS(from)) ||
        !is_plain(from, PyArray_TYPE(from)) || !can_copy(*output, from))
        return put(output, PyArray_FromAny((PyObject *)from, NULL, 0, 0,
                                           NPY_ARRAY_ENSURECOPY, NULL));
    memcpy(PyArray_DATA(*output), PyArray_DATA(from), PyArray_NBYTES(from));
    return 0;
}

#endif
