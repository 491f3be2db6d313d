#ifndef THEANO_THUNKS_REDUCE_H
#define THEANO_THUNKS_REDUCE_H

/* The thunk of a CAReduce, without its loops. */

#include "threads.h"
#include "thunk.h"

/* If the input's innermost dimension is not reduced and is shorter than this, the loops
 * accumulate one output element after another. Otherwise they follow the input's memory
 * order. In this order, if the innermost dimension is not reduced, they add whole rows
 * to a row of accumulators, which is faster for rows of at least this length. */
enum { MIN_ROW_LENGTH = 8 };

/* Write nd strides of the input, then nd strides of the accumulator along the input's
 * dimensions, 0 for reduced dimensions. to_strides has the accumulator's strides for
 * the dimensions that are not reduced. Return the nd values by which theano_order_loops
 * orders the loops: the input's strides, or kept_first. This function sets kept_first
 * to 1 for dimensions that are not reduced and to 0 for others. */
static const npy_intp *reduction_strides(const theano_elemwise_op *op,
                                         PyArrayObject *input,
                                         const npy_intp *to_strides, npy_intp *strides,
                                         npy_intp *kept_first) {
    const int nd = op->nd;
    const npy_intp *dims = PyArray_DIMS(input), *like = PyArray_STRIDES(input);
    int last = -1;
    memcpy(strides, like, nd * sizeof(npy_intp));
    for (int d = 0, kept = 0; d < nd; d++) {
        const bool reduced = op->reduced[d] == '1';
        strides[nd + d] = reduced ? 0 : to_strides[kept++];
        kept_first[d] = !reduced;
        if (dims[d] > 1 && (last < 0 || labs(like[d]) <= labs(like[last])))
            last = d;
    }
    const bool has_short_rows =
        last >= 0 && op->reduced[last] == '0' && dims[last] < MIN_ROW_LENGTH;
    return has_short_rows ? kept_first : like;
}

/* The loops of a reduction, with the constants that in_threads needs. */
struct reduction_loops {
    enum { AT_ONCE = 512, FEW = 0 };

    theano_loops loops;

    int operator()(char *const *data, const npy_intp *sizes,
                   const npy_intp *strides) const {
        return loops(data, sizes, strides);
    }
};

/* Reduce an input into `to`, an array of the accumulator's type. Each element of `to`
 * accumulates its elements of the input in C order. Return 0, or -1 on failure. */
static int accumulate(const theano_elemwise_op *op, PyArrayObject *input,
                      PyArrayObject *to) {
    npy_intp strides[2 * op->nd], kept_first[op->nd];
    char *data[] = {PyArray_BYTES(input), PyArray_BYTES(to)};
    const npy_intp *like =
        reduction_strides(op, input, PyArray_STRIDES(to), strides, kept_first);
    op->fill(data[1], PyArray_SIZE(to));
    return theano_run_loops(op->nd, PyArray_DIMS(input), 2, data, strides, like,
                            op->reduced, reduction_loops{op->loops}, in_threads{1});
}

/* Compute a CAReduce. op: a theano_elemwise_op. */
static int reduce(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const theano_elemwise_op *op = (const theano_elemwise_op *)self->op;
    npy_intp dims[op->nd];
    int nd = 0;
    if (PyArray_NDIM(inputs[0]) != op->nd) {
        PyErr_Format(PyExc_ValueError,
                     "The input of a reduction has %i dimensions instead of %i.",
                     PyArray_NDIM(inputs[0]), op->nd);
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
