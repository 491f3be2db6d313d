#ifndef THEANO_THUNKS_CORRELATIONS_H
#define THEANO_THUNKS_CORRELATIONS_H

/* Computations of CorrMM and of its gradients by the kernels of theano_correlations.h.
 * The checks and error messages are stock Theano's (theano/tensor/nnet/corr.py). */

#include "theano_correlations.h"
#include "values.h"

/* The parameters of a CorrMM along the rows or the columns, as precompiled_ops.py
 * encodes them. */
struct encoded_axis {
    npy_intp stride, dilation, padding_before, padding_after;
};

/* The parameters of a CorrMM. `direction` is 0 for CorrMM, 1 for CorrMM_gradWeights and
 * 2 for CorrMM_gradInputs. */
struct encoded_correlation {
    npy_intp direction, n_groups;
    encoded_axis axes[2];
};

enum { HALF_PADDING = -1, FULL_PADDING = -2 };

/* Return a / b, rounded down, for b > 0. */
static npy_intp divide_down(npy_intp a, npy_intp b) {
    return a / b - (a % b < 0);
}

/* Set the lengths along an axis: the two lengths that are known, and the length of the
 * output. `given` is the length that the node's inputs give for a gradient, or -1.
 * Return the length of the top that the images and filters have. */
static npy_intp set_axis(correlation_axis *axis, const encoded_axis &encoded,
                         npy_intp direction, npy_intp given) {
    npy_intp before = encoded.padding_before, after = encoded.padding_after;
    const npy_intp stride = encoded.stride, dilation = encoded.dilation;
    const bool is_full = before == FULL_PADDING || after == FULL_PADDING;
    if (direction == 1)
        axis->filter =
            given != -1 ? given
            : is_full ? (2 - axis->image + (axis->top - 1) * stride - 1) / dilation + 1
                      : (axis->image + before + after - (axis->top - 1) * stride - 1) /
                                dilation +
                            1;
    const npy_intp reach = (axis->filter - 1) * dilation;
    if (before == HALF_PADDING || after == HALF_PADDING)
        before = after = (reach + 1) / 2;
    else if (is_full)
        before = after = reach;
    if (direction == 0)
        axis->top = (axis->image + before + after - (reach + 1)) / stride + 1;
    if (direction == 2)
        axis->image =
            given != -1 ? given : (axis->top - 1) * stride + reach + 1 - before - after;
    axis->stride = stride;
    axis->dilation = dilation;
    axis->padding = before;
    return divide_down(axis->image + before + after - (reach + 1), stride) + 1;
}

/* Return a new reference to a contiguous, aligned array with the same elements. */
static PyArrayObject *make_contiguous(PyArrayObject *array) {
    return (PyArrayObject *)PyArray_FROM_OF((PyObject *)array, NPY_ARRAY_CARRAY_RO);
}

/* Compute a correlation of contiguous arrays: images, filters and top. */
template <typename T>
static int correlate_arrays(npy_intp direction, npy_intp n_groups,
                            const correlation_axis *axes, PyArrayObject **arrays) {
    const correlation<T> c = {PyArray_DIM(arrays[0], 0),
                              n_groups,
                              PyArray_DIM(arrays[1], 1),
                              PyArray_DIM(arrays[1], 0) / n_groups,
                              axes[0],
                              axes[1],
                              (T *)PyArray_DATA(arrays[0]),
                              (T *)PyArray_DATA(arrays[1]),
                              (T *)PyArray_DATA(arrays[2])};
    return direction == 0   ? theano_correlate(c)
           : direction == 1 ? theano_correlate_for_filters(c)
                            : theano_correlate_for_images(c);
}

/* Compute the output of a CorrMM or of one of its gradients. */
static int compute_correlation(const thunk *self, PyArrayObject **inputs,
                               PyArrayObject **outputs) {
    enum { IMAGES, FILTERS, TOP };
    const encoded_correlation &op = *(const encoded_correlation *)self->op;
    /* The number of the array that is the output, and of the two inputs, in order. */
    static const int outputs_of[] = {TOP, FILTERS, IMAGES};
    static const int inputs_of[][2] = {
        {IMAGES, FILTERS}, {IMAGES, TOP}, {FILTERS, TOP}};
    const int output = outputs_of[op.direction];
    const int *const from = inputs_of[op.direction];
    npy_intp dims[3][4];
    for (int i = 0; i < 2; i++)
        memcpy(dims[from[i]], PyArray_DIMS(inputs[i]), sizeof(dims[0]));
    correlation_axis axes[2];
    npy_intp expected_top[2];
    for (int i = 0; i < 2; i++) {
        const npy_intp given =
            self->n_inputs > 2 ? integer(self, inputs, 2 + i) : (npy_intp)-1;
        axes[i].image = dims[IMAGES][2 + i];
        axes[i].filter = dims[FILTERS][2 + i];
        axes[i].top = dims[TOP][2 + i];
        expected_top[i] = set_axis(axes + i, op.axes[i], op.direction, given);
    }
    /* The first two dimensions of the output. */
    const npy_intp first[][2] = {
        {dims[TOP][0], dims[FILTERS][1] * op.n_groups},
        {dims[TOP][1], dims[IMAGES][1] / op.n_groups},
        {dims[IMAGES][0], dims[FILTERS][0]},
    };
    memcpy(dims[output], first[output], sizeof(first[0]));
    for (int i = 0; i < 2; i++) {
        dims[IMAGES][2 + i] = axes[i].image;
        dims[FILTERS][2 + i] = axes[i].filter;
        dims[TOP][2 + i] = axes[i].top;
    }
    const npy_intp *const b = dims[IMAGES], *const w = dims[FILTERS],
                          *const t = dims[TOP];
    if (dims[output][2] <= 0 || dims[output][3] <= 0) {
        static const char *const gradients[] = {"", " backprop wrt. weights",
                                                " backprop wrt. inputs"};
        PyErr_Format(PyExc_ValueError,
                     "CorrMM%s: impossible output shape\n"
                     "  bottom shape: %zd x %zd x %zd x %zd\n"
                     "  weights shape: %zd x %zd x %zd x %zd\n"
                     "  top shape: %zd x %zd x %zd x %zd\n",
                     gradients[op.direction], b[0], b[1], b[2], b[3], w[0], w[1], w[2],
                     w[3], t[0], t[1], t[2], t[3]);
        return -1;
    }
    if (b[1] != w[1] * op.n_groups) {
        PyErr_SetString(PyExc_ValueError,
                        "CorrMM images and kernel must have the same stack size\n");
        return -1;
    }
    if (w[0] % op.n_groups) {
        PyErr_SetString(PyExc_ValueError, "CorrMM the number of filters must be "
                                          "divisible by the number of groups\n");
        return -1;
    }
    if (b[0] != t[0] || w[0] != t[1] || expected_top[0] != t[2] ||
        expected_top[1] != t[3]) {
        PyErr_Format(PyExc_ValueError,
                     "CorrMM shape inconsistency:\n"
                     "  bottom shape: %zd %zd %zd %zd\n"
                     "  weight shape: %zd %zd %zd %zd\n"
                     "  top shape: %zd %zd %zd %zd (expected %zd %zd %zd %zd)\n",
                     b[0], b[1], b[2], b[3], w[0], w[1], w[2], w[3], t[0], t[1], t[2],
                     t[3], b[0], w[0], expected_top[0], expected_top[1]);
        return -1;
    }
    if (outputs[0] && !PyArray_IS_C_CONTIGUOUS(outputs[0]))
        Py_CLEAR(outputs[0]);
    if (put_empty(outputs, 4, dims[output], self->types[0], 0))
        return -1;
    if (std::count(b, b + 4, 0) || std::count(w, w + 4, 0) || std::count(t, t + 4, 0)) {
        memset(PyArray_DATA(outputs[0]), 0, PyArray_NBYTES(outputs[0]));
        return 0;
    }
    PyArrayObject *arrays[3] = {};
    for (int i = 0; i < 2; i++)
        arrays[from[i]] = make_contiguous(inputs[i]);
    arrays[output] = (PyArrayObject *)Py_NewRef((PyObject *)outputs[0]);
    int failed = -1;
    if (arrays[from[0]] && arrays[from[1]]) {
        failed =
            (self->types[0] == NPY_DOUBLE
                 ? correlate_arrays<double>
                 : correlate_arrays<float>)(op.direction, op.n_groups, axes, arrays);
        if (failed)
            PyErr_NoMemory();
    }
    for (PyArrayObject *array : arrays)
        Py_XDECREF(array);
    return failed;
}

#endif
