#include <Python.h>

static PyObject *run_cthunk(PyObject *Py_UNUSED(self), PyObject *thunk) {
    int (*function)(void *) = (int (*)(void *))PyCapsule_GetPointer(thunk, NULL);
    if (!function)
        return NULL;
    return PyLong_FromLong(function(PyCapsule_GetContext(thunk)));
}

static PyMethodDef methods[] = {
    {"run_cthunk", run_cthunk, METH_O, "Run a theano cthunk."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "cutils_ext", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_cutils_ext(void) {
    return PyModule_Create(&module);
}
