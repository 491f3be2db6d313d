/* Thunks in C that are compiled with the package: all of ops that move elements or
 * look at dimensions; of an Elemwise, all but its loops. */

#include <Python.h>
#include <numpy/arrayobject.h>
#include "thunks/arrays.h"
#include "thunks/modules.h"
#include "thunks/shapes.h"
#include "thunks/subtensor.h"

static const struct {
    const char *name;
    computation compute;
} ready_ops[] = {
    {"AdvancedIncSubtensor1", advanced_inc_subtensor1},
    {"AdvancedSubtensor1", advanced_subtensor1},
    {"Alloc", alloc},
    {"AllocEmpty", alloc_empty},
    {"Assert", assertion},
    {"DeepCopyOp", deep_copy},
    {"DimShuffle", dimshuffle},
    {"IncSubtensor", inc_subtensor},
    {"Join", join},
    {"JoinAs", join_as},
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
    {"module_of", module_of, METH_VARARGS, "Return the module of an op at an address."},
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
