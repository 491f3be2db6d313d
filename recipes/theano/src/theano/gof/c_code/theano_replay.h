#ifndef THEANO_REPLAY_H
#define THEANO_REPLAY_H

/* Interface, in C and C++, between Theano's virtual machine (lazylinker_in_order.h) and
 * the replay of a Scan's steps (thunks/replay.h). */

#include <Python.h>

/* The name of a capsule that contains a theano_replay. */
#define THEANO_REPLAY "theano.tensor.thunks_ext.replay"

/* THEANO_FIRST: the first step, which computes all nodes. THEANO_REPEATED: a later
 * step, which skips the invariant nodes and may replay recorded operations.
 * THEANO_TIMED: a later step whose thunks are timed; it skips the invariant nodes and
 * calls the thunks of all other nodes. */
enum theano_replay_mode { THEANO_FIRST, THEANO_REPEATED, THEANO_TIMED };

typedef struct theano_replay theano_replay;
struct theano_replay {
    /* Computes the nodes of a step in order. Returns -1 on success; otherwise sets an
     * exception and returns the number of the node that failed. To call the thunk of a
     * node, it calls call(vm, node), which returns 0, or sets an exception and returns
     * another value. */
    Py_ssize_t (*run)(theano_replay *self, enum theano_replay_mode mode, void *vm,
                      int (*call)(void *vm, Py_ssize_t node));
};

#endif
