#ifndef THEANO_THUNKS_ELEMWISE_H
#define THEANO_THUNKS_ELEMWISE_H

/* The thunk of an Elemwise: all but its loops. */

#include "thunk.h"

/* Whether all inputs but those of one element are in Fortran order. */
static int fortran(const theano_elemwise_op *op, PyArrayObject **inputs) {
    int known = 0;
    for (int i = 0; i < op->n_inputs; i++) {
        if (!strchr(op->broadcast[i], '0'))
            continue;
        if (!PyArray_ISFORTRAN(inputs[i]))
            return 0;
        known = 1;
    }
    return known;
}

static int elemwise(const thunk *self, PyArrayObject **inputs,
                    PyArrayObject **outputs) {
    const theano_elemwise_op *op = (const theano_elemwise_op *)self->op;
    PyArrayObject *arrays[op->n_inputs + op->n_outputs];
    npy_intp dims[op->nd];
    int n = op->n_inputs;
    memcpy(arrays, inputs, n * sizeof(*inputs));
    if (theano_dims(op->nd, dims, n, inputs, op->broadcast))
        return -1;
    for (int i = 0; i < op->n_outputs; i++) {
        if (op->overwritten[i] >= 0) {
            PyArrayObject *input = inputs[op->overwritten[i]];
            Py_INCREF(input);
            Py_XSETREF(outputs[i], input);
            continue;
        }
        outputs[i] = theano_output(outputs[i], op->nd, dims,
                                   self->types[op->n_inputs + i], fortran(op, inputs));
        if (!outputs[i])
            return -1;
        arrays[n++] = outputs[i];
    }
    return theano_elemwise(op->nd, dims, n, arrays, op->broadcast, op->like, op->loops);
}

#endif
