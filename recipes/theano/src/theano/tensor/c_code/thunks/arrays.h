#ifndef THEANO_THUNKS_ARRAYS_H
#define THEANO_THUNKS_ARRAYS_H

/* Precompiled ops that make, copy, join or split arrays. */

#include "values.h"

static int alloc_empty(const thunk *self, PyArrayObject **inputs,
                       PyArrayObject **outputs) {
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < self->n_inputs; i++)
        dims[i] = integer(self, inputs, i);
    return put_empty(outputs, self->n_inputs, dims, self->types[self->n_inputs], 0);
}

/* Fill memory with a value of `size` bytes. */
static void fill_memory(char *data, npy_intp all, const char *value, npy_intp size) {
    static const char zeros[sizeof(npy_complex128)] = {};
    if (!memcmp(value, zeros, size)) {
        memset(data, 0, all);
    } else if (all) {
        memcpy(data, value, size);
        for (npy_intp done = size; done < all; done *= 2)
            memcpy(data + done, data, std::min(done, all - done));
    }
}

/* Return whether fill_memory can set an array to a value. */
static bool can_fill(PyArrayObject *array, PyArrayObject *value) {
    return !PyArray_NDIM(value) && is_plain(array, PyArray_TYPE(value));
}

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

static int as_axis(npy_intp axis, int nd, const char *op, int *result) {
    if (axis < -nd || axis >= nd) {
        PyErr_Format(PyExc_IndexError, "%s: invalid axis %zd for a %d-D array.", op,
                     axis, nd);
        return -1;
    }
    *result = axis < 0 ? axis + nd : axis;
    return 0;
}

/* Copy n rows of `size` bytes. */
static void copy_rows(npy_intp n, npy_intp size, char *to, npy_intp to_stride,
                      const char *from, npy_intp from_stride) {
    for (npy_intp i = 0; i < n; i++)
        memcpy(to + i * to_stride, from + i * from_stride, size);
}

/* A plain array as n consecutive rows. A row contains all elements along an axis and
 * the dimensions after it: `unit` bytes for each index along the axis. */
struct rows {
    npy_intp n, unit;

    rows(PyArrayObject *of, int axis) : n(1), unit(PyArray_ITEMSIZE(of)) {
        for (int d = 0; d < PyArray_NDIM(of); d++)
            *(d < axis ? &n : &unit) *= d == axis ? 1 : PyArray_DIM(of, d);
    }

    /* Copy `length` units from the start of each row at `from` to the start of each row
     * at `to`; rows have from_length and to_length units. */
    void copy(npy_intp length, char *to, npy_intp to_length, const char *from,
              npy_intp from_length) const {
        copy_rows(n, length * unit, to, to_length * unit, from, from_length * unit);
    }
};

/* Join plain arrays. Returns false for other arrays and for errors, which the caller
 * leaves to NumPy. */
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
    const rows all(*output, axis);
    char *to = PyArray_BYTES(*output);
    for (int i = 0; i < n; i++) {
        const npy_intp length = PyArray_DIM(arrays[i], axis);
        all.copy(length, to, dims[axis], PyArray_BYTES(arrays[i]), length);
        to += length * all.unit;
    }
    return true;
}

static int join_arrays(PyArrayObject **output, int n, PyArrayObject **arrays,
                       int axis) {
    if (join_plain(output, n, arrays, axis))
        return 0;
    PyObject *all = PyTuple_New(n);
    if (!all)
        return -1;
    for (int i = 0; i < n; i++)
        PyTuple_SET_ITEM(all, i, Py_NewRef((PyObject *)arrays[i]));
    int failed = put(output, PyArray_Concatenate(all, axis));
    Py_DECREF(all);
    return failed;
}

/* op: the number of the array that is the result if the others are empty, or -1. */
static int join(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const npy_intp view = *(const npy_intp *)self->op;
    const int n = self->n_inputs - 1;
    PyArrayObject **arrays = inputs + 1;
    int axis;
    if (as_axis(integer(self, inputs, 0), PyArray_NDIM(arrays[0]), "Join", &axis))
        return -1;
    npy_intp others = 0;
    for (int i = 0; i < n && view >= 0; i++)
        if (i != view && axis < PyArray_NDIM(arrays[i]))
            others += PyArray_DIM(arrays[i], axis);
    if (view >= 0 && others == 0)
        return put(outputs, Py_NewRef((PyObject *)arrays[view]));
    /* The old value may be an input, even one of the user's arrays. */
    if (view >= 0)
        Py_CLEAR(outputs[0]);
    return join_arrays(outputs, n, arrays, axis);
}

/* op: the axis. */
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
    if (as_axis(integer(self, inputs, 1), nd, "Split", &axis))
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
    const rows all(from, axis);
    for (int i = 0; i < n; i++, data += PyArray_STRIDE(from, axis) * size[i - 1]) {
        dims[axis] = size[i];
        if (put_empty(outputs + i, nd, dims, self->types[0],
                      PyArray_IS_F_CONTIGUOUS(from)))
            return -1;
        if (is_plain(from, self->types[0]) && can_copy(outputs[i], from)) {
            all.copy(size[i], PyArray_BYTES(outputs[i]), size[i], data, sum);
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

static int deep_copy(const thunk *, PyArrayObject **inputs, PyArrayObject **outputs) {
    PyArrayObject *from = inputs[0];
    if (has_dims(outputs[0], PyArray_NDIM(from), PyArray_DIMS(from)))
        return PyArray_CopyInto(outputs[0], from);
    return put(outputs, PyArray_NewCopy(from, NPY_ANYORDER));
}

static int scalar_from_tensor(const thunk *, PyArrayObject **inputs,
                              PyArrayObject **outputs) {
    return put(outputs,
               PyArray_Scalar(PyArray_DATA(inputs[0]), PyArray_DESCR(inputs[0]), NULL));
}

#endif
