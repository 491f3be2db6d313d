/* Extension module with the thunks that are compiled with the package: complete thunks
 * of poolings, of products of vectors, and of ops that only move elements or read
 * dimensions, and the thunks of Elemwise and CAReduce without their loops. */

#include <Python.h>
#include <numpy/arrayobject.h>
#include "thunks/arrays.h"
#include "thunks/correlations.h"
#include "thunks/modules.h"
#include "thunks/pooling.h"
#include "thunks/replay.h"
#include "thunks/shapes.h"
#include "thunks/subtensor.h"
#include "thunks/vectors.h"

/* The class names of the ops with complete thunks. precompiled_ops.py encodes their
 * parameters. */
static const struct {
    const char *name;
    computation compute;
} precompiled_ops[] = {
    {"AdvancedIncSubtensor1", advanced_inc_subtensor1},
    {"AdvancedSubtensor1", advanced_subtensor1},
    {"Alloc", alloc},
    {"AllocEmpty", alloc_empty},
    {"Assert", assertion},
    {"AveragePoolGrad", average_pool_gradient},
    {"CGemv", compute_gemv},
    {"CGer", compute_ger},
    {"CorrMM", compute_correlation},
    {"CorrMM_gradInputs", compute_correlation},
    {"CorrMM_gradWeights", compute_correlation},
    {"DeepCopyOp", deep_copy},
    {"DimShuffle", dimshuffle},
    {"IncSubtensor", inc_subtensor},
    {"Join", join},
    {"JoinAs", join_as},
    {"MakeVector", make_vector},
    {"MaxPoolGrad", max_pool_gradient},
    {"Pool", pool},
    {"Rebroadcast", rebroadcast},
    {"Reshape", reshape},
    {"ScalarFromTensor", scalar_from_tensor},
    {"Shape_i", shape_i},
    {"SpecifyShape", specify_shape},
    {"Split", split},
    {"Subtensor", subtensor},
};

/* make_thunk(name, op, types, failure, error, inputs, outputs): return the thunk of a
 * precompiled op, a capsule. `name` is the name of the op's class; `op`, a buffer of
 * npy_intp, has its parameters. `types`, a buffer of int, and `failure` are fields of
 * struct thunk. `error` is the list for the exception; `inputs` and `outputs` are
 * tuples of storages. Both buffers are copied. */
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
    for (const auto &precompiled : precompiled_ops)
        if (!strcmp(precompiled.name, name))
            compute = precompiled.compute;
    PyObject *storages = PySequence_Concat(inputs, outputs);
    if (!compute)
        PyErr_Format(PyExc_ValueError, "there is no precompiled op %s", name);
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
    {"make_thunk", make_thunk, METH_VARARGS, "Return the C thunk of a precompiled op."},
    {"make_replay", make_replay, METH_VARARGS,
     "Return a replay for the inner function of a Scan."},
    {"forget", forget, METH_O,
     "Discard the recording of a replay; return the number of replayed steps, and the "
     "number of thunks that these steps called."},
    {"set_threads", set_threads, METH_O,
     "Set the largest number of threads that run the loops of an op."},
    {"enable_products", enable_products, METH_O,
     "Let kernels or the BLAS compute small matrix products; return whether kernels "
     "compute them."},
    {"set_loops", set_loops, METH_VARARGS,
     "Let an op with a chain use the compiled loops of a module."},
    {"module_of", module_of, METH_VARARGS,
     "Return the module of the op whose description is at an address."},
    {NULL, NULL, 0, NULL},
};

static PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "thunks_ext", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_thunks_ext(void) {
    import_array();
    pthread_atfork(NULL, NULL, helper_threads::forget);
    PyObject *module = PyModule_Create(&definition);
    PyObject *capsule = PyCapsule_New((void *)make_module,
                                      "theano.tensor.thunks_ext.make_module", NULL);
    if (!module || !capsule ||
        PyModule_AddObjectRef(module, "make_module", capsule) < 0 ||
        PyModule_AddIntConstant(module, "op_size", sizeof(theano_elemwise_op)) < 0)
        Py_CLEAR(module);
    Py_XDECREF(capsule);
    return module;
}
