#ifndef THEANO_THUNKS_THUNK_H
#define THEANO_THUNKS_THUNK_H

/* The struct of a precompiled thunk, and the functions that make and run a thunk. */

#include <algorithm>
#include <utility>
#include "theano_mod_helper.h"
#include "theano_thunk.h"
#include "theano_tensor.h"

struct thunk;

/* Computes an op's outputs. Before the call, each output is NULL or an earlier result
 * with any dimensions. After the call, also after a failure, the caller owns the
 * outputs. Returns 0, or -1 with an exception set. */
typedef int (*computation)(const thunk *self, PyArrayObject **inputs,
                           PyArrayObject **outputs);

struct thunk {
    /* A list of three items. On failure, `run` stores the exception in it: type, value
     * and traceback. It must be the first field, because the virtual machine reads it
     * there. */
    PyObject *error;
    computation compute;
    /* The op's parameters: for `elemwise` and `reduce`, a theano_elemwise_op; for other
     * computations, an array of npy_intp. A comment "op[i]: ..." at the computation
     * describes the elements; precompiled_ops.py writes them. */
    const void *op;
    int n_inputs, n_outputs;
    /* The value that the thunk returns on failure. */
    int failure;
    /* For the inputs, then for the outputs: NumPy's type number of an array, or ~number
     * for a NumPy scalar. */
    const int *types;
    /* For the inputs, then for the outputs: the storage, a list of one object. */
    PyObject *storages[];
};

/* Return the name of a type number for error messages: "NPY_FLOAT64" for 12. */
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

/* Return whether an object is a NumPy scalar with a type number. */
static bool is_scalar(PyObject *object, int type_num) {
    PyArray_Descr *descr = PyArray_DescrFromType(type_num);
    const bool result = PyObject_TypeCheck(object, descr->typeobj);
    Py_DECREF(descr);
    return result;
}

/* Return 0 if a value has a type (struct thunk), or -1 with an exception set. */
static int check_type(PyObject *value, int type) {
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

/* Check the values in the storages, compute the outputs, and check their alignment.
 * Return 0, or -1 with an exception set. */
static int compute_outputs(const thunk *self, PyArrayObject **inputs,
                           PyArrayObject **outputs) {
    for (int i = 0; i < self->n_inputs + self->n_outputs; i++) {
        PyObject *value = *theano_item(self->storages[i]);
        const bool is_output = i >= self->n_inputs;
        if (is_output && (value == Py_None || self->types[i] < 0))
            continue;
        if (check_type(value, self->types[i]))
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

/* Run a thunk; this is the function in its capsule. On success, store the outputs and
 * return 0. Otherwise move the exception into self->error and return self->failure. */
static int run(void *context) {
    const thunk *self = (const thunk *)context;
    PyArrayObject *inputs[self->n_inputs], *outputs[self->n_outputs];
    memset(outputs, 0, sizeof(outputs));
    const int failed = compute_outputs(self, inputs, outputs);
    for (int i = 0; i < self->n_outputs; i++) {
        PyObject *released = (PyObject *)outputs[i];
        if (!failed)
            std::swap(released, *theano_item(self->storages[self->n_inputs + i]));
        Py_XDECREF(released);
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

/* Make a capsule with a copy of the thunk `like` and with `storages`. Sizes are in
 * bytes. If op_size is not 0, copy like.op too; otherwise like.op must outlive the
 * capsule. types_size has the same meaning for like.types. Return NULL and set an
 * exception on failure. */
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
