/* Thunks in C that are compiled with the package: all of ops that move elements or
 * look at dimensions; of an Elemwise, all but its loops. */

#include <Python.h>
#include <numpy/arrayobject.h>
#include "theano_mod_helper.h"
#include "theano_tensor.h"

struct thunk;

/* Compute outputs, which are NULL, or an array that was computed before, of any
 * dimensions. What is there in the end is the caller's, also after -1, an error. */
typedef int (*computation)(const thunk *self, PyArrayObject **inputs,
                           PyArrayObject **outputs);

struct thunk {
    /* First, where who calls a thunk looks for the exception. */
    PyObject *error;
    computation compute;
    const void *op;
    int n_inputs, n_outputs, failure;
    /* Of inputs, then outputs: NumPy's number of the type, negative (~) of one that
     * is a scalar and no array; and the storage. */
    const int *types;
    PyObject *storages[];
};

static const char *type_name(int type_num) {
#define NAME(name)                                                                     \
    if (type_num == name)                                                              \
    return #name
    NAME(NPY_BOOL);
    NAME(NPY_INT8);
    NAME(NPY_INT16);
    NAME(NPY_INT32);
    NAME(NPY_INT64);
    NAME(NPY_UINT8);
    NAME(NPY_UINT16);
    NAME(NPY_UINT32);
    NAME(NPY_UINT64);
    NAME(NPY_FLOAT16);
    NAME(NPY_FLOAT32);
    NAME(NPY_FLOAT64);
    NAME(NPY_COMPLEX64);
    NAME(NPY_COMPLEX128);
#undef NAME
    return "another";
}

/* Whether an object is a NumPy scalar of a type. */
static bool is_scalar(PyObject *object, int type_num) {
    PyArray_Descr *descr = PyArray_DescrFromType(type_num);
    const bool result = PyObject_TypeCheck(object, descr->typeobj);
    Py_DECREF(descr);
    return result;
}

static int check(PyObject *value, int type) {
    if (type < 0) {
        if (is_scalar(value, ~type))
            return 0;
        PyErr_Format(PyExc_ValueError, "Scalar check failed (%s)", type_name(~type));
        return -1;
    }
    if (theano_is_array(value, type))
        return 0;
    theano_not_array(value, type, type_name(type));
    return -1;
}

static int call(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    for (int i = 0; i < self->n_inputs + self->n_outputs; i++) {
        PyObject *value = *theano_item(self->storages[i]);
        const bool is_output = i >= self->n_inputs;
        if (is_output && (value == Py_None || self->types[i] < 0))
            continue;
        if (check(value, self->types[i]))
            return -1;
        if (is_output)
            outputs[i - self->n_inputs] = (PyArrayObject *)Py_NewRef(value);
        else
            inputs[i] = (PyArrayObject *)value;
    }
    if (self->compute(self, inputs, outputs))
        return -1;
    for (int i = 0; i < self->n_outputs; i++) {
        if (self->types[self->n_inputs + i] >= 0 && !PyArray_ISALIGNED(outputs[i])) {
            theano_not_aligned(outputs[i], "c_sync: expected an aligned array");
            return -1;
        }
    }
    return 0;
}

static int run(void *context) {
    const thunk *self = (const thunk *)context;
    PyArrayObject *inputs[self->n_inputs], *outputs[self->n_outputs];
    memset(outputs, 0, sizeof(outputs));
    const int failed = call(self, inputs, outputs);
    for (int i = 0; i < self->n_outputs; i++) {
        PyObject *rest = (PyObject *)outputs[i];
        if (!failed)
            std::swap(rest, *theano_item(self->storages[self->n_inputs + i]));
        Py_XDECREF(rest);
    }
    if (!failed)
        return 0;
    theano_no_exception();
    theano_keep_exception(self->error);
    return self->failure;
}

static void destroy(PyObject *capsule) {
    thunk *self = (thunk *)PyCapsule_GetContext(capsule);
    for (int i = 0; i < self->n_inputs + self->n_outputs; i++)
        Py_DECREF(self->storages[i]);
    Py_DECREF(self->error);
    PyMem_Free(self);
}

/* Make a capsule of a thunk that is like another one, of which "op" and "types" are
 * copied where their size is told. */
static PyObject *new_thunk(const thunk &like, PyObject *const *storages, size_t op_size,
                           size_t types_size) {
    const int n = like.n_inputs + like.n_outputs;
    const size_t size = sizeof(thunk) + n * sizeof(PyObject *);
    char *memory = (char *)PyMem_Malloc(size + op_size + types_size);
    PyObject *capsule = PyCapsule_New((void *)run, NULL, NULL);
    if (!capsule || !memory) {
        Py_XDECREF(capsule);
        PyMem_Free(memory);
        return PyErr_NoMemory();
    }
    thunk *self = (thunk *)memory;
    *self = like;
    Py_INCREF(self->error);
    for (int i = 0; i < n; i++)
        self->storages[i] = Py_NewRef(storages[i]);
    if (op_size)
        self->op = memcpy(memory + size, like.op, op_size);
    if (types_size)
        self->types = (int *)memcpy(memory + size + op_size, like.types, types_size);
    PyCapsule_SetContext(capsule, self);
    PyCapsule_SetDestructor(capsule, destroy);
    return capsule;
}

/* ---- Elemwise ---- */

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

/* ---- CAReduce ---- */

/* So many elements next to each other are accumulated faster than one after another. */
enum { ACROSS = 8 };

/* Accumulate the elements of an input, those of each element of `to` one after the
 * other in C order. */
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

struct elemwise_module {
    PyModuleDef definition;
    const theano_elemwise_op *op;
};

static PyObject *instantiate(PyObject *module, PyObject *arguments) {
    const theano_elemwise_op *op = ((elemwise_module *)PyModule_GetDef(module))->op;
    const int n = op->n_inputs + op->n_outputs;
    if (PyTuple_GET_SIZE(arguments) != 1 + op->n_storages)
        return PyErr_Format(PyExc_TypeError,
                            "Wrong number of arguments, expected %i, got %i",
                            1 + op->n_storages, (int)PyTuple_GET_SIZE(arguments));
    PyObject *storages[n];
    for (int i = 0; i < n; i++)
        storages[i] = PyTuple_GET_ITEM(arguments, 1 + op->storages[i]);
    return new_thunk({PyTuple_GET_ITEM(arguments, 0), op->reduced ? reduce : elemwise,
                      op, op->n_inputs, op->n_outputs, op->failure, op->types},
                     storages, 0, 0);
}

static PyMethodDef elemwise_methods[] = {
    {"instantiate", instantiate, METH_VARARGS,
     "Return the C thunk of an op, of an error's list and storages."},
    {NULL, NULL, 0, NULL},
};

/* The module of an op. What describes it stays, as the code of its loops does. */
static PyObject *make_module(const char *name, const theano_elemwise_op *op) {
    elemwise_module *made = (elemwise_module *)PyMem_Calloc(1, sizeof(elemwise_module));
    if (!made)
        return PyErr_NoMemory();
    made->definition.m_base = PyModuleDef_HEAD_INIT;
    made->definition.m_name = name;
    made->definition.m_size = -1;
    made->definition.m_methods = elemwise_methods;
    made->op = op;
    return PyModule_Create(&made->definition);
}

/* ---- Ready ops ---- */

/* Who refers to the old value of an output: the storage and outputs[i]. */
enum { IN_STORAGE = 2 };

/* The value of an integer of any type. */
static npy_intp integer_at(const void *data, int type_num) {
    switch (type_num) {
    case NPY_BOOL:
    case NPY_UINT8: return *(const npy_uint8 *)data;
    case NPY_INT8: return *(const npy_int8 *)data;
    case NPY_INT16: return *(const npy_int16 *)data;
    case NPY_UINT16: return *(const npy_uint16 *)data;
    case NPY_INT32: return *(const npy_int32 *)data;
    case NPY_UINT32: return *(const npy_uint32 *)data;
    default: return *(const npy_int64 *)data;
    }
}

static npy_intp integer(const thunk *self, PyArrayObject **inputs, int i) {
    if (self->types[i] >= 0)
        return integer_at(PyArray_DATA(inputs[i]), self->types[i]);
    npy_int64 value;
    PyArray_ScalarAsCtype((PyObject *)inputs[i], &value);
    return integer_at(&value, ~self->types[i]);
}

/* Make an output an array, of which the reference is taken, or NULL: an error. */
static int put(PyArrayObject **output, PyObject *array) {
    Py_XSETREF(*output, (PyArrayObject *)array);
    return array ? 0 : -1;
}

static bool has_dims(PyArrayObject *array, int nd, const npy_intp *dims) {
    return array && PyArray_NDIM(array) == nd &&
           PyArray_CompareLists(PyArray_DIMS(array), dims, nd);
}

static int put_empty(PyArrayObject **output, int nd, npy_intp *dims, int type_num,
                     int in_fortran_order) {
    if (has_dims(*output, nd, dims))
        return 0;
    return put(output, PyArray_EMPTY(nd, dims, type_num, in_fortran_order));
}

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

static int alloc_empty(const thunk *self, PyArrayObject **inputs,
                       PyArrayObject **outputs) {
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < self->n_inputs; i++)
        dims[i] = integer(self, inputs, i);
    return put_empty(outputs, self->n_inputs, dims, self->types[self->n_inputs], 0);
}

static int alloc(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const int nd = self->n_inputs - 1;
    npy_intp dims[NPY_MAXDIMS];
    for (int i = 0; i < nd; i++)
        dims[i] = integer(self, inputs, 1 + i);
    if (put_empty(outputs, nd, dims, self->types[0], 0))
        return -1;
    if (theano_update_few(false, outputs[0], nd, dims, PyArray_STRIDES(outputs[0]),
                          PyArray_BYTES(outputs[0]), inputs[0]))
        return 0;
    return PyArray_CopyInto(outputs[0], inputs[0]);
}

/* op: the text of the error. */
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

static int as_axis(npy_intp axis, int nd, const char *op, int *result) {
    if (axis < -nd || axis >= nd) {
        PyErr_Format(PyExc_IndexError, "%s: invalid axis %zd for a %d-D array.", op,
                     axis, nd);
        return -1;
    }
    *result = axis < 0 ? axis + nd : axis;
    return 0;
}

/* op: the number of the array that is the result if the others are empty, or -1. */
static int join(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    const npy_intp view = *(const npy_intp *)self->op;
    const int n = self->n_inputs - 1;
    PyArrayObject **arrays = inputs + 1;
    int axis;
    if (as_axis(integer(self, inputs, 0), PyArray_NDIM(arrays[0]), "Join", &axis))
        return -1;
    npy_intp others = 0;
    for (int i = 0; i < n && view >= 0; i++)
        if (i != view && axis < PyArray_NDIM(arrays[i]))
            others += PyArray_DIM(arrays[i], axis);
    if (view >= 0 && others == 0)
        return put(outputs, Py_NewRef((PyObject *)arrays[view]));
    PyObject *all = PyTuple_New(n);
    if (!all)
        return -1;
    for (int i = 0; i < n; i++)
        PyTuple_SET_ITEM(all, i, Py_NewRef((PyObject *)arrays[i]));
    int failed = put(outputs, PyArray_Concatenate(all, axis));
    Py_DECREF(all);
    return failed;
}

static int split(const thunk *self, PyArrayObject **inputs, PyArrayObject **outputs) {
    PyArrayObject *from = inputs[0], *sizes = inputs[2];
    const int n = self->n_outputs, nd = PyArray_NDIM(from);
    npy_intp size[n], sum = 0, dims[NPY_MAXDIMS];
    char *data = PyArray_BYTES(from);
    int axis;
    if (PyArray_DIM(sizes, 0) != n) {
        PyErr_Format(PyExc_ValueError,
                     "Split: splits count (%zd) != expected count (%d).",
                     PyArray_DIM(sizes, 0), n);
        return -1;
    }
    if (as_axis(integer(self, inputs, 1), nd, "Split", &axis))
        return -1;
    for (int i = 0; i < n; i++) {
        size[i] = integer_at(PyArray_GETPTR1(sizes, i), self->types[2]);
        if (size[i] < 0) {
            PyErr_Format(PyExc_ValueError,
                         "Split: you try to take a negative number (%zd) of "
                         "elements.",
                         size[i]);
            return -1;
        }
        sum += size[i];
    }
    if (sum != PyArray_DIM(from, axis)) {
        PyErr_Format(PyExc_ValueError, "Split: the splits sums to %zd, expected %zd.",
                     sum, PyArray_DIM(from, axis));
        return -1;
    }
    memcpy(dims, PyArray_DIMS(from), nd * sizeof(npy_intp));
    for (int i = 0; i < n; i++) {
        dims[axis] = size[i];
        PyArray_Descr *descr = PyArray_DESCR(from);
        Py_INCREF(descr);
        PyObject *part =
            PyArray_NewFromDescr(&PyArray_Type, descr, nd, dims, PyArray_STRIDES(from),
                                 data, PyArray_FLAGS(from), NULL);
        int failed = !part ||
                     put_empty(outputs + i, nd, dims, self->types[0],
                               PyArray_IS_F_CONTIGUOUS(from)) ||
                     PyArray_CopyInto(outputs[i], (PyArrayObject *)part);
        Py_XDECREF(part);
        if (failed)
            return -1;
        data += PyArray_STRIDE(from, axis) * size[i];
    }
    return 0;
}

static int make_vector(const thunk *self, PyArrayObject **inputs,
                       PyArrayObject **outputs) {
    npy_intp n = self->n_inputs;
    if (put_empty(outputs, 1, &n, self->types[n], 0))
        return -1;
    for (int i = 0; i < n; i++)
        memcpy(PyArray_GETPTR1(outputs[0], i), PyArray_DATA(inputs[i]),
               PyArray_ITEMSIZE(outputs[0]));
    return 0;
}

/* op: the number of dimensions. */
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
    for (int i = 0; i < nd; i++)
        values[i] = integer_at(PyArray_GETPTR1(inputs[1], i), self->types[1]);
    return put(outputs, PyArray_Newshape(inputs[0], &dims, NPY_CORDER));
}

/* op: whether in place, the numbers of dimensions, the order. */
static int dimshuffle(const thunk *self, PyArrayObject **inputs,
                      PyArrayObject **outputs) {
    const npy_intp *op = (const npy_intp *)self->op;
    return theano_shuffle(inputs[0], outputs, IN_STORAGE, op[0], op[1], op[2], op + 3);
}

/* op: how many, and which dimensions have one element. */
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

/* op: the dimension. */
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

static int deep_copy(const thunk *, PyArrayObject **inputs, PyArrayObject **outputs) {
    PyArrayObject *from = inputs[0];
    if (has_dims(outputs[0], PyArray_NDIM(from), PyArray_DIMS(from)))
        return PyArray_CopyInto(outputs[0], from);
    return put(outputs, PyArray_NewCopy(from, NPY_ANYORDER));
}

static int scalar_from_tensor(const thunk *, PyArrayObject **inputs,
                              PyArrayObject **outputs) {
    return put(outputs,
               PyArray_Scalar(PyArray_DATA(inputs[0]), PyArray_DESCR(inputs[0]), NULL));
}

static const struct {
    const char *name;
    computation compute;
} ready_ops[] = {
    {"Alloc", alloc},
    {"AllocEmpty", alloc_empty},
    {"Assert", assertion},
    {"DeepCopyOp", deep_copy},
    {"DimShuffle", dimshuffle},
    {"IncSubtensor", inc_subtensor},
    {"Join", join},
    {"MakeVector", make_vector},
    {"Rebroadcast", rebroadcast},
    {"Reshape", reshape},
    {"ScalarFromTensor", scalar_from_tensor},
    {"Shape_i", shape_i},
    {"SpecifyShape", specify_shape},
    {"Split", split},
    {"Subtensor", subtensor},
};

/* make_thunk(name, op, types, failure, error, inputs, outputs): the thunk of a ready
 * op. "op" and "types" are buffers of npy_intp and int, which it keeps a copy of. */
static PyObject *make_thunk(PyObject *, PyObject *arguments) {
    const char *name;
    PyObject *error, *inputs, *outputs, *capsule = NULL;
    Py_buffer op, types;
    int failure;
    computation compute = NULL;
    if (!PyArg_ParseTuple(arguments, "sy*y*iO!O!O!", &name, &op, &types, &failure,
                          &PyList_Type, &error, &PyTuple_Type, &inputs, &PyTuple_Type,
                          &outputs))
        return NULL;
    for (const auto &each : ready_ops)
        if (!strcmp(each.name, name))
            compute = each.compute;
    PyObject *storages = PySequence_Concat(inputs, outputs);
    if (!compute)
        PyErr_Format(PyExc_ValueError, "no op is ready that is called %s", name);
    else if (storages)
        capsule =
            new_thunk({error, compute, op.buf, (int)PyTuple_GET_SIZE(inputs),
                       (int)PyTuple_GET_SIZE(outputs), failure, (const int *)types.buf},
                      ((PyTupleObject *)storages)->ob_item, op.len, types.len);
    Py_XDECREF(storages);
    PyBuffer_Release(&op);
    PyBuffer_Release(&types);
    return capsule;
}

static PyMethodDef methods[] = {
    {"make_thunk", make_thunk, METH_VARARGS, "Return the C thunk of a ready op."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "thunks_ext", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_thunks_ext(void) {
    import_array();
    PyObject *module = PyModule_Create(&definition);
    PyObject *capsule = PyCapsule_New((void *)make_module,
                                      "theano.tensor.thunks_ext.make_module", NULL);
    if (!module || !capsule ||
        PyModule_AddObjectRef(module, "make_module", capsule) < 0)
        Py_CLEAR(module);
    Py_XDECREF(capsule);
    return module;
}
