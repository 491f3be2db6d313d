#ifndef THEANO_THUNK_H
#define THEANO_THUNK_H

/* Functions that the generated code of every thunk calls, in C and C++. */

#include <Python.h>

/* Set an exception if code failed without setting one. */
__attribute__((unused, noinline, cold)) static void theano_no_exception(void) {
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_RuntimeError, "Unexpected error in an Op's C code. "
                                            "No Python exception was set.");
    }
}

/* Move the exception into the list in which the thunk's caller looks for it. */
__attribute__((unused, noinline, cold)) static void
theano_keep_exception(PyObject *error) {
    PyObject *exception[3];
    PyErr_Fetch(&exception[0], &exception[1], &exception[2]);
    for (int i = 0; i < 3; i++) {
        PyObject *item = exception[i] ? exception[i] : Py_None;
        if (!exception[i])
            Py_INCREF(item);
        PyList_SetItem(error, i, item);
    }
}

/* Not inlined, because each inlined call contains the code that frees an object. */
__attribute__((unused, noinline)) static void theano_xdecref(PyObject *object) {
    Py_XDECREF(object);
}
#undef Py_XDECREF
#define Py_XDECREF(object) theano_xdecref((PyObject *)(object))

/* Return the address of the item of a storage, a list that is never resized. Thunks
 * store it, because the list itself is seldom in a cache during a call. */
static inline PyObject **theano_item(PyObject *storage) {
    return ((PyListObject *)storage)->ob_item;
}

#endif
