#ifndef THEANO_THUNKS_OPERATIONS_H
#define THEANO_THUNKS_OPERATIONS_H

/* Operations on addresses: the parts of a recorded step (replay.h). */

#include "elemwise.h"
#include "reduce.h"
#include "subtensor.h"

/* An operation. It can be copied as bytes. */
struct operation {
    /* Returns 0, or another value with an exception set. NULL: the node's thunk is
     * called. */
    int (*run)(const operation *self);
    /* The number of its node. */
    Py_ssize_t node;
};

/* Run the loops of an Elemwise or of a reduction. */
struct run_loops : operation {
    const theano_elemwise_op *op;
    const int *item_sizes;
    int last, n;
    const npy_intp *sizes, *strides;
    char **data;

    /* The two innermost loops, without a copy of elements. */
    static int run_two(const operation *self) {
        const run_loops &loops = *(const run_loops *)self;
        return loops.op->loops(loops.data, loops.sizes, loops.strides);
    }

    template <typename Run, typename Walk>
    int walk_by(const Walk &walk, const Run &run) const {
        char *at[n];
        memcpy(at, data, sizeof(at));
        return walk(last, sizes, strides, n, at, run);
    }

    static int run_all(const operation *self) {
        const run_loops &loops = *(const run_loops *)self;
        return loops.walk_by(theano_serial(), loops.op->loops);
    }

    static int run_any_strides(const operation *self) {
        const run_loops &loops = *(const run_loops *)self;
        return loops.walk_by(in_threads{loops.op->like},
                             any_strides{loops.op, loops.n, loops.item_sizes});
    }
};

/* Set the accumulator of a reduction to its first value. */
struct start_reduction : operation {
    theano_fill fill;
    npy_intp n;
    char *data;

    static int run_it(const operation *self) {
        const start_reduction &start = *(const start_reduction *)self;
        start.fill(start.data, start.n);
        return 0;
    }
};

/* Round a contiguous float64 accumulator to float32. */
struct round_to_float : operation {
    npy_intp n;
    const double *from;
    char *to;

    static int run_it(const operation *self) {
        const round_to_float &round = *(const round_to_float *)self;
        for (npy_intp i = 0; i < round.n; i++)
            ((float *)round.to)[i] = round.from[i];
        return 0;
    }
};

/* Fill contiguous memory with a value. */
struct fill_array : operation {
    npy_intp n_bytes, item_size;
    char *to, *value;

    static int run_it(const operation *self) {
        const fill_array &fill = *(const fill_array *)self;
        fill_memory(fill.to, fill.n_bytes, fill.value, fill.item_size);
        return 0;
    }
};

/* Call copy_rows. */
struct copy_operation : operation {
    npy_intp n, size, to_stride, from_stride;
    char *to, *from;

    static int run_it(const operation *self) {
        const copy_operation &copy = *(const copy_operation *)self;
        copy_rows(copy.n, copy.size, copy.to, copy.to_stride, copy.from,
                  copy.from_stride);
        return 0;
    }
};

/* Call take_rows. */
struct take_operation : operation {
    npy_intp n, size;
    const npy_intp *offsets;
    char *to, *from;

    static int run_it(const operation *self) {
        const take_operation &take = *(const take_operation *)self;
        take_rows(take.n, take.size, take.to, take.from, take.offsets);
        return 0;
    }
};

/* Call add_numbers. */
template <typename T> struct add_operation : operation {
    npy_intp n, from_stride;
    const npy_intp *offsets;
    char *to, *from;

    static int run_it(const operation *self) {
        const add_operation &add = *(const add_operation *)self;
        add_numbers<T>(add.n, add.to, add.offsets, add.from, add.from_stride);
        return 0;
    }
};

/* Set elements to others, or add others to them: theano_update_few in loops that are
 * ordered before. */
template <typename T> struct update_elements : operation {
    bool add;
    int last;
    const npy_intp *sizes, *strides;
    char *data[2];

    static int run_it(const operation *self) {
        const update_elements &update = *(const update_elements *)self;
        char *at[] = {update.data[0], update.data[1]};
        return theano_walk_loops(
            update.last, update.sizes, update.strides, 2, at,
            [&update](char *const *data, const npy_intp *sizes,
                      const npy_intp *strides) {
                for (npy_intp i = 0; i < sizes[0]; i++)
                    update.row(data[0] + i * strides[0], strides[2],
                               data[1] + i * strides[1], strides[3], sizes[1]);
                return 0;
            });
    }

    static void add_to(T *__restrict to, const T *__restrict from, npy_intp n) {
        for (npy_intp i = 0; i < n; i++)
            to[i] += from[i];
    }

    void row(char *to, npy_intp to_stride, const char *from, npy_intp from_stride,
             npy_intp n) const {
        const bool next_to = to_stride == sizeof(T) && from_stride == sizeof(T);
        if (next_to && add)
            add_to((T *)to, (const T *)from, n);
        else if (next_to)
            memcpy(to, from, n * sizeof(T));
        else
            theano_few_loops<T>(add, 1, &n, to, &to_stride, from, &from_stride);
    }
};

/* Put an array into a storage. */
struct put_array : operation {
    PyObject **item;
    PyArrayObject *const *array;

    static int run_it(const operation *self) {
        const put_array &put = *(const put_array *)self;
        if (*put.item != (PyObject *)*put.array)
            Py_XSETREF(*put.item, Py_NewRef((PyObject *)*put.array));
        return 0;
    }
};

#endif
