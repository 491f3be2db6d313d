#ifndef LAZYLINKER_IN_ORDER_H
#define LAZYLINKER_IN_ORDER_H

/* Part of lazylinker_c.c, which includes this file: functions that call the thunks of
 * nodes in a fixed order, without recursion. */

#include "theano_replay.h"

/**
  Call the thunk of a node whose inputs have been computed. Return 0, or set an
  exception and return another value.
  */
static int call_thunk(CLazyLinker *self, Py_ssize_t owner_idx, int verbose) {
    if (self->thunk_cptr_fn[owner_idx])
        return c_call(self, owner_idx, verbose);

    PyObject *rval = pycall(self, owner_idx, verbose);
    if (rval == NULL)
        return 1;
    if (PyList_Check(rval))
        PyErr_SetString(PyExc_TypeError, "non-lazy thunk should return None, not list");
    else if (rval != Py_None)
        PyErr_SetObject(PyExc_TypeError, rval);
    Py_DECREF(rval);
    return PyErr_Occurred() != NULL;
}

/**
  Call the thunk of a node for a replay (theano_replay.h).
  */
static int call_for_replay(void *self, Py_ssize_t owner_idx) {
    return call_thunk(self, owner_idx, 0);
}

/**
  Call the thunks of all nodes in order. Return -1, or the number of the node whose
  thunk failed.
  */
static Py_ssize_t call_thunks(CLazyLinker *self) {
    for (Py_ssize_t i = 0; i < self->n_applies; ++i) {
        if (call_thunk(self, i, 0))
            return i;
    }
    return -1;
}

/**
  Compute all nodes of a function without lazy nodes, in order. Use the function's
  replay if there is one. Return 0, or 1 with an exception set.
  */
static int call_in_order(CLazyLinker *self) {
    Py_ssize_t failed;
    if (self->replay && self->replay != Py_None) {
        theano_replay *replay = PyCapsule_GetPointer(self->replay, THEANO_REPLAY);
        if (!replay)
            return 1;
        failed = replay->run(replay,
                             !self->repeated   ? THEANO_FIRST
                             : self->do_timing ? THEANO_TIMED
                                               : THEANO_REPEATED,
                             self, call_for_replay);
    } else {
        failed = call_thunks(self);
    }
    if (failed >= 0) {
        set_position_of_error(self, failed);
        return 1;
    }
    for (Py_ssize_t i = 0; i < self->n_output_vars; ++i) {
        self->var_computed[self->output_vars[i]] = 1;
    }
    return 0;
}

#endif
