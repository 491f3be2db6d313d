#ifndef THEANO_THUNKS_THREADS_H
#define THEANO_THUNKS_THREADS_H

/* Threads that share the loops of a large Elemwise or reduction.
 *
 * The calling thread divides the loops into parts, and runs the first one. If the
 * others would take long, it wakes helper threads, and each thread runs the next part
 * until none is left. If other processes use the CPUs of the helpers, the calling
 * thread runs the parts itself. */

#include <algorithm>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include "theano_tensor.h"

/* Loops in parts, which can run in any order and at the same time. */
struct divided_loops {
    void (*run)(const divided_loops *self, npy_intp part, npy_intp end);
    npy_intp n_parts;
    npy_intp next = 0;

    divided_loops(void (*run)(const divided_loops *, npy_intp, npy_intp),
                  npy_intp n_parts)
        : run(run), n_parts(n_parts) {}

    void run_parts() {
        npy_intp part;
        while ((part = __atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)) < n_parts)
            run(this, part, part + 1);
    }
};

static class helper_threads {
    /* SPINS: at 40 to 140 cycles each, about 50 us. STACK: the size of a helper's stack
     * in bytes; any_strides uses 64 kB. */
    enum { SPINS = 1000, STACK = 1 << 19 };

    pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t added = PTHREAD_COND_INITIALIZER,
                   finished = PTHREAD_COND_INITIALIZER;
    int n_started = 0, n_wanted = 0, n_running = 0;
    divided_loops *loops = NULL;

    void help() {
        pthread_mutex_lock(&mutex);
        for (;;) {
            while (!n_wanted)
                pthread_cond_wait(&added, &mutex);
            n_wanted--;
            __atomic_add_fetch(&n_running, 1, __ATOMIC_RELAXED);
            divided_loops *const shared = loops;
            pthread_mutex_unlock(&mutex);
            shared->run_parts();
            pthread_mutex_lock(&mutex);
            if (!__atomic_sub_fetch(&n_running, 1, __ATOMIC_RELAXED))
                pthread_cond_signal(&finished);
        }
    }

    static void *start(void *self) {
        ((helper_threads *)self)->help();
        return NULL;
    }

    /* Start helpers until there are n. They handle no signals: Python's handlers run in
     * the thread that the user's program expects. If the system refuses a thread, start
     * no more. */
    void start_until(int n) {
        sigset_t all, before;
        pthread_attr_t attributes;
        pthread_t thread;
        sigfillset(&all);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (n_started < n && !pthread_create(&thread, &attributes, start, this))
            n_started++;
        if (n_started < n)
            max_helpers = n_started;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }

  public:
    int max_helpers = 0;

    /* Run the parts from number `next` on, with n helpers. */
    void run(divided_loops *shared, int n) {
        pthread_mutex_lock(&mutex);
        if (!loops) {
            start_until(n);
            loops = shared;
            n_wanted = std::min(n_started, n);
            for (int i = 0; i < n_wanted; i++)
                pthread_cond_signal(&added);
        }
        pthread_mutex_unlock(&mutex);
        shared->run_parts();
        /* The helpers run their last parts. To sleep takes longer than most parts. */
        for (int i = 0; i < SPINS && __atomic_load_n(&n_running, __ATOMIC_RELAXED); i++)
            __builtin_ia32_pause();
        pthread_mutex_lock(&mutex);
        if (loops == shared) {
            n_wanted = 0;
            while (n_running)
                pthread_cond_wait(&finished, &mutex);
            loops = NULL;
        }
        pthread_mutex_unlock(&mutex);
    }

    /* Forget the helpers: a forked process does not have them. */
    static void forget();
} helpers;

void helper_threads::forget() {
    const int max_helpers = helpers.max_helpers;
    helpers = helper_threads();
    helpers.max_helpers = max_helpers;
}

/* The loops of theano_walk_loops in parts: dimension d is divided. */
template <typename Run> struct divided_walk : divided_loops {
    int last, n, d;
    const npy_intp *sizes, *strides;
    char *const *data;
    const Run &walk;
    /* All parts but the last one have a multiple of `unit` iterations. */
    npy_intp n_units, unit;

    divided_walk(npy_intp n_parts, const Run &walk)
        : divided_loops(run_parts, n_parts), walk(walk) {}

    npy_intp start(npy_intp part) const {
        return std::min(sizes[d], part * n_units / n_parts * unit);
    }

    static void run_parts(const divided_loops *base, npy_intp part, npy_intp end) {
        const divided_walk &self = *(const divided_walk *)base;
        const npy_intp from = self.start(part);
        npy_intp sizes[self.last + 1];
        char *at[self.n];
        memcpy(sizes, self.sizes, sizeof(sizes));
        sizes[self.d] = self.start(end) - from;
        for (int i = 0; i < self.n; i++)
            at[i] = self.data[i] + from * self.strides[self.d * self.n + i];
        theano_walk_loops(self.last, sizes, self.strides, self.n, at, self.walk);
    }
};

static npy_int64 read_nanoseconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

/* Return whether loops have so many elements that threads may compute them faster. */
static bool are_large(int last, const npy_intp *sizes) {
    enum { FEW_ELEMENTS = 1 << 13 };
    npy_intp n_elements = 1;
    for (int d = 0; d <= last; d++)
        n_elements *= sizes[d];
    return helpers.max_helpers && n_elements >= FEW_ELEMENTS;
}

/* Walks loops in threads, which compute different elements of array number `output`.
 * `run` must not fail or use Python. If vectors of elements are computed by other
 * functions than the remaining elements, the results must not depend on the number of
 * threads: the innermost iterations of parts are multiples of Run::AT_ONCE. If there
 * are fewer than Run::FEW, this also applies to the next loop. */
struct in_threads {
    int output;

    /* HELPER_NANOSECONDS: a helper is woken for at least this remaining time. To wake
     * one takes the calling thread 5 to 10 us on a virtual machine. */
    enum { PARTS_PER_THREAD = 8, MAX_PARTS = 128, HELPER_NANOSECONDS = 25000 };

    template <typename Run>
    int operator()(int last, const npy_intp *sizes, const npy_intp *strides, int n,
                   char **data, const Run &run) const {
        if (!are_large(last, sizes))
            return theano_walk_loops(last, sizes, strides, n, data, run);
        /* Divide the outermost dimension with enough units, otherwise the largest. */
        const npy_intp max_parts =
            std::min<npy_intp>(MAX_PARTS, PARTS_PER_THREAD * (1 + helpers.max_helpers));
        int divided = last;
        npy_intp n_units = 1, unit = 1;
        for (int d = 0; d <= last && n_units < max_parts; d++) {
            const bool is_inner =
                d == last || (d == last - 1 && sizes[last] < Run::FEW);
            const npy_intp unit_of_d = is_inner ? Run::AT_ONCE : 1;
            const npy_intp n_units_of_d = (sizes[d] + unit_of_d - 1) / unit_of_d;
            if (n_units_of_d > n_units && strides[d * n + output]) {
                divided = d;
                n_units = n_units_of_d;
                unit = unit_of_d;
            }
        }
        if (n_units == 1)
            return theano_walk_loops(last, sizes, strides, n, data, run);
        divided_walk<Run> walk(std::min(n_units, max_parts), run);
        walk.last = last;
        walk.n = n;
        walk.d = divided;
        walk.sizes = sizes;
        walk.strides = strides;
        walk.data = data;
        walk.n_units = n_units;
        walk.unit = unit;
        const npy_int64 started = read_nanoseconds();
        walk.run(&walk, walk.next++, 1);
        const npy_int64 part_nanoseconds = read_nanoseconds() - started;
        const npy_int64 remaining_nanoseconds = part_nanoseconds * (walk.n_parts - 1);
        const int n_helpers = std::min<npy_int64>(
            helpers.max_helpers, remaining_nanoseconds / HELPER_NANOSECONDS);
        if (n_helpers)
            helpers.run(&walk, n_helpers);
        else
            walk.run(&walk, 1, walk.n_parts);
        return 0;
    }
};

/* set_threads(n): set the largest number of threads that run the loops of an op. */
static PyObject *set_threads(PyObject *, PyObject *number) {
    const long n_threads = PyLong_AsLong(number);
    if (n_threads == -1 && PyErr_Occurred())
        return NULL;
    helpers.max_helpers = std::max(0L, std::min(n_threads, 1024L) - 1);
    Py_RETURN_NONE;
}

#endif
