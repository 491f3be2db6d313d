#ifndef THEANO_THUNKS_REDUCE_H
#define THEANO_THUNKS_REDUCE_H

/* The thunk of a CAReduce, without its loops. */

#include "thunk.h"

/* With at least this many contiguous elements, adding rows to the accumulator is faster
 * than accumulating each output element by itself. */
enum { ACROSS = 8 };

/* Reduce an input into `to`. Each element of `to` accumulates its elements in C
 * order. */
static int accumulate(const theano_elemwise_op *op, PyArrayObject *input,
                      PyArrayObject *to) {
    const int nd = op->nd;
    const npy_intp *dims = PyArray_DIMS(input), *like = PyArray_STRIDES(input);
    npy_intp strides[2 * nd], kept_first[nd];
    char *data[] = {PyArray_BYTES(input), PyArray_BYTES(to)};
    int last = -1;
    memcpy(strides, like, nd * sizeof(npy_intp));
    for (int d = 0, kept = 0; d < nd; d++) {
        const bool reduced = op->reduced[d] == '1';
        strides[nd + d] = reduced ? 0 : PyArray_STRIDE(to, kept++);
        kept_first[d] = !reduced;
        if (dims[d] > 1 && (last < 0 || labs(like[d]) <= labs(like[last])))
            last = d;
    }
    if (last >= 0 && op->reduced[last] == '0' && dims[last] < ACROSS)
        like = kept_first;
    op->fill(data[1], PyArray_SIZE(to));
    return theano_run_loops(nd, dims, 2, data, strides, like, op->reduced, op->loops);
}

static int reduce(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const theano_elemwise_op *op = (const theano_elemwise_op *)self->op;
    npy_intp dims[op->nd];
    int nd = 0;
    if (PyArray_NDIM(inputs[0]) != op->nd) {
        PyErr_Format(PyExc_ValueError, "Not %i, but %i dimensions of what is reduced.",
                     op->nd, PyArray_NDIM(inputs[0]));
        return -1;
    }
    for (int d = 0; d < op->nd; d++) {
        if (op->reduced[d] == '0') {
            dims[nd++] = PyArray_DIM(inputs[0], d);
        } else if (op->not_empty && PyArray_DIM(inputs[0], d) == 0) {
            PyErr_Format(PyExc_ValueError,
                         "Input of CAReduce{%s} has zero-size on axis %i",
                         op->not_empty, d);
            return -1;
        }
    }
    outputs[0] = theano_output(outputs[0], nd, dims, self->types[1], 0);
    if (!outputs[0])
        return -1;
    if (op->type == self->types[1])
        return accumulate(op, inputs[0], outputs[0]);
    PyArrayObject *sum = (PyArrayObject *)PyArray_EMPTY(nd, dims, op->type, 0);
    int failed =
        !sum || accumulate(op, inputs[0], sum) || PyArray_CopyInto(outputs[0], sum);
    Py_XDECREF(sum);
    return failed ? -1 : 0;
}

#endif
