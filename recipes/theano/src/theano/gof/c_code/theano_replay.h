#ifndef THEANO_REPLAY_H
#define THEANO_REPLAY_H

/* The interface between the virtual machine (lazylinker_in_order.h) and replays
 * (thunks/replay.h), in C and C++. */

#include <Python.h>

#define THEANO_REPLAY "theano.tensor.thunks_ext.replay"

/* The first call computes all nodes; later ones skip nodes that are computed once. A
 * timed call calls the thunks of all other nodes. */
enum theano_replay_mode { THEANO_FIRST, THEANO_REPEATED, THEANO_TIMED };

typedef struct theano_replay theano_replay;
struct theano_replay {
    /* Compute all nodes in order; `call` calls the thunk of a node of the virtual
     * machine and returns 0, or another value with an exception set. Return -1, or the
     * number of the node that failed, with an exception set. */
    Py_ssize_t (*run)(theano_replay *self, enum theano_replay_mode mode, void *vm,
                      int (*call)(void *vm, Py_ssize_t node));
};

#endif
