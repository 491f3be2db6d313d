#ifndef THEANO_THUNKS_SUBTENSOR_H
#define THEANO_THUNKS_SUBTENSOR_H

/* Ready ops that index an array. */

#include "values.h"

struct view {
    int nd;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS], offset;
};

enum { NONE, LITERAL, INPUT };

/* Read a number of an index: its kind, and itself or the number of the input. */
static bool read(const thunk *self, PyArrayObject **inputs, const npy_intp *&op,
                 npy_intp *value) {
    const npy_intp kind = *op++, number = *op++;
    if (kind != NONE)
        *value = kind == INPUT ? integer(self, inputs, number) : number;
    return kind != NONE;
}

/* Where a slice's end is, as PySlice_AdjustIndices has it. */
static npy_intp end_of_slice(npy_intp end, npy_intp length, npy_intp step) {
    if (end < 0)
        end += length;
    if (end < 0)
        return step < 0 ? -1 : 0;
    return end < length ? end : step < 0 ? length - 1 : length;
}

/* What an index has of an array. "op" is the number of indexed dimensions, then of
 * each whether it is a slice, and one or three numbers. */
static int make_view(const thunk *self, PyArrayObject **inputs, const npy_intp *op,
                     PyArrayObject *of, struct view *view) {
    const int indexed = *op++;
    view->nd = 0;
    view->offset = 0;
    if (PyArray_NDIM(of) < indexed) {
        PyErr_SetString(PyExc_ValueError, "Not enough dimensions on input.");
        return -1;
    }
    for (int d = 0; d < PyArray_NDIM(of); d++) {
        const npy_intp length = PyArray_DIM(of, d), stride = PyArray_STRIDE(of, d);
        npy_intp start = 0, stop, step, size = length;
        if (d >= indexed) {
            step = 1;
        } else if (*op++) {
            const npy_intp *first = op;
            op += 4;
            if (!read(self, inputs, op, &step))
                step = 1;
            op = first;
            if (step == 0) {
                PyErr_SetString(PyExc_ValueError, "slice step cannot be zero");
                return -1;
            }
            if (read(self, inputs, op, &start))
                start = end_of_slice(start, length, step);
            else
                start = step < 0 ? length - 1 : 0;
            if (read(self, inputs, op, &stop))
                stop = end_of_slice(stop, length, step);
            else
                stop = step < 0 ? -1 : length;
            op += 2;
            size = step < 0 ? (stop < start ? (stop - start + 1) / step + 1 : 0)
                            : (start < stop ? (stop - start - 1) / step + 1 : 0);
            view->offset += stride * start;
        } else {
            read(self, inputs, op, &start);
            if (start < 0)
                start += length;
            if (start < 0 || start >= length) {
                PyErr_SetString(PyExc_IndexError, "index out of bounds");
                return -1;
            }
            view->offset += stride * start;
            continue;
        }
        view->dims[view->nd] = size;
        view->strides[view->nd++] = stride * step;
    }
    return 0;
}

/* op: see make_view. */
static int subtensor(const thunk *self, PyArrayObject **inputs,
                     PyArrayObject **outputs) {
    struct view view;
    if (make_view(self, inputs, (const npy_intp *)self->op, inputs[0], &view))
        return -1;
    return theano_view(outputs, IN_STORAGE, inputs[0], view.nd, view.dims, view.strides,
                       PyArray_BYTES(inputs[0]) + view.offset);
}

/* op: whether in place, whether to set and not to add; then see make_view. */
static int inc_subtensor(const thunk *self, PyArrayObject **inputs,
                         PyArrayObject **outputs) {
    const npy_intp *op = (const npy_intp *)self->op;
    const bool inplace = op[0], set = op[1];
    PyObject *to = (PyObject *)inputs[0];
    struct view view;
    if (put(outputs,
            inplace ? Py_NewRef(to)
                    : PyArray_FromAny(to, NULL, 0, 0, NPY_ARRAY_ENSURECOPY, NULL)) ||
        make_view(self, inputs, op + 2, outputs[0], &view))
        return -1;
    char *data = PyArray_BYTES(outputs[0]) + view.offset;
    if (theano_update_few(!set, outputs[0], view.nd, view.dims, view.strides, data,
                          inputs[1]))
        return 0;
    PyArray_Descr *descr = PyArray_DESCR(outputs[0]);
    Py_INCREF(descr);
    PyObject *part =
        PyArray_NewFromDescr(&PyArray_Type, descr, view.nd, view.dims, view.strides,
                             data, PyArray_FLAGS(outputs[0]), NULL);
    if (!part)
        return -1;
    int failed = 0;
    if (set) {
        failed = PyArray_CopyInto((PyArrayObject *)part, inputs[1]);
    } else {
        PyObject *sum = PyNumber_InPlaceAdd(part, (PyObject *)inputs[1]);
        failed = sum ? 0 : -1;
        Py_XDECREF(sum);
    }
    Py_DECREF(part);
    return failed;
}

#endif
