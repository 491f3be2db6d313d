#ifndef THEANO_TENSOR_H
#define THEANO_TENSOR_H

/* Functions that generated code calls for each tensor. Most of them are not inlined, so
 * g++ compiles them once for a module instead of once for each variable. */

#include <Python.h>
#include <numpy/arrayobject.h>
#include <utility>
#include "theano_loops.h"

#define THEANO_RARE static __attribute__((unused, noinline, cold))
#define THEANO_SHARED static __attribute__((unused, noinline))

/* Return whether an object is an aligned array with a NumPy type number. */
static inline int theano_is_array(PyObject *object, int type_num) {
    PyArrayObject *array = (PyArrayObject *)object;
    return PyArray_Check(object) && PyArray_ISALIGNED(array) &&
           PyArray_TYPE(array) == type_num;
}

/* Return the value at position i from the end of nd values, or -1 if nd < i. */
static long theano_last(npy_intp *values, int nd, int i) {
    return nd >= i ? (long)values[nd - i] : -1;
}

/* Set NotImplementedError for an array that is not aligned. The message begins with
 * `expected`, such as "expected an aligned array of type 12 (NPY_FLOAT64)". */
THEANO_RARE void theano_not_aligned(PyArrayObject *array, const char *expected) {
    int nd = PyArray_NDIM(array);
    npy_intp *dims = PyArray_DIMS(array), *strides = PyArray_STRIDES(array);
    PyErr_Format(PyExc_NotImplementedError,
                 "%s, got non-aligned array of type %ld"
                 " with %ld dimensions, with 3 last dims %ld, %ld, %ld"
                 " and 3 last strides %ld %ld, %ld.",
                 expected, (long)PyArray_TYPE(array), (long)nd,
                 theano_last(dims, nd, 3), theano_last(dims, nd, 2),
                 theano_last(dims, nd, 1), theano_last(strides, nd, 3),
                 theano_last(strides, nd, 2), theano_last(strides, nd, 1));
}

/* Set the exception for an object that theano_is_array rejects: NotImplementedError if
 * it is not aligned, TypeError for another type number, ValueError if it is no array.
 */
THEANO_RARE void theano_not_array(PyObject *object, int type_num,
                                  const char *type_name) {
    char expected[80];
    if (object == Py_None) {
        PyErr_SetString(PyExc_ValueError, "expected an ndarray, not None");
    } else if (!PyArray_Check(object)) {
        PyErr_SetString(PyExc_ValueError, "expected an ndarray");
    } else if (!PyArray_ISALIGNED((PyArrayObject *)object)) {
        PyOS_snprintf(expected, sizeof(expected),
                      "expected an aligned array of type %d (%s)", type_num, type_name);
        theano_not_aligned((PyArrayObject *)object, expected);
    } else {
        /* DebugMode raises TypeError too; its message also names the container. */
        PyErr_Format(PyExc_TypeError, "expected type_num %d (%s) got %d", type_num,
                     type_name, PyArray_TYPE((PyArrayObject *)object));
    }
}

/* Set ValueError for inputs i and j of an Elemwise: the length of input i along its
 * dimension i_dim differs from the length of input j along its dimension j_dim. */
THEANO_RARE void theano_dims_differ(int i, int i_dim, npy_intp i_size, int j, int j_dim,
                                    npy_intp j_size) {
    PyErr_Format(PyExc_ValueError,
                 "Input dimension mis-match. (input[%i].shape[%i] = %lld, "
                 "input[%i].shape[%i] = %lld)",
                 i, i_dim, (long long)i_size, j, j_dim, (long long)j_size);
}

/* Return an array with the dimensions `dims` for an output. `old` is the output's
 * previous array or NULL. Return `old` if it is C-contiguous with these dimensions (the
 * usual case) or if NumPy can resize it. Otherwise release it and return a new array,
 * or NULL with an exception set. `fortran` selects Fortran order if `old` is NULL. */
THEANO_SHARED PyArrayObject *theano_output(PyArrayObject *old, int nd, npy_intp *dims,
                                           int type_num, int fortran) {
    PyArray_Dims new_dims = {dims, nd};
    PyObject *success;
    if (!old)
        return (PyArrayObject *)PyArray_EMPTY(nd, dims, type_num, fortran);
    if (PyArray_IS_C_CONTIGUOUS(old) && PyArray_NDIM(old) == nd &&
        PyArray_CompareLists(PyArray_DIMS(old), dims, nd))
        return old;
    success = PyArray_Resize(old, &new_dims, 0, NPY_CORDER);
    if (!success) {
        /* NumPy cannot resize it, for example because something else refers to it. */
        PyErr_Clear();
        Py_DECREF(old);
        return (PyArrayObject *)PyArray_EMPTY(nd, dims, type_num, 0);
    }
    Py_DECREF(success);
    return old;
}

/* Copy the elements of `from` to `to`, or add them to the elements of `to` if `add` is
 * true, in nd nested loops. Strides are in bytes. */
template <typename T>
static void theano_few_loops(bool add, int nd, const npy_intp *dims, char *to,
                             const npy_intp *to_strides, const char *from,
                             const npy_intp *from_strides) {
    const npy_intp n = nd ? dims[0] : 1;
    const npy_intp to_stride = nd ? to_strides[0] : 0;
    const npy_intp from_stride = nd ? from_strides[0] : 0;
    for (npy_intp i = 0; i < n; i++, to += to_stride, from += from_stride) {
        if (nd > 1)
            theano_few_loops<T>(add, nd - 1, dims + 1, to, to_strides + 1, from,
                                from_strides + 1);
        else
            *(T *)to = add ? *(T *)to + *(const T *)from : *(const T *)from;
    }
}

/* Find the bounds of the memory of an array that has elements. Set *first to its first
 * byte, and *last to the byte after its last byte. */
static inline void theano_extent(int nd, const npy_intp *dims, const npy_intp *strides,
                                 const char *data, int itemsize, const char **first,
                                 const char **last) {
    *first = data;
    *last = data + itemsize;
    for (int i = 0; i < nd; i++)
        *(strides[i] < 0 ? first : last) += (dims[i] - 1) * strides[i];
}

/* Return whether theano_update_few can update a view of `array` with a value. The view
 * has nd dimensions, strides in bytes, and its first element at `data`. It must have 1
 * to 512 elements; it and the value must have the same float type, be aligned, and not
 * overlap. Write nd strides of the value to from_strides: 0 for the dimensions along
 * which the value is broadcast. */
THEANO_SHARED bool theano_can_update_few(PyArrayObject *array, int nd,
                                         const npy_intp *dims, const npy_intp *strides,
                                         char *data, PyArrayObject *value,
                                         npy_intp *from_strides) {
    const int type_num = PyArray_TYPE(array), more = nd - PyArray_NDIM(value);
    const int itemsize = PyArray_ITEMSIZE(array);
    npy_intp size = 1;
    if ((type_num != NPY_DOUBLE && type_num != NPY_FLOAT) || more < 0 ||
        PyArray_TYPE(value) != type_num || !PyArray_ISBEHAVED(array) ||
        !PyArray_ISBEHAVED_RO(value))
        return false;
    for (int i = 0; i < nd; i++) {
        npy_intp from_size = i < more ? 1 : PyArray_DIM(value, i - more);
        if ((from_size != 1 && from_size != dims[i]) ||
            (dims[i] > 1 && strides[i] == 0))
            return false;
        from_strides[i] = from_size == 1 ? 0 : PyArray_STRIDE(value, i - more);
        size *= dims[i];
        if (size == 0 || size > 512)
            return false;
    }
    const char *first, *last, *from_first, *from_last;
    theano_extent(nd, dims, strides, data, itemsize, &first, &last);
    theano_extent(nd, dims, from_strides, PyArray_BYTES(value), itemsize, &from_first,
                  &from_last);
    return last <= from_first || from_last <= first;
}

/* Set a view of an array to a value, or add the value to the view if `add` is true. For
 * few elements, NumPy's preparation takes longer than its loops. In all cases that
 * theano_can_update_few rejects, change nothing and return false: the caller then calls
 * NumPy, which also reports errors. */
THEANO_SHARED bool theano_update_few(bool add, PyArrayObject *array, int nd,
                                     const npy_intp *dims, const npy_intp *strides,
                                     char *data, PyArrayObject *value) {
    npy_intp from_strides[NPY_MAXDIMS];
    if (!theano_can_update_few(array, nd, dims, strides, data, value, from_strides))
        return false;
    (PyArray_TYPE(array) == NPY_DOUBLE
         ? theano_few_loops<double>
         : theano_few_loops<float>)(add, nd, dims, data, strides, PyArray_BYTES(value),
                                    from_strides);
    return true;
}

/* The flags that a view may have if its object is reused. NumPy also makes views with
 * other flags, such as a warning on writes; these objects are not reused. */
#define THEANO_FLAGS_OF_VIEWS                                                          \
    (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED |             \
     NPY_ARRAY_WRITEABLE)

/* Return whether an output's old value can become another view, of nd dimensions and
 * type `descr`. It must be a plain view with the same nd and type, to which only its
 * thunk and its storage refer. `references` is the number of references from the thunk
 * and the storage to the view. */
static inline bool theano_can_reuse_view(PyArrayObject *old, int references, int nd,
                                         PyArray_Descr *descr) {
    PyArrayObject_fields *fields = (PyArrayObject_fields *)old;
    return old && Py_TYPE(old) == &PyArray_Type && Py_REFCNT(old) == references &&
           fields->nd == nd && fields->descr == descr && fields->base &&
           !(fields->flags & ~THEANO_FLAGS_OF_VIEWS) && !fields->weakreflist;
}

/* Set the output *view to a view of the array `of`; return 0, or -1 with an exception
 * set. If theano_can_reuse_view allows it, change the output's old value into the new
 * view: making and freeing an object takes longer than most computations on it.
 * `references` is the number of references from the thunk and the storage to the old
 * value. */
THEANO_SHARED int theano_view(PyArrayObject **view, int references, PyArrayObject *of,
                              int nd, const npy_intp *dims, const npy_intp *strides,
                              char *data) {
    PyArray_Descr *descr = PyArray_DESCR(of);
    int writeable = PyArray_FLAGS(of) & NPY_ARRAY_WRITEABLE;
    PyArrayObject *old = *view;
    if (!theano_can_reuse_view(old, references, nd, descr) ||
        (PyArray_FLAGS(of) & ~(THEANO_FLAGS_OF_VIEWS | NPY_ARRAY_OWNDATA))) {
        Py_INCREF(descr);
        *view = (PyArrayObject *)PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims,
                                                      strides, data, writeable, NULL);
        Py_XDECREF(old);
        if (!*view)
            return -1;
        Py_INCREF(of);
        return PyArray_SetBaseObject(*view, (PyObject *)of);
    }
    PyArrayObject_fields *fields = (PyArrayObject_fields *)old;
    bool moved = fields->data != data;
    fields->data = data;
    for (int i = 0; i < nd; i++) {
        moved = moved || fields->dimensions[i] != dims[i] ||
                fields->strides[i] != strides[i];
        fields->dimensions[i] = dims[i];
        fields->strides[i] = strides[i];
    }
    fields->flags = (fields->flags & ~NPY_ARRAY_WRITEABLE) | writeable;
    if (moved)
        PyArray_UpdateFlags(old, NPY_ARRAY_UPDATE_ALL);
    /* As in PyArray_SetBaseObject, the base of a view of a view is the array that owns
     * the memory. */
    PyObject *owner = (PyObject *)of, *base = fields->base;
    while (PyArray_Check(owner) &&
           !(PyArray_FLAGS((PyArrayObject *)owner) & NPY_ARRAY_OWNDATA)) {
        PyObject *next = PyArray_BASE((PyArrayObject *)owner);
        if (!next || Py_TYPE(next) != &PyArray_Type)
            break;
        owner = next;
    }
    if (owner != base) {
        Py_INCREF(owner);
        fields->base = owner;
        Py_DECREF(base);
    }
    return 0;
}

/* Compute a DimShuffle; return 0, or -1 with an exception set. Dimension i of the
 * output is dimension order[i] of the input, or a new dimension of length 1 if order[i]
 * is -1. The output is a view of the input if `inplace` is true, otherwise a view of a
 * copy of the input. theano_view describes `references`. */
template <typename T>
static int theano_shuffle(PyArrayObject *input, PyArrayObject **res, int references,
                          bool inplace, int nd_in, int nd_out, const T *order) {
    npy_intp dimensions[NPY_MAXDIMS], strides[NPY_MAXDIMS];
    int failure;

    if (PyArray_NDIM(input) != nd_in) {
        PyErr_SetString(PyExc_NotImplementedError, "input nd");
        return -1;
    }

    if (inplace) {
        Py_INCREF(input);
    } else {
        input = (PyArrayObject *)PyArray_FromAny(
            (PyObject *)input, NULL, 0, 0, NPY_ARRAY_ALIGNED | NPY_ARRAY_ENSURECOPY,
            NULL);
        if (input == NULL)
            return -1;
    }

    /* Dimensions of length 1 get the strides of a contiguous array, as in NumPy's
     * reshape. */
    npy_intp next = PyArray_ITEMSIZE(input);
    for (int i = nd_out - 1; i >= 0; --i) {
        const int from = order[i];
        dimensions[i] = from < 0 ? 1 : PyArray_DIM(input, from);
        strides[i] = dimensions[i] == 1 ? next : PyArray_STRIDE(input, from);
        next = strides[i] * dimensions[i];
    }

    failure = theano_view(res, references, input, nd_out, dimensions, strides,
                          PyArray_BYTES(input));
    Py_DECREF(input);
    return failure;
}

/* Compute the common dimensions of n inputs of an Elemwise. Input i is broadcast along
 * dimension d if broadcast[i][d] is '1'. Return 0, or set ValueError and return -1 if
 * lengths differ or an input has fewer than nd dimensions. */
THEANO_SHARED int theano_dims(int nd, npy_intp *dims, int n, PyArrayObject **arrays,
                              const char *const *broadcast) {
    for (int i = 0; i < n; i++) {
        if (PyArray_NDIM(arrays[i]) < nd) {
            PyErr_SetString(PyExc_ValueError, "Not enough dimensions on input.");
            return -1;
        }
    }
    for (int d = 0; d < nd; d++) {
        int first = -1;
        dims[d] = 1;
        for (int i = 0; i < n; i++) {
            if (broadcast[i][d] == '1')
                continue;
            npy_intp size = PyArray_DIM(arrays[i], d);
            if (first < 0) {
                first = i;
                dims[d] = size;
            } else if (size != dims[d]) {
                theano_dims_differ(first, d, dims[d], i, d, size);
                return -1;
            }
        }
    }
    return 0;
}

/* Order the loops over n arrays with nd dimensions by the strides `like`: the outermost
 * loop has the largest stride. Dimensions with a '1' in in_order keep their order among
 * themselves. Merge two nested loops if, in all arrays, the outer stride is the inner
 * stride times the inner size. array_strides has nd strides, in bytes, for each array.
 *
 * Return the number of the innermost loop, at least 1, or 0 if there are no elements.
 * From the outermost loop on, write the size of each loop to `sizes`, and its n
 * strides, one for each array, to `strides`. Both need room for nd + 2 loops. */
THEANO_SHARED int theano_order_loops(int nd, const npy_intp *dims, int n,
                                     const npy_intp *array_strides,
                                     const npy_intp *like, const char *in_order,
                                     npy_intp *sizes, npy_intp *strides) {
    int order[nd + 1], loops = 0, last = 1;
    for (int d = 0; d < nd; d++) {
        if (dims[d] == 0)
            return 0;
        if (dims[d] == 1)
            continue;
        npy_intp stride = labs(like[d]);
        int i = loops++;
        for (; i > 0 && labs(like[order[i - 1]]) < stride &&
               (in_order[d] == '0' || in_order[order[i - 1]] == '0');
             i--)
            order[i] = order[i - 1];
        order[i] = d;
    }
    for (int i = 0; i < n; i++)
        strides[i] = strides[n + i] = 0;
    sizes[0] = sizes[1] = 1;
    for (int k = 0; k < loops; k++) {
        npy_intp size = dims[order[k]], *outer = strides + last * n;
        bool can_merge = true;
        for (int i = 0; i < n; i++) {
            outer[n + i] = array_strides[i * nd + order[k]];
            can_merge = can_merge && outer[i] == outer[n + i] * size;
        }
        if (can_merge || sizes[last] == 1) {
            sizes[last] *= size;
            memcpy(outer, outer + n, n * sizeof(npy_intp));
        } else {
            sizes[++last] = size;
        }
    }
    return last;
}

/* Run the loops over n arrays that theano_order_loops wrote. Call `run`, a function
 * like theano_loops, for the two innermost loops in each iteration of the loops around
 * them. Advance the addresses in `data`. Return 0, or -1 if `run` fails. */
template <typename Run>
THEANO_SHARED int theano_walk_loops(int last, const npy_intp *sizes,
                                    const npy_intp *strides, int n, char **data,
                                    const Run &run) {
    npy_intp index[last + 1];
    memset(index, 0, sizeof(index));
    for (;;) {
        if (run(data, sizes + last - 1, strides + (last - 1) * n))
            return -1;
        int d = last - 2;
        for (; d >= 0; d--) {
            bool more = ++index[d] < sizes[d];
            npy_intp steps = more ? 1 : 1 - sizes[d];
            for (int i = 0; i < n; i++)
                data[i] += steps * strides[d * n + i];
            if (more)
                break;
            index[d] = 0;
        }
        if (d < 0)
            return 0;
    }
}

/* An argument `walk` of theano_run_loops that runs the loops in the calling thread.
 * in_threads (thunks/threads.h) runs them in several threads. */
struct theano_serial {
    template <typename Run>
    int operator()(int last, const npy_intp *sizes, const npy_intp *strides, int n,
                   char **data, const Run &run) const {
        return theano_walk_loops(last, sizes, strides, n, data, run);
    }
};

/* Order the loops over n arrays by theano_order_loops, and run them by `walk`. Return
 * 0, or -1 if `run` fails. */
template <typename Run, typename Walk = theano_serial>
THEANO_SHARED int theano_run_loops(int nd, const npy_intp *dims, int n, char **data,
                                   const npy_intp *array_strides, const npy_intp *like,
                                   const char *in_order, const Run &run,
                                   const Walk &walk = Walk()) {
    npy_intp sizes[nd + 2], strides[(nd + 2) * n];
    int last =
        theano_order_loops(nd, dims, n, array_strides, like, in_order, sizes, strides);
    return last ? walk(last, sizes, strides, n, data, run) : 0;
}

/* Write nd strides, in bytes, for each of an Elemwise's n arrays: 0 for the dimensions
 * along which the array is broadcast. */
static inline void theano_elemwise_strides(int nd, int n, PyArrayObject *const *arrays,
                                           const char *const *broadcast,
                                           npy_intp *strides) {
    for (int i = 0; i < n; i++)
        for (int d = 0; d < nd; d++)
            strides[i * nd + d] =
                broadcast[i][d] == '1' ? 0 : PyArray_STRIDE(arrays[i], d);
}

/* Run an Elemwise's loops over n arrays, in the memory order of arrays[like]. Return 0,
 * or -1 if `run` fails. */
template <typename Run, typename Walk = theano_serial>
THEANO_SHARED int theano_elemwise(int nd, const npy_intp *dims, int n,
                                  PyArrayObject **arrays, const char *const *broadcast,
                                  int like, const Run &run, const Walk &walk = Walk()) {
    npy_intp strides[nd * n + 1];
    char *data[n], in_order[nd + 1];
    memset(in_order, '0', nd);
    for (int i = 0; i < n; i++)
        data[i] = PyArray_BYTES(arrays[i]);
    theano_elemwise_strides(nd, n, arrays, broadcast, strides);
    return theano_run_loops(nd, dims, n, data, strides, strides + like * nd, in_order,
                            run, walk);
}

/* Sort n loops by decreasing stride. A loop is a pair of its stride and its dimension.
 */
THEANO_SHARED void theano_sort_loops(std::pair<int, int> *loops, int n) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && loops[j - 1] < loops[j]; j--)
            std::swap(loops[j - 1], loops[j]);
}

#endif
