#ifndef THEANO_THUNKS_SHAPES_H
#define THEANO_THUNKS_SHAPES_H

/* Computations of precompiled ops that change or read an array's dimensions, or that
 * check an array. */

#include "values.h"

/* Compute a Reshape. op[0]: the output's number of dimensions. */
static int reshape(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const int nd = *(const npy_intp *)self->op;
    npy_intp values[NPY_MAXDIMS];
    PyArray_Dims dims = {values, nd};
    if (PyArray_DIM(inputs[1], 0) != nd) {
        PyErr_Format(PyExc_ValueError,
                     "Reshape: the shape has %zd elements, expected %d.",
                     PyArray_DIM(inputs[1], 0), nd);
        return -1;
    }
    npy_intp strides[NPY_MAXDIMS], size = 1;
    for (int i = 0; i < nd; i++) {
        values[i] = integer_at(PyArray_GETPTR1(inputs[1], i), self->types[1]);
        if (values[i] < 0)
            size = -1;
    }
    for (int i = nd - 1; i >= 0 && size >= 0; i--) {
        strides[i] = size * PyArray_ITEMSIZE(inputs[0]);
        size *= values[i];
    }
    /* NumPy handles all other cases: a length of -1, a wrong size, an array that is not
     * C-contiguous, and an array without elements, for which NumPy chooses strides. */
    if (size == 0 || size != PyArray_SIZE(inputs[0]) ||
        !PyArray_IS_C_CONTIGUOUS(inputs[0]))
        return put(outputs, PyArray_Newshape(inputs[0], &dims, NPY_CORDER));
    return theano_view(outputs, IN_STORAGE, inputs[0], nd, values, strides,
                       PyArray_BYTES(inputs[0]));
}

/* Compute a DimShuffle. op[0]: whether it works in-place. op[1], op[2]: the numbers of
 * dimensions of the input and the output. op + 3: the order (theano_shuffle). */
static int dimshuffle(const thunk *self, PyArrayObject **inputs,
                      PyArrayObject **outputs) {
    const npy_intp *op = (const npy_intp *)self->op;
    return theano_shuffle(inputs[0], outputs, IN_STORAGE, op[0], op[1], op[2], op + 3);
}

/* Compute a Rebroadcast. op[0]: how many dimensions must have length 1. op + 1: these
 * dimensions. */
static int rebroadcast(const thunk *self, PyArrayObject **inputs,
                       PyArrayObject **outputs) {
    const npy_intp *op = (const npy_intp *)self->op;
    for (int i = 1; i <= op[0]; i++) {
        if (PyArray_DIM(inputs[0], op[i]) != 1) {
            PyErr_Format(PyExc_ValueError,
                         "Dimension %zd in Rebroadcast's input was"
                         " supposed to be 1 (got %zd instead)",
                         op[i], PyArray_DIM(inputs[0], op[i]));
            return -1;
        }
    }
    return put(outputs, Py_NewRef((PyObject *)inputs[0]));
}

/* Compute a Shape_i. op[0]: the dimension. */
static int shape_i(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const npy_intp i = *(const npy_intp *)self->op;
    if (i >= PyArray_NDIM(inputs[0])) {
        PyErr_SetString(PyExc_TypeError, "Number of dimensions lower than expected");
        return -1;
    }
    if (put_empty(outputs, 0, NULL, NPY_INT64, 0))
        return -1;
    *(npy_int64 *)PyArray_DATA(outputs[0]) = PyArray_DIM(inputs[0], i);
    return 0;
}

/* Compute a SpecifyShape; it has no parameters. */
static int specify_shape(const thunk *self, PyArrayObject **inputs,
                         PyArrayObject **outputs) {
    const int nd = PyArray_NDIM(inputs[0]);
    if (PyArray_DIM(inputs[1], 0) != nd) {
        PyErr_Format(PyExc_AssertionError,
                     "SpecifyShape: vector of shape has %zd elements,"
                     " but the input has %d dimensions.",
                     PyArray_DIM(inputs[1], 0), nd);
        return -1;
    }
    for (int i = 0; i < nd; i++) {
        npy_intp size = integer_at(PyArray_GETPTR1(inputs[1], i), self->types[1]);
        if (PyArray_DIM(inputs[0], i) != size) {
            PyErr_Format(PyExc_AssertionError,
                         "SpecifyShape: dim %d of input has shape %zd,"
                         " expected %zd.",
                         i, PyArray_DIM(inputs[0], i), size);
            return -1;
        }
    }
    return put(outputs, Py_NewRef((PyObject *)inputs[0]));
}

/* Compute an Assert. op: the message of the AssertionError, in UTF-8 with a final zero
 * byte. */
static int assertion(const thunk *self, PyArrayObject **inputs,
                     PyArrayObject **outputs) {
    for (int i = 1; i < self->n_inputs; i++) {
        void *condition = PyArray_DATA(inputs[i]);
        if (!PyArray_DESCR(inputs[i])->f->nonzero(condition, inputs[i])) {
            PyErr_SetString(PyExc_AssertionError, (const char *)self->op);
            return -1;
        }
    }
    return put(outputs, Py_NewRef((PyObject *)inputs[0]));
}

#endif
