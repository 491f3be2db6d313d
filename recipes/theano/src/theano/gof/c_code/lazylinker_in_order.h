#ifndef LAZYLINKER_IN_ORDER_H
#define LAZYLINKER_IN_ORDER_H

/* The part of lazylinker_c.c, which includes it, that calls thunks without recursion.
 */

/**
  Call a thunk whose inputs have been computed.
  */
static int call_thunk(CLazyLinker *self, Py_ssize_t owner_idx, int verbose) {
    if (self->thunk_cptr_fn[owner_idx])
        return c_call(self, owner_idx, verbose);

    PyObject *rval = pycall(self, owner_idx, verbose);
    // rval is new ref
    if (rval == NULL) // pycall returned NULL (internal error)
        return 1;
    if (PyList_Check(rval))
        PyErr_SetString(PyExc_TypeError, "non-lazy thunk should return None, not list");
    else if (rval != Py_None) // don't know what it returned, but it wasn't right.
        PyErr_SetObject(PyExc_TypeError, rval);
    Py_DECREF(rval);
    return PyErr_Occurred() != NULL;
}

/**
  Call all thunks in the order of the list; none is lazy.
  */
static int call_in_order(CLazyLinker *self) {
    const char *skip = NULL;
    if (self->repeated && self->invariant && self->invariant != Py_None) {
        if (!PyBytes_Check(self->invariant) ||
            PyBytes_GET_SIZE(self->invariant) != self->n_applies) {
            PyErr_SetString(PyExc_TypeError,
                            "invariant must be bytes, one for each thunk");
            return 1;
        }
        skip = PyBytes_AS_STRING(self->invariant);
    }
    for (Py_ssize_t i = 0; i < self->n_applies; ++i) {
        if (skip && skip[i])
            continue;
        if (call_thunk(self, i, 0)) {
            set_position_of_error(self, i);
            return 1;
        }
    }
    for (Py_ssize_t i = 0; i < self->n_output_vars; ++i) {
        self->var_computed[self->output_vars[i]] = 1;
    }
    return 0;
}

#endif
