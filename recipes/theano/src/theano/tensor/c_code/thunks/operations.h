#ifndef THEANO_THUNKS_OPERATIONS_H
#define THEANO_THUNKS_OPERATIONS_H

/* The operations of a recorded step (replay.h). They work on addresses of elements
 * instead of arrays. */

#include "elemwise.h"
#include "reduce.h"
#include "subtensor.h"
#include "vectors.h"

/* The base of all operations. Operations are plain data, without constructors. */
struct operation {
    /* Runs the operation. Returns 0, or sets an exception and returns another value. If
     * `run` is NULL, the replay calls the node's thunk instead. */
    int (*run)(const operation *self);
    /* The number of the node to whose outputs the operation contributes. */
    Py_ssize_t node;
};

/* Runs the loops of an Elemwise or of a reduction. The fields are parameters of
 * theano_walk_loops and any_strides. */
struct run_loops : operation {
    const theano_elemwise_op *op;
    const int *item_sizes;
    int last, n;
    const npy_intp *sizes, *strides;
    char **data;

    /* Run the loops if only the two innermost loops have several iterations. */
    static int run_two(const operation *self) {
        const run_loops &loops = *(const run_loops *)self;
        return run_op{loops.op}(loops.data, loops.sizes, loops.strides);
    }

    template <typename Run, typename Walk>
    int walk_by(const Walk &walk, const Run &run) const {
        char *at[n];
        memcpy(at, data, sizeof(at));
        return walk(last, sizes, strides, n, at, run);
    }

    /* Run all loops in this thread. */
    static int run_all(const operation *self) {
        const run_loops &loops = *(const run_loops *)self;
        return loops.walk_by(theano_serial(), run_op{loops.op});
    }

    /* Run all loops by any_strides, in threads if they are large. */
    static int run_any_strides(const operation *self) {
        const run_loops &loops = *(const run_loops *)self;
        return loops.walk_by(in_threads{loops.op->like},
                             any_strides{loops.op, loops.n, loops.item_sizes});
    }
};

/* Sets the n elements of a reduction's accumulator to their initial value. */
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

/* Rounds a contiguous float64 accumulator of n elements to float32. */
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

/* Fills n_bytes of contiguous memory with a value of item_size bytes. */
struct fill_array : operation {
    npy_intp n_bytes, item_size;
    char *to, *value;

    static int run_it(const operation *self) {
        const fill_array &fill = *(const fill_array *)self;
        fill_memory(fill.to, fill.n_bytes, fill.value, fill.item_size);
        return 0;
    }
};

/* Calls copy_rows (arrays.h) with its fields. */
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

/* Calls take_rows (subtensor.h) with its fields. */
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

/* Calls add_numbers (subtensor.h) with its fields. */
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

/* Copies the elements of array 1 to array 0, or adds them to the elements of array 0 if
 * `add` is true, as theano_update_few does. theano_order_loops has ordered the loops.
 */
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
        const bool are_contiguous = to_stride == sizeof(T) && from_stride == sizeof(T);
        if (are_contiguous && add)
            add_to((T *)to, (const T *)from, n);
        else if (are_contiguous)
            memcpy(to, from, n * sizeof(T));
        else
            theano_few_loops<T>(add, 1, &n, to, &to_stride, from, &from_stride);
    }
};

/* Computes a gemv or ger (theano_products.h) of the arrays at `addresses`: the op's
 * inputs and its output. */
template <typename Product> struct multiply_operation : operation {
    enum { MAX_ARRAYS = 6 };
    Product product;
    char *addresses[MAX_ARRAYS];

    static int run_it(const operation *self) {
        const multiply_operation &multiply = *(const multiply_operation *)self;
        Product product = multiply.product;
        set_addresses(&product, multiply.addresses);
        theano_multiply(product);
        return 0;
    }
};

/* Puts an array into a storage. */
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
