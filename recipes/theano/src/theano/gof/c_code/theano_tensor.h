#ifndef THEANO_TENSOR_H
#define THEANO_TENSOR_H

/* Functions that the generated code calls for each tensor. They are not inlined, so g++
 * compiles them once in a module and not for each variable. */

#include <Python.h>
#include <numpy/arrayobject.h>
#include <utility>
#include "theano_loops.h"

#define THEANO_RARE static __attribute__((unused, noinline, cold))
#define THEANO_SHARED static __attribute__((unused, noinline))

static inline int theano_is_array(PyObject *object, int type_num) {
    PyArrayObject *array = (PyArrayObject *)object;
    return PyArray_Check(object) && PyArray_ISALIGNED(array) &&
           PyArray_TYPE(array) == type_num;
}

static long theano_last(npy_intp *values, int nd, int i) {
    return nd >= i ? (long)values[nd - i] : -1;
}

/* Set the exception for an array that is not aligned; "expected" describes the expected
 * array. */
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

/* Set the exception for an object for which theano_is_array is false. */
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
        /* This is a TypeError to be consistent with DEBUG_MODE
         * Note: DEBUG_MODE also tells the name of the container */
        PyErr_Format(PyExc_TypeError, "expected type_num %d (%s) got %d", type_num,
                     type_name, PyArray_TYPE((PyArrayObject *)object));
    }
}

THEANO_RARE void theano_dims_differ(int i, int i_dim, npy_intp i_size, int j, int j_dim,
                                    npy_intp j_size) {
    PyErr_Format(PyExc_ValueError,
                 "Input dimension mis-match. (input[%i].shape[%i] = %lld, "
                 "input[%i].shape[%i] = %lld)",
                 i, i_dim, (long long)i_size, j, j_dim, (long long)j_size);
}

/* Return an output array with the given dimensions: the old array if it has them (the
 * usual case) or can be resized, otherwise a new array. */
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
        /* If we can't resize the ndarray we have we can allocate a new one. */
        PyErr_Clear();
        Py_DECREF(old);
        return (PyArrayObject *)PyArray_EMPTY(nd, dims, type_num, 0);
    }
    Py_DECREF(success);
    return old;
}

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

/* Find the bounds of an array's memory: the first byte and the byte after the last. */
static inline void theano_extent(int nd, const npy_intp *dims, const npy_intp *strides,
                                 const char *data, int itemsize, const char **first,
                                 const char **last) {
    *first = data;
    *last = data + itemsize;
    for (int i = 0; i < nd; i++)
        *(strides[i] < 0 ? first : last) += (dims[i] - 1) * strides[i];
}

/* Return whether theano_update_few updates a view of an array. Write the strides of the
 * value, 0 where it is broadcast. */
THEANO_SHARED bool theano_are_few(PyArrayObject *array, int nd, const npy_intp *dims,
                                  const npy_intp *strides, char *data,
                                  PyArrayObject *value, npy_intp *from_strides) {
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

/* Set a view of an array to a value, or add the value to it, if both have few elements:
 * for these, NumPy's preparation takes longer than its loops. Returns false without a
 * change in all other cases, errors included, which the caller leaves to NumPy. */
THEANO_SHARED bool theano_update_few(bool add, PyArrayObject *array, int nd,
                                     const npy_intp *dims, const npy_intp *strides,
                                     char *data, PyArrayObject *value) {
    npy_intp from_strides[NPY_MAXDIMS];
    if (!theano_are_few(array, nd, dims, strides, data, value, from_strides))
        return false;
    (PyArray_TYPE(array) == NPY_DOUBLE
         ? theano_few_loops<double>
         : theano_few_loops<float>)(add, nd, dims, data, strides, PyArray_BYTES(value),
                                    from_strides);
    return true;
}

/* The flags of views that are reused; NumPy makes views with other flags, such as a
 * warning on writes. */
#define THEANO_FLAGS_OF_VIEWS                                                          \
    (NPY_ARRAY_C_CONTIGUOUS | NPY_ARRAY_F_CONTIGUOUS | NPY_ARRAY_ALIGNED |             \
     NPY_ARRAY_WRITEABLE)

/* Return whether an output's old value can be changed into another view: it is a plain
 * view, and only its thunk and storage, with "references" references, hold it. */
static inline bool theano_own_view(PyArrayObject *old, int references, int nd,
                                   PyArray_Descr *descr) {
    PyArrayObject_fields *fields = (PyArrayObject_fields *)old;
    return old && Py_TYPE(old) == &PyArray_Type && Py_REFCNT(old) == references &&
           fields->nd == nd && fields->descr == descr && fields->base &&
           !(fields->flags & ~THEANO_FLAGS_OF_VIEWS) && !fields->weakreflist;
}

/* Set an output to a view of an array. The old value is changed into the new view if
 * possible, because making and freeing an object takes longer than most computations on
 * it. references: the number of references of the thunk and the storage to the old
 * value. */
THEANO_SHARED int theano_view(PyArrayObject **view, int references, PyArrayObject *of,
                              int nd, const npy_intp *dims, const npy_intp *strides,
                              char *data) {
    PyArray_Descr *descr = PyArray_DESCR(of);
    int writeable = PyArray_FLAGS(of) & NPY_ARRAY_WRITEABLE;
    PyArrayObject *old = *view;
    if (!theano_own_view(old, references, nd, descr) ||
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
    /* The base of a view of a view is the array that owns the memory, as with
     * PyArray_SetBaseObject. */
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

/* Set an output to an array with its dimensions in another order, where -1 inserts a
 * dimension. The output is a view of the input (inplace) or of a copy. */
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

    /* Dimensions of one element have the strides of a contiguous array, as from
     * NumPy's reshape. */
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

/* Compute the common dimensions of an Elemwise's inputs. An input is broadcast along
 * the dimensions for which its string has a '1'. Returns -1 and sets an exception if
 * lengths differ. */
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

/* Order the loops over n arrays with nd dimensions by decreasing strides `like`;
 * dimensions with a '1' in in_order keep their order among themselves. Merge nested
 * loops that walk the memory of all arrays evenly. array_strides has nd strides for
 * each array.
 *
 * Return the number of the innermost loop, at least 1, or 0 if there are no elements.
 * Write the sizes of the loops, up to nd + 2, and n strides for each. */
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
        bool one = true;
        for (int i = 0; i < n; i++) {
            outer[n + i] = array_strides[i * nd + order[k]];
            one = one && outer[i] == outer[n + i] * size;
        }
        if (one || sizes[last] == 1) {
            sizes[last] *= size;
            memcpy(outer, outer + n, n * sizeof(npy_intp));
        } else {
            sizes[++last] = size;
        }
    }
    return last;
}

/* Iterate over n arrays in the loops of theano_order_loops, and call `run`, a
 * theano_loops, for the two innermost loops. Change `data`. */
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

/* Walks loops in the calling thread. */
struct theano_serial {
    template <typename Run>
    int operator()(int last, const npy_intp *sizes, const npy_intp *strides, int n,
                   char **data, const Run &run) const {
        return theano_walk_loops(last, sizes, strides, n, data, run);
    }
};

/* Order the loops over n arrays, and iterate by `walk`. */
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

/* Write the strides of an Elemwise's arrays, nd for each: 0 where an array is
 * broadcast. */
static inline void theano_elemwise_strides(int nd, int n, PyArrayObject *const *arrays,
                                           const char *const *broadcast,
                                           npy_intp *strides) {
    for (int i = 0; i < n; i++)
        for (int d = 0; d < nd; d++)
            strides[i * nd + d] =
                broadcast[i][d] == '1' ? 0 : PyArray_STRIDE(arrays[i], d);
}

/* Run an Elemwise's loops over n arrays, in the memory order of arrays[like]. */
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

/* Sort loops, pairs of a stride and a dimension, in decreasing order. */
THEANO_SHARED void theano_sort_loops(std::pair<int, int> *loops, int n) {
    for (int i = 1; i < n; i++)
        for (int j = i; j > 0 && loops[j - 1] < loops[j]; j--)
            std::swap(loops[j - 1], loops[j]);
}

#endif
