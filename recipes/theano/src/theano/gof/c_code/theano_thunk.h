#ifndef THEANO_THUNK_H
#define THEANO_THUNK_H

/* Functions that the generated code of every thunk calls, in C and C++. */

#include <Python.h>

/* Set a RuntimeError if an op's code failed but set no exception. */
__attribute__((unused, noinline, cold)) static void theano_no_exception(void) {
    if (!PyErr_Occurred()) {
        PyErr_SetString(PyExc_RuntimeError, "Unexpected error in an Op's C code. "
                                            "No Python exception was set.");
    }
}

/* Move the current exception into `error`, the list of its type, value and traceback.
 * The thunk's caller reads this list and raises the exception. */
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

/* Py_XDECREF as a function that is not inlined. If it were inlined, each of a module's
 * many calls would contain the code that frees an object, and g++ would take longer. */
__attribute__((unused, noinline)) static void theano_xdecref(PyObject *object) {
    Py_XDECREF(object);
}
#undef Py_XDECREF
#define Py_XDECREF(object) theano_xdecref((PyObject *)(object))

/* Return the address of a storage's item. A storage is a list of one item that is never
 * resized, so the address stays valid. Thunks keep the address, because the list itself
 * is seldom in a CPU cache when a function is called. */
static inline PyObject **theano_item(PyObject *storage) {
    return ((PyListObject *)storage)->ob_item;
}

#endif
