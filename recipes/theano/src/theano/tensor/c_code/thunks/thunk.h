#ifndef THEANO_THUNKS_THUNK_H
#define THEANO_THUNKS_THUNK_H

/* The structure of precompiled thunks, and how they run. */

#include <algorithm>
#include <utility>
#include "theano_mod_helper.h"
#include "theano_thunk.h"
#include "theano_tensor.h"

struct thunk;

/* Compute outputs. Before the call, an output is NULL or an earlier result, with any
 * dimensions. The caller owns the outputs after the call, also after an error, -1. */
typedef int (*computation)(const thunk *self, PyArrayObject **inputs,
                           PyArrayObject **outputs);

struct thunk {
    /* The first field: the list in which the caller finds the exception. */
    PyObject *error;
    computation compute;
    const void *op;
    int n_inputs, n_outputs, failure;
    /* For inputs, then outputs: NumPy's type number (~number for a scalar), and the
     * storage. */
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

/* Return whether an object is a NumPy scalar of a type. */
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
        PyObject *unused = (PyObject *)outputs[i];
        if (!failed)
            std::swap(unused, *theano_item(self->storages[self->n_inputs + i]));
        Py_XDECREF(unused);
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

/* Make a capsule with a copy of a thunk. "op" and "types" are copied if their sizes, in
 * bytes, are not 0; otherwise they must outlive the capsule. */
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

#endif
