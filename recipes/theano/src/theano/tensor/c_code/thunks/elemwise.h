#ifndef THEANO_THUNKS_ELEMWISE_H
#define THEANO_THUNKS_ELEMWISE_H

/* The thunk of an Elemwise, without its loops. */

#include <algorithm>
#include "chain.h"
#include "threads.h"
#include "thunk.h"

/* Ignore inputs that are broadcast along all dimensions. Return whether all other
 * inputs are in Fortran order, and at least one other input exists. */
static int are_in_fortran_order(const theano_elemwise_op *op, PyArrayObject **inputs) {
    int all_fortran = 0;
    for (int i = 0; i < op->n_inputs; i++) {
        if (!strchr(op->broadcast[i], '0'))
            continue;
        if (!PyArray_ISFORTRAN(inputs[i]))
            return 0;
        all_fortran = 1;
    }
    return all_fortran;
}

/* Copy n elements of type T. Strides are in bytes. */
template <typename T>
static void copy_elements(npy_intp n, char *__restrict to, npy_intp to_stride,
                          const char *__restrict from, npy_intp from_stride) {
    if (from_stride == 0 && to_stride == sizeof(T)) {
        std::fill_n((T *)to, n, *(const T *)from);
        return;
    }
#pragma GCC unroll 8
    for (npy_intp i = 0; i < n; i++)
        *(T *)(to + i * to_stride) = *(const T *)(from + i * from_stride);
}

/* Copy n elements of `size` bytes each: 1, 2, 4 or 8. Strides are in bytes. */
static void copy_elements(int size, npy_intp n, char *to, npy_intp to_stride,
                          const char *from, npy_intp from_stride) {
    (size == 1   ? copy_elements<npy_int8>
     : size == 2 ? copy_elements<npy_int16>
     : size == 4 ? copy_elements<npy_int32>
                 : copy_elements<npy_int64>)(n, to, to_stride, from, from_stride);
}

/* Runs an op's loops, which assume contiguous elements, on arrays with any strides. The
 * type theano_loops describes the arguments. The functor copies blocks of an array that
 * is not contiguous into contiguous memory, and runs the loops on the copies. Then it
 * copies the blocks of outputs back. */
struct any_strides {
    /* AT_ONCE: the largest number of elements in a block. ARRAYS: if more arrays than
     * this are copied, blocks are smaller, to limit the size of the stack. FEW: an
     * inner loop with fewer iterations is exchanged with the outer loop if the outer
     * loop is longer. */
    enum { AT_ONCE = 512, ARRAYS = 16, FEW = 16 };

    const theano_elemwise_op *op;
    int n;
    /* For each array: the size of an element in bytes. */
    const int *item_sizes;

    const run_op run = {op};

    /* Return the innermost stride, in bytes, that `run` assumes for array i. */
    npy_intp assumed_stride(int i) const {
        return run.loops && op->broadcast[i][op->nd - 1] == '1' ? 0 : item_sizes[i];
    }

    /* Return whether array i is an output or an input that an output overwrites. */
    bool is_output(int i) const {
        return i >= op->n_inputs ||
               std::count(op->overwritten, op->overwritten + op->n_outputs, i);
    }

    int operator()(char *const *data, const npy_intp *sizes,
                   const npy_intp *strides) const {
        const npy_intp *inner = strides + n;
        int n_copied = 0;
        bool moving = false;
        for (int i = 0; i < n; i++) {
            n_copied += inner[i] != assumed_stride(i);
            moving = moving || (inner[i] && !assumed_stride(i));
        }
        if (sizes[1] == 1 || !n_copied)
            return run(data, sizes, strides);
        if (sizes[1] < sizes[0] && sizes[1] < FEW) {
            const npy_intp exchanged[] = {sizes[1], sizes[0]};
            npy_intp outer[2 * n];
            std::rotate_copy(strides, inner, inner + n, outer);
            return (*this)(data, exchanged, outer);
        }
        char *row[n];
        for (npy_intp k = 0; k < sizes[0]; k++) {
            for (int i = 0; i < n; i++)
                row[i] = data[i] + k * strides[i];
            if (moving) {
                /* The loops assume a stride of 0 for an array whose elements differ:
                 * run them for one element at a time. */
                const npy_intp rows[] = {sizes[1], 1};
                run(row, rows, inner);
            } else {
                compute_copies(sizes[1], row, inner, n_copied);
            }
        }
        return 0;
    }

    /* Compute a row of n_elements; copy the n_copied arrays that are not contiguous.
     * `row` has the address of each array's first element, and `inner` each array's
     * stride in bytes. */
    void compute_copies(npy_intp n_elements, char *const *row, const npy_intp *inner,
                        int n_copied) const {
        npy_intp at_once = AT_ONCE;
        for (int arrays = n_copied; arrays > ARRAYS && at_once > 1; arrays /= 2)
            at_once /= 2;
        npy_int64 copies[n_copied * at_once];
        for (npy_intp done = 0; done < n_elements; done += at_once) {
            const npy_intp sizes[] = {1, std::min(at_once, n_elements - done)};
            char *from[n], *at[n], *copy = (char *)copies;
            for (int i = 0; i < n; i++) {
                at[i] = from[i] = row[i] + done * inner[i];
                if (inner[i] == assumed_stride(i))
                    continue;
                at[i] = copy;
                copy += at_once * sizeof(*copies);
                /* All elements of an array with stride 0 are equal, so its copy for the
                 * first block serves for all blocks. */
                if (i < op->n_inputs && (inner[i] || !done))
                    copy_elements(item_sizes[i], sizes[1], at[i], assumed_stride(i),
                                  from[i], inner[i]);
            }
            run(at, sizes, inner);
            for (int i = 0; i < n; i++)
                if (at[i] != from[i] && is_output(i))
                    copy_elements(item_sizes[i], sizes[1], from[i], inner[i], at[i],
                                  assumed_stride(i));
        }
    }
};

/* Compute an Elemwise. op: a theano_elemwise_op. */
static int elemwise(const thunk *self, PyArrayObject **inputs,
                    PyArrayObject **outputs) {
    const theano_elemwise_op *op = (const theano_elemwise_op *)self->op;
    PyArrayObject *arrays[op->n_inputs + op->n_outputs];
    npy_intp dims[op->nd];
    int n = op->n_inputs;
    memcpy(arrays, inputs, n * sizeof(*inputs));
    if (theano_dims(op->nd, dims, n, inputs, op->broadcast))
        return -1;
    for (int i = 0; i < op->n_outputs; i++) {
        if (op->overwritten[i] >= 0) {
            PyArrayObject *input = inputs[op->overwritten[i]];
            Py_INCREF(input);
            Py_XSETREF(outputs[i], input);
            continue;
        }
        outputs[i] =
            theano_output(outputs[i], op->nd, dims, self->types[op->n_inputs + i],
                          are_in_fortran_order(op, inputs));
        if (!outputs[i])
            return -1;
        arrays[n++] = outputs[i];
    }
    if (op->assumes_contiguous) {
        int item_sizes[n];
        for (int i = 0; i < n; i++)
            item_sizes[i] = PyArray_ITEMSIZE(arrays[i]);
        return theano_elemwise(op->nd, dims, n, arrays, op->broadcast, op->like,
                               any_strides{op, n, item_sizes}, in_threads{op->like});
    }
    return theano_elemwise(op->nd, dims, n, arrays, op->broadcast, op->like,
                           run_op{op});
}

#endif
