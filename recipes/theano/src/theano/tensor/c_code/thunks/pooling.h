#ifndef THEANO_THUNKS_POOLING_H
#define THEANO_THUNKS_POOLING_H

/* Computations of Pool, MaxPoolGrad and AveragePoolGrad. The first dimensions of x
 * select an image; the other dimensions are pooled. The results have the same bits as
 * the results of the ops' C code: each element accumulates its terms in the same order.
 */

#include "pooling_kernels.h"
#include "threads.h"
#include "values.h"

namespace {

/* The windows of an image. */
struct window_layout {
    /* Values of `mode`. precompiled_ops.py defines the same constants. */
    enum { MAXIMUM, SUM, AVERAGE_EXC_PAD, AVERAGE_INC_PAD };

    int nd, mode;
    bool ignore_border, is_gradient;
    /* For each pooled dimension: the length of an image, the number of windows, the
     * length of a window, the distance between windows, and the padding. */
    npy_intp sizes[NPY_MAXDIMS], n_windows[NPY_MAXDIMS], lengths[NPY_MAXDIMS],
        strides[NPY_MAXDIMS], pads[NPY_MAXDIMS];

    /* The part of a window inside the image, in one dimension. An average divides by
     * the product of the divisors. */
    struct part {
        npy_intp start, end, divisor;
        bool is_empty;
    };

    /* Return whether the op divides sums of windows. */
    bool divides() const {
        return !is_gradient && (mode == AVERAGE_EXC_PAD || mode == AVERAGE_INC_PAD);
    }

    bool has_padding() const {
        return std::any_of(pads, pads + nd, [](npy_intp pad) { return pad > 0; });
    }

    /* Set `part` to the part of window number i in dimension d. A returned part would
     * be copied, and the processor would wait for the parts of the copy. */
    void find_part(int d, npy_intp i, part &part) const {
        const npy_intp pad = pads[d], padded = sizes[d] + 2 * pad,
                       first = i * strides[d];
        if (is_gradient && mode != MAXIMUM) {
            const npy_intp start =
                mode == AVERAGE_EXC_PAD ? std::max(first, pad) : first;
            const npy_intp end = std::min(start + lengths[d], padded);
            part.start = std::max<npy_intp>(start - pad, 0);
            part.end = std::min(end, padded - pad) - pad;
            part.divisor = end - start;
        } else {
            part.start = std::max(first, pad) - pad;
            part.end = std::min(first + lengths[d], padded - pad) - pad;
            if (ignore_border && !is_gradient)
                part.end = std::min(part.end, padded);
            part.divisor = mode == AVERAGE_INC_PAD && ignore_border
                               ? lengths[d]
                               : part.end - part.start;
        }
        if (mode == SUM)
            part.divisor = 1;
        part.is_empty = part.start >= part.end;
    }

    /* Set *from to the first window, and *to to the window after the last window, that
     * are completely inside the image along dimension d. */
    void find_complete(int d, npy_intp *from, npy_intp *to) const {
        const npy_intp length = lengths[d], stride = strides[d], pad = pads[d];
        *from = *to = 0;
        if (length <= 0 || length > sizes[d] || stride <= 0 || pad < 0)
            return;
        *from = (pad + stride - 1) / stride;
        *to = std::min(n_windows[d], (sizes[d] + pad - length) / stride + 1);
    }

    /* Set n_windows for a Pool. Return 0, or -1 with an exception set. */
    int count_windows() {
        if (!ignore_border && has_padding()) {
            PyErr_SetString(PyExc_ValueError,
                            "padding must be zero when ignore border is False");
            return -1;
        }
        for (int d = 0; d < nd; d++) {
            const npy_intp padded = sizes[d] + 2 * pads[d], length = lengths[d],
                           stride = strides[d];
            if (ignore_border && padded < length) {
                n_windows[d] = 0;
                continue;
            }
            if (stride == 0) {
                PyErr_SetString(PyExc_ValueError, "stride must not be zero");
                return -1;
            }
            n_windows[d] =
                ignore_border ? (padded - length) / stride + 1
                : stride >= length
                    ? (padded - 1) / stride + 1
                    : std::max<npy_intp>(0, (padded - 1 - length + stride) / stride) +
                          1;
        }
        return 0;
    }

    /* Return 0 if all windows start inside the image, or -1 with an exception set. */
    int check_starts() const {
        for (int d = 0; d < nd; d++) {
            part first, last;
            find_part(d, 0, first);
            find_part(d, n_windows[d] - 1, last);
            if (std::max(first.start, last.start) >= sizes[d]) {
                PyErr_SetString(PyExc_ValueError, "a window contains no element of x");
                return -1;
            }
        }
        return 0;
    }
};

/* The loops of a pooling, divided into parts that consist of images. */
template <typename T> struct pooling_loops : divided_loops {
    /* The arrays: x, the gradient of x, the results of the windows, and their gradient.
     * The first two have images, the others have an element for each window. Arrays
     * that the op does not use are NULL. */
    enum { X, X_GRADIENT, POOLED, POOLED_GRADIENT, N_ARRAYS };
    /* A kernel's functions for a distance between windows of any number, and of 1, 2
     * and 3 columns (STRIDE in pooling_kernels.h). */
    typedef void (*compute_function)(const windows<T> &row);
    typedef const compute_function compute_functions[4];
    /* The elements of images that a kernel processes at once. They fit into the
     * first-level cache. */
    enum { IMAGE_ELEMENTS = 1 << 11 };

    const window_layout &layout;
    const int n_leading;
    const npy_intp *dims;
    npy_intp n_images = 1, image_size = 1, complete_from, complete_to;
    /* How many images a kernel processes at once, or 1 if it processes rows of windows.
     */
    npy_intp images_at_once = 1;
    T *data[N_ARRAYS] = {};
    /* In elements; 0 for arrays that the op does not use. */
    npy_intp strides[N_ARRAYS][NPY_MAXDIMS] = {};
    compute_function compute, compute_complete;
    /* The fields that all rows of windows have in common. */
    windows<T> row = {};

    pooling_loops(const window_layout &layout, PyArrayObject *const *arrays,
                  compute_functions &functions)
        : divided_loops(run_parts, 1), layout(layout),
          n_leading(PyArray_NDIM(arrays[X]) - layout.nd),
          dims(PyArray_DIMS(arrays[X])) {
        const int last = PyArray_NDIM(arrays[X]) - 1;
        bool are_adjacent = true;
        for (int i = 0; i < N_ARRAYS; i++) {
            if (!arrays[i])
                continue;
            data[i] = (T *)PyArray_DATA(arrays[i]);
            for (int d = 0; d <= last; d++)
                strides[i][d] = PyArray_STRIDE(arrays[i], d) / (npy_intp)sizeof(T);
            are_adjacent = are_adjacent && strides[i][last] == 1;
        }
        for (int d = 0; d <= last; d++)
            (d < n_leading ? n_images : image_size) *= dims[d];
        layout.find_complete(layout.nd - 1, &complete_from, &complete_to);
        const npy_intp stride = layout.strides[layout.nd - 1];
        const bool is_constant = are_adjacent && stride >= 1 && stride <= 3;
        compute = functions[0];
        compute_complete = functions[is_constant ? stride : 0];
        row.n_rows = 1;
        row.x_row = layout.nd > 1 ? strides[X][last - 1] : 0;
        row.sums_row = layout.nd > 1 ? strides[X_GRADIENT][last - 1] : 0;
        row.x_column = strides[X][last];
        row.is_first = true;
        const bool are_short = complete_to - complete_from < 2 * lanes<T>::N;
        if (are_short && find_image_distances())
            images_at_once = std::max<npy_intp>(
                1, IMAGE_ELEMENTS / std::max<npy_intp>(1, image_size));
        if (images_at_once == 1) {
            row.x_window = stride * row.x_column;
            row.sums_window = stride;
            row.pooled_window = strides[POOLED][last];
            row.terms_window = strides[POOLED_GRADIENT][last];
        }
        if (are_large(last, dims))
            n_parts = std::min<npy_intp>(n_images, in_threads::count_parts());
    }

    /* Set the distances between windows to the distances between images. Return false
     * if images are not at constant distances. */
    bool find_image_distances() {
        npy_intp distances[N_ARRAYS] = {};
        for (int i = 0; i < N_ARRAYS && n_leading; i++) {
            distances[i] = strides[i][n_leading - 1];
            for (int d = 1; d < n_leading; d++)
                if (strides[i][d - 1] != strides[i][d] * dims[d])
                    return false;
        }
        row.x_window = distances[X];
        row.sums_window = distances[X_GRADIENT];
        row.pooled_window = distances[POOLED];
        row.terms_window = distances[POOLED_GRADIENT];
        return true;
    }

    static void run_parts(const divided_loops *base, npy_intp part, npy_intp end) {
        const pooling_loops &self = *(const pooling_loops *)base;
        const npy_intp last = end * self.n_images / self.n_parts;
        for (npy_intp i = part * self.n_images / self.n_parts; i < last;
             i += self.images_at_once)
            self.pool_images(i, std::min(self.images_at_once, last - i));
    }

    /* Compute the windows of n images, from number `image` on. */
    void pool_images(npy_intp image, npy_intp n) const {
        T *at[N_ARRAYS];
        std::copy_n(data, (int)N_ARRAYS, at);
        for (int d = n_leading - 1; d >= 0; d--, image /= dims[d + 1])
            for (int i = 0; i < N_ARRAYS; i++)
                at[i] += image % dims[d] * strides[i][d];
        if (layout.is_gradient)
            std::fill_n(at[X_GRADIENT], n * image_size, 0);
        window_layout::part parts[layout.nd];
        windows<T> w = row;
        w.n_windows = n;
        pool_windows(0, parts, &w, at[X], at[X_GRADIENT], at[POOLED],
                     at[POOLED_GRADIENT]);
    }

    /* Compute the windows with the given parts in the dimensions before d. The
     * addresses belong to the first elements of these parts. */
    void pool_windows(int d, window_layout::part *parts, windows<T> *w, const T *x,
                      T *sums, T *pooled, const T *terms) const {
        const int k = n_leading + d;
        npy_intp step = 1;
        for (npy_intp i = 0; i < layout.n_windows[d]; i += step) {
            window_layout::part &part = parts[d];
            layout.find_part(d, i, part);
            const T *const x_start = x + part.start * strides[X][k];
            T *const sums_start = sums + part.start * strides[X_GRADIENT][k];
            w->pooled = pooled + i * strides[POOLED][k];
            w->terms = terms + i * strides[POOLED_GRADIENT][k];
            if (d > 0) {
                part.divisor *= parts[d - 1].divisor;
                part.is_empty = part.is_empty || parts[d - 1].is_empty;
            }
            if (d < layout.nd - 1) {
                pool_windows(d + 1, parts, w, x_start, sums_start, w->pooled, w->terms);
                continue;
            }
            const bool are_complete = images_at_once == 1 && i >= complete_from &&
                                      i < complete_to && !part.is_empty;
            if (images_at_once == 1)
                w->n_windows = step = are_complete ? complete_to - i : 1;
            add_windows(parts, w, x_start, sums_start,
                        are_complete ? compute_complete : compute);
        }
    }

    /* Compute windows that have the same parts, except for the column or the image. */
    void add_windows(const window_layout::part *parts, windows<T> *w, const T *x,
                     T *sums, compute_function compute) const {
        const window_layout::part &part = parts[layout.nd - 1];
        w->n_columns = part.end - part.start;
        if (layout.nd > 1)
            w->n_rows = parts[layout.nd - 2].end - parts[layout.nd - 2].start;
        w->divisor = part.divisor;
        w->is_first = true;
        add_parts(0, parts, w, x, sums, compute);
        for (npy_intp i = 0; i < w->n_windows && !layout.is_gradient; i++) {
            T &pooled = w->pooled[i * w->pooled_window];
            if (part.is_empty)
                pooled = layout.mode == window_layout::MAXIMUM ? x[i * w->x_window] : 0;
            if (layout.divides())
                pooled /= w->divisor;
        }
    }

    /* Add all rows of the windows w; d is the first pooled dimension whose index is not
     * chosen. */
    void add_parts(int d, const window_layout::part *parts, windows<T> *w, const T *x,
                   T *sums, compute_function compute) const {
        if (d >= layout.nd - 2) {
            w->x = x;
            w->sums = sums;
            compute(*w);
            w->is_first = false;
            return;
        }
        for (npy_intp i = 0; i < parts[d].end - parts[d].start; i++)
            add_parts(d + 1, parts, w, x + i * strides[X][n_leading + d],
                      sums + i * strides[X_GRADIENT][n_leading + d], compute);
    }
};

template <typename T, typename Kernel>
static void pool_floats(const window_layout &layout, PyArrayObject *const *arrays) {
    static typename pooling_loops<T>::compute_functions functions = {
        Kernel::template compute<0, T>, Kernel::template compute<1, T>,
        Kernel::template compute<2, T>, Kernel::template compute<3, T>};
    pooling_loops<T>(layout, arrays, functions).run_all();
}

/* Compute the windows of all images. `arrays` are the arrays of pooling_loops. Kernel
 * is `results` or `gradients` of an operation (pooling_kernels.h). */
template <typename Kernel>
static void pool_arrays(const window_layout &layout, PyArrayObject *const *arrays) {
    (PyArray_TYPE(arrays[0]) == NPY_DOUBLE
         ? pool_floats<double, Kernel>
         : pool_floats<float, Kernel>)(layout, arrays);
}

/* Read a layout, except for n_windows. op[0]: the number of pooled dimensions. op[1]:
 * the mode. op[2]: whether the op ignores the border. The last three inputs are the
 * lengths of windows, their distances and the padding. Return 0, or -1 with an
 * exception set. */
static int read_layout(const thunk *self, PyArrayObject **inputs, bool is_gradient,
                       window_layout *layout) {
    const npy_intp *op = (const npy_intp *)self->op;
    const int nd = op[0], n_leading = PyArray_NDIM(inputs[0]) - nd;
    layout->nd = nd;
    layout->mode = op[1];
    layout->ignore_border = op[2];
    layout->is_gradient = is_gradient;
    if (n_leading < 0) {
        PyErr_Format(PyExc_ValueError, "x must have at least %d dimensions", nd);
        return -1;
    }
    npy_intp *const numbers[] = {layout->lengths, layout->strides, layout->pads};
    const char *const names[] = {"ws", "stride", "pad"};
    for (int k = 0; k < 3; k++) {
        const int i = self->n_inputs - 3 + k;
        if (PyArray_DIM(inputs[i], 0) != nd) {
            PyErr_Format(PyExc_ValueError, "%s must be a vector of size %d", names[k],
                         nd);
            return -1;
        }
        for (int d = 0; d < nd; d++)
            numbers[k][d] = integer_at(PyArray_GETPTR1(inputs[i], d), self->types[i]);
    }
    for (int d = 0; d < nd; d++)
        layout->sizes[d] = PyArray_DIM(inputs[0], n_leading + d);
    return 0;
}

/* Set an output to a C-contiguous array of the type of x. Its elements are not
 * initialized. Return 0, or -1 with an exception set. */
static int put_contiguous(PyArrayObject **output, PyArrayObject *x, npy_intp *dims) {
    if (*output && !PyArray_IS_C_CONTIGUOUS(*output))
        Py_CLEAR(*output);
    return put_empty(output, PyArray_NDIM(x), dims, PyArray_TYPE(x), 0);
}

/* Compute a Pool of x (read_layout). */
static int pool(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    PyArrayObject *const x = inputs[0];
    window_layout layout;
    if (read_layout(self, inputs, false, &layout) || layout.count_windows())
        return -1;
    npy_intp dims[NPY_MAXDIMS];
    const int n_leading = PyArray_NDIM(x) - layout.nd;
    std::copy_n(PyArray_DIMS(x), n_leading, dims);
    std::copy_n(layout.n_windows, layout.nd, dims + n_leading);
    if (put_contiguous(outputs, x, dims))
        return -1;
    if (PyArray_SIZE(outputs[0]) == 0)
        return 0;
    PyArrayObject *const arrays[] = {x, NULL, outputs[0], NULL};
    if (layout.mode == window_layout::MAXIMUM) {
        if (layout.check_starts())
            return -1;
        pool_arrays<results<maximum>>(layout, arrays);
    } else {
        pool_arrays<results<sum>>(layout, arrays);
    }
    return 0;
}

/* Compute the gradient of x for a Pool. `pooled` has an element for each window. Return
 * 0, or -1 with an exception set. */
template <typename Operation>
static int compute_pool_gradient(window_layout *layout, PyArrayObject *x,
                                 PyArrayObject *pooled, PyArrayObject *pooled_gradient,
                                 PyArrayObject **x_gradient) {
    const int nd = PyArray_NDIM(x), n_leading = nd - layout->nd;
    const struct {
        PyArrayObject *array;
        const char *name;
    } arguments[] = {{pooled, "z"}, {pooled_gradient, "gz"}};
    for (const auto &argument : arguments) {
        if (PyArray_NDIM(argument.array) != nd) {
            PyErr_Format(PyExc_ValueError, "%s must be a %dD ndarray", argument.name,
                         nd);
            return -1;
        }
    }
    for (int d = 0; d < nd; d++) {
        const npy_intp n = PyArray_DIM(d < n_leading ? x : pooled, d);
        if (PyArray_DIM(pooled, d) < n || PyArray_DIM(pooled_gradient, d) < n) {
            PyErr_Format(PyExc_ValueError, "z or gz is too short in dimension %d", d);
            return -1;
        }
        if (d >= n_leading)
            layout->n_windows[d - n_leading] = n;
    }
    if (put_contiguous(x_gradient, x, PyArray_DIMS(x)))
        return -1;
    if (PyArray_SIZE(x) > 0) {
        PyArrayObject *const arrays[] = {x, *x_gradient, pooled, pooled_gradient};
        pool_arrays<gradients<Operation>>(*layout, arrays);
    }
    return 0;
}

/* Compute a MaxPoolGrad of x, the maxima and their gradient (read_layout). */
static int max_pool_gradient(const thunk *self, PyArrayObject **inputs,
                             PyArrayObject **outputs) {
    window_layout layout;
    return read_layout(self, inputs, true, &layout)
               ? -1
               : compute_pool_gradient<maximum_gradient>(&layout, inputs[0], inputs[1],
                                                         inputs[2], outputs);
}

/* Compute an AveragePoolGrad of x and the gradient of the averages or sums
 * (read_layout). */
static int average_pool_gradient(const thunk *self, PyArrayObject **inputs,
                                 PyArrayObject **outputs) {
    window_layout layout;
    if (read_layout(self, inputs, true, &layout))
        return -1;
    if (layout.mode == window_layout::AVERAGE_EXC_PAD && layout.has_padding()) {
        PyErr_SetString(PyExc_ValueError, "padding must be zero for average_exc_pad");
        return -1;
    }
    return compute_pool_gradient<sum_gradient>(&layout, inputs[0], inputs[1], inputs[1],
                                               outputs);
}

} // namespace

#endif
