#ifndef THEANO_THUNKS_THREADS_H
#define THEANO_THUNKS_THREADS_H

/* Threads that share the loops of a large Elemwise, reduction, matrix product or
 * pooling.
 *
 * The calling thread divides the loops into parts, and measures the time of the first
 * part. If the remaining parts would take long, it wakes helper threads. Then each
 * thread, including the calling thread, repeatedly takes the next part and runs it. If
 * other processes occupy the helpers' CPUs, the calling thread runs all parts itself. A
 * helper spins for a while after its last part, so that the next loops need not wake
 * it.
 */

#include <algorithm>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <time.h>
#include "theano_products.h"
#include "theano_tensor.h"

/* Loops divided into parts, which can run in any order and at the same time. */
struct divided_loops {
    /* Runs the parts from number `part` to number end - 1. */
    void (*run)(const divided_loops *self, npy_intp part, npy_intp end);
    npy_intp n_parts;
    /* How many parts each side has taken: the calling thread (the higher 32 bits) and
     * the helpers (the lower 32 bits). One atomic number has both. */
    npy_uint64 taken_parts = 0;
    enum : npy_uint64 { BY_HELPER = 1, BY_CALLER = (npy_uint64)1 << 32 };

    divided_loops(void (*run)(const divided_loops *, npy_intp, npy_intp),
                  npy_intp n_parts)
        : run(run), n_parts(n_parts) {}

    /* Repeatedly take the next part and run it, until no part remains. The calling
     * thread takes parts from the first part on, and helpers take them from the last
     * part on. So in each step of a loop, a thread works on about the same parts, and
     * finds their data in its cache. */
    void run_parts(bool is_helper) {
        for (;;) {
            const npy_uint64 before = __atomic_fetch_add(
                &taken_parts, is_helper ? BY_HELPER : BY_CALLER, __ATOMIC_RELAXED);
            const npy_intp by_caller = before / BY_CALLER,
                           by_helpers = before % BY_CALLER;
            if (by_caller + by_helpers >= n_parts)
                return;
            const npy_intp part = is_helper ? n_parts - 1 - by_helpers : by_caller;
            run(this, part, part + 1);
        }
    }

    /* Run all parts, in several threads if the parts after the first would take long.
     * If these parts take at least `min_counted` nanoseconds and run in this thread,
     * should_wake counts them. */
    void run_all(npy_int64 min_counted = SPINNING_NANOSECONDS);

    /* Run all parts: together with the helpers that spin, or else as run_all. For parts
     * that are known to be long enough. */
    void run_with_spinning();

  private:
    /* The remaining time for which one more helper is used. On a virtual machine, the
     * calling thread needs 5 to 10 us to wake a sleeping helper. */
    enum { SLEEPING_NANOSECONDS = 25000, SPINNING_NANOSECONDS = 5000 };
};

/* The helper threads of the process. They run the loops of one op at a time. */
static class helper_threads {
    /* SPIN_CYCLES: the cycles of the time stamp counter for which a thread spins before
     * it sleeps, 100 to 200 us. Waking a thread takes longer than many parts, and the
     * steps of a scan share loops every 20 to 100 us. PAUSE_CYCLES: the cycles after
     * which a spinning thread yields its CPU, which another thread may need. STACK: the
     * size of a helper's stack in bytes, of which any_strides uses 64 kB. */
    enum { SPIN_CYCLES = 400000, PAUSE_CYCLES = 1 << 17, STACK = 1 << 19 };

    /* Whether a calling thread uses the helpers. Only one thread can use them at a
     * time. */
    bool is_used = false;
    /* The number of helpers that exist. */
    int n_started = 0;
    /* The number of helpers that do not sleep. */
    int n_awake = 0;
    /* The loops that helpers may join. */
    divided_loops *loops = NULL;
    /* How many helpers should still join the loops (the higher 32 bits), and how many
     * run parts of them (the lower 32 bits). One atomic number has both. It has its own
     * cache line, because spinning helpers poll it. */
    alignas(64) npy_uint64 joining = 0;
    enum : npy_uint64 { RUNNING = 1, WANTED = (npy_uint64)1 << 32 };
    /* `added` wakes sleeping helpers. */
    alignas(64) pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t added = PTHREAD_COND_INITIALIZER;

    npy_uint64 load_joining() const {
        return __atomic_load_n(&joining, __ATOMIC_SEQ_CST);
    }

    /* Pause in a spin loop that began at `start`, or yield the CPU after PAUSE_CYCLES.
     * Return the cycles since `start`. */
    static npy_uint64 pause_or_yield(npy_uint64 start) {
        const npy_uint64 cycles = __builtin_ia32_rdtsc() - start;
        if (cycles < PAUSE_CYCLES)
            __builtin_ia32_pause();
        else
            sched_yield();
        return cycles;
    }

    /* Spin until loops need a helper, at most for SPIN_CYCLES. Join the loops and
     * return true, or return false if no loops need a helper. */
    bool join() {
        const npy_uint64 start = __builtin_ia32_rdtsc();
        npy_uint64 before = load_joining();
        while (before < WANTED && pause_or_yield(start) < SPIN_CYCLES)
            before = load_joining();
        while (before >= WANTED)
            if (__atomic_compare_exchange_n(&joining, &before,
                                            before - WANTED + RUNNING, false,
                                            __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
                return true;
        return false;
    }

    /* Sleep until loops may need a helper. */
    void sleep() {
        pthread_mutex_lock(&mutex);
        __atomic_sub_fetch(&n_awake, 1, __ATOMIC_SEQ_CST);
        if (load_joining() < WANTED)
            pthread_cond_wait(&added, &mutex);
        __atomic_add_fetch(&n_awake, 1, __ATOMIC_SEQ_CST);
        pthread_mutex_unlock(&mutex);
    }

    /* The main loop of a helper: wait for loops and run parts of them. A helper that
     * wakes up too late spins again, because the next loops may follow soon. */
    void help() {
        for (;;) {
            if (!join()) {
                sleep();
                continue;
            }
            loops->run_parts(true);
            __atomic_sub_fetch(&joining, RUNNING, __ATOMIC_RELEASE);
        }
    }

    static void *start(void *self) {
        ((helper_threads *)self)->help();
        return NULL;
    }

    /* Start helpers until n exist. They block all signals, so that the system delivers
     * signals to the threads of the user's program. If the system refuses to start a
     * thread, limit max_helpers to the number of existing helpers. */
    void start_until(int n) {
        sigset_t all, before;
        pthread_attr_t attributes;
        pthread_t thread;
        sigfillset(&all);
        pthread_attr_init(&attributes);
        pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        pthread_attr_setstacksize(&attributes, STACK);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (n_started < n && !pthread_create(&thread, &attributes, start, this)) {
            n_started++;
            __atomic_add_fetch(&n_awake, 1, __ATOMIC_SEQ_CST);
        }
        if (n_started < n)
            max_helpers = n_started;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        pthread_attr_destroy(&attributes);
    }

  public:
    int max_helpers = 0;

    int count_awake() const {
        return __atomic_load_n(&n_awake, __ATOMIC_SEQ_CST);
    }

    /* Run all parts that are not taken, in this thread and in up to n helpers. If the
     * helpers run loops of another thread, run all parts in this thread. */
    void run(divided_loops *shared, int n) {
        if (__atomic_exchange_n(&is_used, true, __ATOMIC_ACQUIRE))
            return shared->run_parts(false);
        if (n > n_started)
            start_until(n);
        n = std::min(n, n_started);
        loops = shared;
        __atomic_store_n(&joining, n * WANTED, __ATOMIC_SEQ_CST);
        const int n_asleep = n - count_awake();
        if (n_asleep > 0) {
            pthread_mutex_lock(&mutex);
            for (int i = 0; i < n_asleep; i++)
                pthread_cond_signal(&added);
            pthread_mutex_unlock(&mutex);
        }
        shared->run_parts(false);
        /* The helpers may still run their last parts. */
        const npy_uint64 start = __builtin_ia32_rdtsc();
        __atomic_and_fetch(&joining, WANTED - 1, __ATOMIC_RELAXED);
        while (load_joining())
            pause_or_yield(start);
        __atomic_store_n(&is_used, false, __ATOMIC_RELEASE);
    }

    /* Reset the state in a forked process, in which the helper threads do not exist. */
    static void forget();
} helpers;

void helper_threads::forget() {
    const int max_helpers = helpers.max_helpers;
    helpers = helper_threads();
    helpers.max_helpers = max_helpers;
}

/* Return the time of the monotonic clock in nanoseconds. */
static npy_int64 read_nanoseconds() {
    timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000LL + time.tv_nsec;
}

/* Return whether to wake a helper for parts that take too short a time to wake one on
 * their own. Add their time to the time of earlier such parts of this thread. Wake a
 * helper if the sum is at least 1 / SHARE of the elapsed time, as in the steps of a
 * scan: the helper then spins and finds the next parts. */
static bool should_wake(npy_int64 now, npy_int64 part_nanoseconds) {
    enum { ENOUGH_NANOSECONDS = 20000, SHARE = 16 };
    static thread_local npy_int64 window_start, sum_nanoseconds;
    if (now - window_start > SHARE * ENOUGH_NANOSECONDS) {
        window_start = now;
        sum_nanoseconds = 0;
    }
    sum_nanoseconds += part_nanoseconds;
    return sum_nanoseconds >= ENOUGH_NANOSECONDS;
}

void divided_loops::run_with_spinning() {
    const int n_helpers = std::min<npy_intp>(
        std::min(helpers.count_awake(), helpers.max_helpers), n_parts - 1);
    if (n_helpers)
        helpers.run(this, n_helpers);
    else
        run_all(0);
}

void divided_loops::run_all(npy_int64 min_counted) {
    const npy_int64 started = read_nanoseconds();
    run(this, 0, 1);
    taken_parts = BY_CALLER;
    const npy_int64 part_nanoseconds = read_nanoseconds() - started;
    const npy_int64 remaining_nanoseconds = part_nanoseconds * (n_parts - 1);
    const npy_int64 n_spinning = std::min<npy_int64>(
        helpers.count_awake(), remaining_nanoseconds / SPINNING_NANOSECONDS);
    const int n_helpers = std::min<npy_int64>(
        helpers.max_helpers,
        std::max(n_spinning, remaining_nanoseconds / SLEEPING_NANOSECONDS));
    if (n_helpers)
        helpers.run(this, n_helpers);
    else if (helpers.max_helpers && remaining_nanoseconds >= min_counted &&
             should_wake(started, remaining_nanoseconds))
        helpers.run(this, 1);
    else
        run(this, 1, n_parts);
}

/* The loops of theano_walk_loops, divided into parts along loop number d. The
 * parameters of theano_walk_loops are fields; `walk` is its parameter `run`. */
template <typename Run> struct divided_walk : divided_loops {
    int last, n, d;
    const npy_intp *sizes, *strides;
    char *const *data;
    const Run &walk;
    /* Loop d has n_units units of `unit` iterations; the last unit may be shorter. A
     * part consists of whole units. */
    npy_intp n_units, unit;

    divided_walk(npy_intp n_parts, const Run &walk)
        : divided_loops(run_parts, n_parts), walk(walk) {}

    /* Return the number of a part's first iteration of loop d. */
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

/* Return whether helpers are allowed, and loops have so many elements that several
 * threads may be faster than one thread. */
static bool are_large(int last, const npy_intp *sizes) {
    enum { FEW_ELEMENTS = 1 << 13 };
    npy_intp n_elements = 1;
    for (int d = 0; d <= last; d++)
        n_elements *= sizes[d];
    return helpers.max_helpers && n_elements >= FEW_ELEMENTS;
}

/* Runs loops in several threads, as the parameter `walk` of theano_run_loops. Each
 * thread computes different elements of array number `output`. `run` must neither fail
 * nor use Python.
 *
 * The results do not depend on the number of threads, although a SIMD function and the
 * scalar function for the remaining elements may round differently. For this purpose, a
 * part of the innermost loop has a multiple of Run::AT_ONCE iterations, except for the
 * last part. If the innermost loop has fewer than Run::FEW iterations, `run` may
 * exchange it with the loop around it, so the parts of that loop have such multiples
 * too. */
struct in_threads {
    int output;

    enum { PARTS_PER_THREAD = 8, MAX_PARTS = 128 };

    /* Return the largest number of parts. */
    static npy_intp count_parts() {
        return std::min<npy_intp>(MAX_PARTS,
                                  PARTS_PER_THREAD * (1 + helpers.max_helpers));
    }

    template <typename Run>
    int operator()(int last, const npy_intp *sizes, const npy_intp *strides, int n,
                   char **data, const Run &run) const {
        if (!are_large(last, sizes))
            return theano_walk_loops(last, sizes, strides, n, data, run);
        /* Divide the outermost loop that has enough units for all parts, or else the
         * loop with the most units. A loop in which the output has a stride of 0 cannot
         * be divided. */
        const npy_intp max_parts = count_parts();
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
        walk.run_all();
        return 0;
    }
};

/* The parts of a matrix product (theano_products.h). */
struct product_parts : divided_loops {
    void (*run_part)(void *work, long part);
    void *work;

    product_parts(void (*run_part)(void *, long), void *work, long n_parts)
        : divided_loops(run_parts, n_parts), run_part(run_part), work(work) {}

    static void run_parts(const divided_loops *base, npy_intp part, npy_intp end) {
        const product_parts &self = *(const product_parts *)base;
        for (; part < end; part++)
            self.run_part(self.work, part);
    }
};

/* Run the parts of a matrix product, in threads if they take long. */
static void run_product_parts(void (*run_part)(void *, long), void *work,
                              long n_parts) {
    product_parts(run_part, work, n_parts).run_with_spinning();
}

/* enable_products(enabled): let kernels or the BLAS compute small matrix products.
 * Return whether kernels compute them; not all processors have the instructions. */
static PyObject *enable_products(PyObject *, PyObject *enabled) {
    const int is_true = PyObject_IsTrue(enabled);
    if (is_true == -1)
        return NULL;
    return PyBool_FromLong(theano_enable_products(is_true ? run_product_parts : NULL));
}

/* set_threads(n): set the largest number of threads that run the loops of an op,
 * including the calling thread. At most 1024 threads are used. */
static PyObject *set_threads(PyObject *, PyObject *number) {
    const long n_threads = PyLong_AsLong(number);
    if (n_threads == -1 && PyErr_Occurred())
        return NULL;
    helpers.max_helpers = std::max(0L, std::min(n_threads, 1024L) - 1);
    Py_RETURN_NONE;
}

#endif
