#ifndef THEANO_THUNKS_ARRAYS_H
#define THEANO_THUNKS_ARRAYS_H

/* Computations of precompiled ops that make, copy, join or split arrays. */

#include "values.h"

/* Compute an AllocEmpty; it has no parameters. */
static int alloc_empty(const thunk *self, PyArrayObject **inputs,
                       PyArrayObject **outputs) {
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < self->n_inputs; i++)
        dims[i] = integer(self, inputs, i);
    return put_empty(outputs, self->n_inputs, dims, self->types[self->n_inputs], 0);
}

/* Fill n_bytes of memory with copies of a value of `size` bytes. */
static void fill_memory(char *data, npy_intp n_bytes, const char *value,
                        npy_intp size) {
    static const char zeros[sizeof(npy_complex128)] = {};
    if (!memcmp(value, zeros, size)) {
        memset(data, 0, n_bytes);
    } else if (n_bytes) {
        memcpy(data, value, size);
        for (npy_intp done = size; done < n_bytes; done *= 2)
            memcpy(data + done, data, std::min(done, n_bytes - done));
    }
}

/* Return whether fill_memory can set all elements of an array to a value: whether the
 * array is plain, and the value is a single element of the same type. */
static bool can_fill(PyArrayObject *array, PyArrayObject *value) {
    return !PyArray_NDIM(value) && is_plain(array, PyArray_TYPE(value));
}

/* Compute an Alloc; it has no parameters. */
static int alloc(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const int nd = self->n_inputs - 1;
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < nd; i++)
        dims[i] = integer(self, inputs, 1 + i);
    if (put_empty(outputs, nd, dims, self->types[0], 0))
        return -1;
    if (can_fill(outputs[0], inputs[0])) {
        fill_memory(PyArray_BYTES(outputs[0]), PyArray_NBYTES(outputs[0]),
                    PyArray_BYTES(inputs[0]), PyArray_ITEMSIZE(outputs[0]));
        return 0;
    }
    if (theano_update_few(false, outputs[0], nd, dims, PyArray_STRIDES(outputs[0]),
                          PyArray_BYTES(outputs[0]), inputs[0]))
        return 0;
    return PyArray_CopyInto(outputs[0], inputs[0]);
}

/* Convert an axis, which may be negative, to the number of a dimension. Return 0, or
 * set IndexError and return -1 if an array of nd dimensions has no such axis. */
static int normalize_axis(npy_intp axis, int nd, const char *op, int *result) {
    if (axis < -nd || axis >= nd) {
        PyErr_Format(PyExc_IndexError, "%s: invalid axis %zd for a %d-D array.", op,
                     axis, nd);
        return -1;
    }
    *result = axis < 0 ? axis + nd : axis;
    return 0;
}

/* Copy n rows of `size` bytes. Strides are the distances between rows, in bytes. */
static void copy_rows(npy_intp n, npy_intp size, char *to, npy_intp to_stride,
                      const char *from, npy_intp from_stride) {
    for (npy_intp i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, size);
}

/* Splits a plain array into n consecutive rows: one row for each index of the
 * dimensions before an axis. A row has `unit` bytes for each index along the axis. For
 * example, a float64 array of shape (2, 3, 4) and axis 1 give 2 rows of 3 units, with
 * 32 bytes in a unit. */
struct rows {
    npy_intp n, unit;

    rows(PyArrayObject *of, int axis) : n(1), unit(PyArray_ITEMSIZE(of)) {
        for (int d = 0; d < PyArray_NDIM(of); d++)
            *(d < axis ? &n : &unit) *= d == axis ? 1 : PyArray_DIM(of, d);
    }

    /* Copy the first `length` units of each of n rows at `from` to the beginning of the
     * row at `to`. Rows at `from` have from_length units, rows at `to` to_length. */
    void copy(npy_intp length, char *to, npy_intp to_length, const char *from,
              npy_intp from_length) const {
        copy_rows(n, length * unit, to, to_length * unit, from, from_length * unit);
    }
};

/* Join n plain arrays along an axis. Return false without an exception if an array is
 * not plain or on any error: the caller then calls NumPy, which joins the arrays or
 * sets the exception. */
static bool join_plain(PyArrayObject **output, int n, PyArrayObject **arrays,
                       int axis) {
    const int type_num = PyArray_TYPE(arrays[0]), nd = PyArray_NDIM(arrays[0]);
    npy_intp dims[NPY_MAXDIMS];
    memcpy(dims, PyArray_DIMS(arrays[0]), nd * sizeof(npy_intp));
    for (int i = 0; i < n; i++) {
        if (!is_plain(arrays[i], type_num) || PyArray_NDIM(arrays[i]) != nd)
            return false;
        for (int d = 0; d < nd && i; d++) {
            if (d == axis)
                dims[d] += PyArray_DIM(arrays[i], d);
            else if (dims[d] != PyArray_DIM(arrays[i], d))
                return false;
        }
    }
    if (put_empty(output, nd, dims, type_num, 0)) {
        PyErr_Clear();
        return false;
    }
    for (int i = 0; i < n; i++) {
        if (!can_copy(*output, arrays[i]))
            return false;
    }
    const rows joined(*output, axis);
    char *to = PyArray_BYTES(*output);
    for (int i = 0; i < n; i++) {
        const npy_intp length = PyArray_DIM(arrays[i], axis);
        joined.copy(length, to, dims[axis], PyArray_BYTES(arrays[i]), length);
        to += length * joined.unit;
    }
    return true;
}

/* Set an output to n arrays joined along an axis. Return 0, or -1 with an exception
 * set. */
static int join_arrays(PyArrayObject **output, int n, PyArrayObject **arrays,
                       int axis) {
    if (join_plain(output, n, arrays, axis))
        return 0;
    PyObject *tuple = PyTuple_New(n);
    if (!tuple)
        return -1;
    for (int i = 0; i < n; i++)
        PyTuple_SET_ITEM(tuple, i, Py_NewRef((PyObject *)arrays[i]));
    int failed = put(output, PyArray_Concatenate(tuple, axis));
    Py_DECREF(tuple);
    return failed;
}

/* Compute a Join. op[0]: Join's property `view`: the number of the array that is the
 * result itself if all other arrays are empty, or -1. */
static int join(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const npy_intp view = *(const npy_intp *)self->op;
    const int n = self->n_inputs - 1;
    PyArrayObject **arrays = inputs + 1;
    int axis;
    if (normalize_axis(integer(self, inputs, 0), PyArray_NDIM(arrays[0]), "Join",
                       &axis))
        return -1;
    npy_intp other_length = 0;
    for (int i = 0; i < n && view >= 0; i++)
        if (i != view && axis < PyArray_NDIM(arrays[i]))
            other_length += PyArray_DIM(arrays[i], axis);
    if (view >= 0 && other_length == 0)
        return put(outputs, Py_NewRef((PyObject *)arrays[view]));
    /* Do not write into the old value: it may be an input of an earlier call, even an
     * array of the user. */
    if (view >= 0)
        Py_CLEAR(outputs[0]);
    return join_arrays(outputs, n, arrays, axis);
}

/* Compute a JoinAs (theano/tensor/join_as.py). op[0]: the axis. */
static int join_as(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const npy_intp axis = *(const npy_intp *)self->op;
    const int n = self->n_inputs - 1;
    for (int i = 0; i < n; i++) {
        const npy_intp length =
            integer_at(PyArray_GETPTR1(inputs[0], i), self->types[0]);
        if (PyArray_DIM(inputs[1 + i], axis) != length) {
            PyErr_Format(PyExc_ValueError,
                         "Shape mismatch: a factor has %zd elements where the other"
                         " one has %zd.",
                         PyArray_DIM(inputs[1 + i], axis), length);
            return -1;
        }
    }
    return join_arrays(outputs, n, inputs + 1, axis);
}

/* Compute a Split; it has no parameters. */
static int split(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    PyArrayObject *from = inputs[0], *sizes = inputs[2];
    const int n = self->n_outputs, nd = PyArray_NDIM(from);
    npy_intp size[n], sum = 0, dims[NPY_MAXDIMS];
    char *data = PyArray_BYTES(from);
    int axis;
    if (PyArray_DIM(sizes, 0) != n) {
        PyErr_Format(PyExc_ValueError,
                     "Split: splits count (%zd) != expected count (%d).",
                     PyArray_DIM(sizes, 0), n);
        return -1;
    }
    if (normalize_axis(integer(self, inputs, 1), nd, "Split", &axis))
        return -1;
    for (int i = 0; i < n; i++) {
        size[i] = integer_at(PyArray_GETPTR1(sizes, i), self->types[2]);
        if (size[i] < 0) {
            PyErr_Format(PyExc_ValueError,
                         "Split: you try to take a negative number (%zd) of "
                         "elements.",
                         size[i]);
            return -1;
        }
        sum += size[i];
    }
    if (sum != PyArray_DIM(from, axis)) {
        PyErr_Format(PyExc_ValueError, "Split: the splits sums to %zd, expected %zd.",
                     sum, PyArray_DIM(from, axis));
        return -1;
    }
    memcpy(dims, PyArray_DIMS(from), nd * sizeof(npy_intp));
    const rows whole(from, axis);
    for (int i = 0; i < n; i++, data += PyArray_STRIDE(from, axis) * size[i - 1]) {
        dims[axis] = size[i];
        if (put_empty(outputs + i, nd, dims, self->types[0],
                      PyArray_IS_F_CONTIGUOUS(from)))
            return -1;
        if (is_plain(from, self->types[0]) && can_copy(outputs[i], from)) {
            whole.copy(size[i], PyArray_BYTES(outputs[i]), size[i], data, sum);
            continue;
        }
        PyArray_Descr *descr = PyArray_DESCR(from);
        Py_INCREF(descr);
        PyObject *part =
            PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, PyArray_STRIDES(from),
                                 data, PyArray_FLAGS(from), NULL);
        int failed = !part || PyArray_CopyInto(outputs[i], (PyArrayObject *)part);
        Py_XDECREF(part);
        if (failed)
            return -1;
    }
    return 0;
}

/* Compute a MakeVector; it has no parameters. */
static int make_vector(const thunk *self, PyArrayObject **inputs,
                       PyArrayObject **outputs) {
    npy_intp n = self->n_inputs;
    if (put_empty(outputs, 1, &n, self->types[n], 0))
        return -1;
    for (int i = 0; i < n; i++)
        memcpy(PyArray_GETPTR1(outputs[0], i), PyArray_DATA(inputs[i]),
               PyArray_ITEMSIZE(outputs[0]));
    return 0;
}

/* Compute a DeepCopyOp; it has no parameters. */
static int deep_copy(const thunk *, PyArrayObject **inputs, PyArrayObject **outputs) {
    PyArrayObject *from = inputs[0];
    if (has_dims(outputs[0], PyArray_NDIM(from), PyArray_DIMS(from)))
        return PyArray_CopyInto(outputs[0], from);
    return put(outputs, PyArray_NewCopy(from, NPY_ANYORDER));
}

/* Compute a ScalarFromTensor; it has no parameters. */
static int scalar_from_tensor(const thunk *, PyArrayObject **inputs,
                              PyArrayObject **outputs) {
    return put(outputs,
               PyArray_Scalar(PyArray_DATA(inputs[0]), PyArray_DESCR(inputs[0]), NULL));
}

#endif
