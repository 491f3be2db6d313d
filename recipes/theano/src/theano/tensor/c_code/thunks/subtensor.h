#ifndef THEANO_THUNKS_SUBTENSOR_H
#define THEANO_THUNKS_SUBTENSOR_H

/* Computations of precompiled ops that index an array. */

#include "arrays.h"

/* A view of an array. Strides are in bytes; `offset` is the distance in bytes from the
 * array's first element to the view's. */
struct view {
    int nd;
    npy_intp dims[NPY_MAXDIMS], strides[NPY_MAXDIMS], offset;
};

/* The kinds of numbers in an encoded index: a missing number (None), an integer, and
 * the value of an input. encode_index of precompiled_ops.py writes them. */
enum { NONE, LITERAL, INPUT };

/* Read a number of an encoded index at `op` and advance `op` by two elements. The first
 * element is the kind; the second is the number itself (LITERAL) or the position of the
 * input (INPUT). Set *value, or return false for a missing number. */
static bool read_number(const thunk *self, PyArrayObject **inputs, const npy_intp *&op,
                        npy_intp *value) {
    const npy_intp kind = *op++, number = *op++;
    if (kind != NONE)
        *value = kind == INPUT ? integer(self, inputs, number) : number;
    return kind != NONE;
}

/* Limit the start or stop of a slice to a dimension's length, as in
 * PySlice_AdjustIndices. */
static npy_intp limit_bound(npy_intp bound, npy_intp length, npy_intp step) {
    if (bound < 0)
        bound += length;
    if (bound < 0)
        return step < 0 ? -1 : 0;
    return bound < length ? bound : step < 0 ? length - 1 : length;
}

/* Compute the view of the array `of` that an encoded index selects. op[0] is the number
 * of indexed dimensions. For each of them, the next element is 1 for a slice or 0 for
 * an integer. Then follow the start, stop and step of the slice, or the integer, as
 * read_number reads them. Return 0, or -1 with an exception set. */
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
            const npy_intp *bounds = op;
            op += 4;
            if (!read_number(self, inputs, op, &step))
                step = 1;
            op = bounds;
            if (step == 0) {
                PyErr_SetString(PyExc_ValueError, "slice step cannot be zero");
                return -1;
            }
            if (read_number(self, inputs, op, &start))
                start = limit_bound(start, length, step);
            else
                start = step < 0 ? length - 1 : 0;
            if (read_number(self, inputs, op, &stop))
                stop = limit_bound(stop, length, step);
            else
                stop = step < 0 ? -1 : length;
            op += 2;
            size = step < 0 ? (stop < start ? (stop - start + 1) / step + 1 : 0)
                            : (start < stop ? (stop - start - 1) / step + 1 : 0);
            view->offset += stride * start;
        } else {
            read_number(self, inputs, op, &start);
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

/* Compute a Subtensor. op: the encoded index (make_view). */
static int subtensor(const thunk *self, PyArrayObject **inputs,
                     PyArrayObject **outputs) {
    struct view view;
    if (make_view(self, inputs, (const npy_intp *)self->op, inputs[0], &view))
        return -1;
    return theano_view(outputs, IN_STORAGE, inputs[0], view.nd, view.dims, view.strides,
                       PyArray_BYTES(inputs[0]) + view.offset);
}

/* Set an output to an array that the op then changes: to `array` itself if `inplace` is
 * true, otherwise to a copy. Return 0, or -1 with an exception set. */
static int put_changed(PyArrayObject **output, PyArrayObject *array, bool inplace) {
    return inplace ? put(output, Py_NewRef((PyObject *)array))
                   : put_copy(output, array);
}

/* Compute an IncSubtensor. op[0]: whether it works in-place. op[1]: whether it sets
 * elements instead of adding to them. op + 2: the encoded index (make_view). */
static int inc_subtensor(const thunk *self, PyArrayObject **inputs,
                         PyArrayObject **outputs) {
    const npy_intp *op = (const npy_intp *)self->op;
    const bool inplace = op[0], set = op[1];
    struct view view;
    if (put_changed(outputs, inputs[0], inplace) ||
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

/* The numbers of the rows that a vector of indices selects from an array. A negative
 * index counts from the end. */
class rows_of {
    PyArrayObject *indices;
    const int type_num;
    /* The data of the indices if they are a plain array of int64, otherwise NULL. */
    const npy_int64 *const plain;
    const npy_intp length;

  public:
    rows_of(PyArrayObject *array, PyArrayObject *indices)
        : indices(indices), type_num(PyArray_TYPE(indices)),
          plain(is_plain(indices, NPY_INT64) ? (npy_int64 *)PyArray_DATA(indices)
                                             : NULL),
          length(PyArray_DIM(array, 0)) {}

    npy_intp count() const {
        return PyArray_DIM(indices, 0);
    }

    npy_intp operator[](npy_intp i) const {
        const npy_intp row =
            plain ? plain[i] : integer_at(PyArray_GETPTR1(indices, i), type_num);
        return row < 0 ? row + length : row;
    }

    /* Return 0, or set IndexError and return -1 if an index is out of bounds. */
    int check() const {
        for (npy_intp i = 0; i < count(); i++) {
            const npy_intp row = (*this)[i];
            if (row < 0 || row >= length) {
                PyErr_Format(PyExc_IndexError,
                             "index %zd is out of bounds for axis 0 with size %zd",
                             row < 0 ? row - length : row, length);
                return -1;
            }
        }
        return 0;
    }
};

/* The offsets of the rows that indices select, in bytes from the array's first row. */
struct offsets_of {
    const rows_of &rows;
    const npy_intp stride;

    npy_intp operator[](npy_intp i) const {
        return rows[i] * stride;
    }
};

/* Copy n rows of `size` bytes to consecutive memory; row i is at from + offsets[i]. */
template <typename Offsets>
static void take_rows(npy_intp n, npy_intp size, char *to, const char *from,
                      const Offsets &offsets) {
    for (npy_intp i = 0; i < n; i++, to += size) {
        const char *row = from + offsets[i];
        /* With a constant size, memcpy compiles to a move. */
        if (size == sizeof(float))
            memcpy(to, row, sizeof(float));
        else if (size == sizeof(double))
            memcpy(to, row, sizeof(double));
        else
            memcpy(to, row, size);
    }
}

/* Compute an AdvancedSubtensor1: take the rows that a vector of indices selects. It has
 * no parameters. If a matrix is stored by columns, store the output by columns too: the
 * elements of a column are adjacent in both. */
static int advanced_subtensor1(const thunk *self, PyArrayObject **inputs,
                               PyArrayObject **outputs) {
    PyArrayObject *from = inputs[0];
    const int nd = PyArray_NDIM(from);
    const rows_of selected(from, inputs[1]);
    npy_intp dims[NPY_MAXDIMS];
    memcpy(dims, PyArray_DIMS(from), nd * sizeof(npy_intp));
    dims[0] = selected.count();
    const bool by_rows = is_plain(from, self->types[0]),
               by_columns =
                   nd == 2 && !by_rows && is_plain_by_columns(from, self->types[0]);
    if (selected.check() || put_empty(outputs, nd, dims, self->types[0], by_columns))
        return -1;
    if (by_columns ? !is_plain_by_columns(outputs[0], self->types[0]) ||
                         overlap(outputs[0], from)
                   : !by_rows || !can_copy(outputs[0], from))
        return put(outputs,
                   PyArray_TakeFrom(from, (PyObject *)inputs[1], 0, NULL, NPY_RAISE));
    /* Take parts of `size` bytes: whole rows, or the elements of each column. Do not
     * use the strides: a stride is arbitrary if its dimension has the length 1. */
    const npy_intp size = by_columns ? PyArray_ITEMSIZE(from) : rows(from, 0).unit,
                   n_columns = by_columns ? dims[1] : 1;
    for (npy_intp column = 0; column < n_columns; column++)
        take_rows(dims[0], size, PyArray_BYTES(outputs[0]) + column * dims[0] * size,
                  PyArray_BYTES(from) + column * PyArray_DIM(from, 0) * size,
                  offsets_of{selected, size});
    return 0;
}

/* Add n numbers one after another: number i to the element at to + offsets[i]. */
template <typename T, typename Offsets>
static void add_numbers(npy_intp n, char *to, const Offsets &offsets, const char *from,
                        npy_intp from_stride) {
    for (npy_intp i = 0; i < n; i++)
        *(T *)(to + offsets[i]) += *(const T *)(from + i * from_stride);
}

/* Add values at `from` to rows of an array at `to`. dims has the nd dimensions of the
 * values; strides are in bytes. */
template <typename T>
static void add_to_rows(const rows_of &rows, int nd, const npy_intp *dims, char *to,
                        const npy_intp *to_strides, const char *from,
                        const npy_intp *from_strides) {
    const offsets_of offsets = {rows, to_strides[0]};
    if (nd == 1)
        return add_numbers<T>(rows.count(), to, offsets, from, from_strides[0]);
    for (npy_intp i = 0; i < rows.count(); i++, from += from_strides[0])
        theano_few_loops<T>(true, nd - 1, dims + 1, to + offsets[i], to_strides + 1,
                            from, from_strides + 1);
}

/* Compute an AdvancedIncSubtensor1: add values to the rows that a vector of indices
 * selects, in the order of the indices. op[0]: whether it works in-place. */
static int advanced_inc_subtensor1(const thunk *self, PyArrayObject **inputs,
                                   PyArrayObject **outputs) {
    PyArrayObject *value = inputs[1];
    const rows_of rows(inputs[0], inputs[2]);
    if (put_changed(outputs, inputs[0], *(const npy_intp *)self->op) ||
        PyArray_FailUnlessWriteable(outputs[0], "input/output array") || rows.check())
        return -1;
    const int nd = PyArray_NDIM(outputs[0]), more = nd - PyArray_NDIM(value);
    npy_intp dims[NPY_MAXDIMS], from_strides[NPY_MAXDIMS];
    memcpy(dims, PyArray_DIMS(outputs[0]), nd * sizeof(npy_intp));
    dims[0] = rows.count();
    for (int d = 0; d < nd; d++) {
        const npy_intp size = d < more ? 1 : PyArray_DIM(value, d - more);
        if (size != 1 && size != dims[d]) {
            PyErr_SetString(PyExc_ValueError,
                            "array is not broadcastable to correct shape");
            return -1;
        }
        from_strides[d] = size == 1 ? 0 : PyArray_STRIDE(value, d - more);
    }
    (self->types[0] == NPY_DOUBLE
         ? add_to_rows<double>
         : add_to_rows<float>)(rows, nd, dims, PyArray_BYTES(outputs[0]),
                               PyArray_STRIDES(outputs[0]), PyArray_BYTES(value),
                               from_strides);
    return 0;
}

#endif
