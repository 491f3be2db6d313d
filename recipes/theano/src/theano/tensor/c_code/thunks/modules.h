#ifndef THEANO_THUNKS_MODULES_H
#define THEANO_THUNKS_MODULES_H

/* Make the Python modules of ops that need only loops (theano_loops.h). */

#include "elemwise.h"
#include "reduce.h"

/* The definition of an op's Python module, and the op. `instantiate` converts the
 * definition's address to the address of this struct. */
struct elemwise_module {
    PyModuleDef definition;
    const theano_elemwise_op *op;
};

/* instantiate(error, *storages): return the thunk of the module's op, a capsule.
 * `error` is the list for the exception. */
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
     "Return the C thunk of an op. The arguments are the list for the exception, and "
     "the storages."},
    {NULL, NULL, 0, NULL},
};

/* Make the module of an op. `name` and `op` must exist until the process ends. Return
 * NULL and set an exception on failure. */
static PyObject *make_module(const char *name, const theano_elemwise_op *op) {
    elemwise_module *module =
        (elemwise_module *)PyMem_Calloc(1, sizeof(elemwise_module));
    if (!module)
        return PyErr_NoMemory();
    module->definition.m_base = PyModuleDef_HEAD_INIT;
    module->definition.m_name = name;
    module->definition.m_size = -1;
    module->definition.m_methods = elemwise_methods;
    module->op = op;
    return PyModule_Create(&module->definition);
}

/* module_of(name, op): return the module of the op whose theano_elemwise_op is at the
 * address `op`. */
static PyObject *module_of(PyObject *, PyObject *arguments) {
    const char *name;
    unsigned long long op;
    if (!PyArg_ParseTuple(arguments, "sK", &name, &op))
        return NULL;
    return make_module(name, (const theano_elemwise_op *)op);
}

/* set_loops(op, module): let the op with a chain at the address `op` use the compiled
 * loops of a module. */
static PyObject *set_loops(PyObject *, PyObject *arguments) {
    PyObject *module;
    unsigned long long op;
    if (!PyArg_ParseTuple(arguments, "KO!", &op, &PyModule_Type, &module))
        return NULL;
    const theano_elemwise_op *compiled =
        ((elemwise_module *)PyModule_GetDef(module))->op;
    __atomic_store_n(&((theano_elemwise_op *)op)->loops, compiled->loops,
                     __ATOMIC_RELEASE);
    Py_RETURN_NONE;
}

#endif
