#ifndef THEANO_THUNKS_MODULES_H
#define THEANO_THUNKS_MODULES_H

/* Python modules for ops that are compiled as loops only. */

#include "elemwise.h"
#include "reduce.h"

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
     "Return the C thunk of an op for a list for the error and the storages."},
    {NULL, NULL, 0, NULL},
};

/* Make the module of an op. The description must live as long as the process. */
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

/* module_of(name, op): return the module of an op from the address of its
 * description. */
static PyObject *module_of(PyObject *, PyObject *arguments) {
    const char *name;
    unsigned long long op;
    if (!PyArg_ParseTuple(arguments, "sK", &name, &op))
        return NULL;
    return make_module(name, (const theano_elemwise_op *)op);
}

#endif
