#ifndef THEANO_THUNKS_CHAIN_H
#define THEANO_THUNKS_CHAIN_H

/* Chains compute an Elemwise by the shipped loops of its scalar ops, one op after
 * another, until the Elemwise's own loops are compiled
 * (theano/tensor/linkers/chains.py). */

#include <algorithm>
#include <string.h>
#include "theano_tensor.h"

/* An op with a chain. op.loops is NULL until the loops are compiled. */
struct chained_op {
    theano_elemwise_op op;
    /* The chain's code, a list of integers. The values of a chain are the arrays of the
     * op's loops, followed by temporary arrays. The code contains:
     * - the number of arrays;
     * - the number of temporary arrays;
     * - for each value: the size of an element in bytes;
     * - the number of steps;
     * - for each step: the address of its loops, the number of its arrays, and the
     *   number of the value for each array;
     * - the number of copies;
     * - for each copy: the numbers of the value to write and of the value to read. */
    const npy_intp *code;
};

/* Run a chain on arrays with contiguous rows. The type theano_loops describes the
 * arguments. */
static int run_chain(const chained_op *op, char *const *data, const npy_intp *sizes,
                     const npy_intp *strides) {
    /* BLOCK: the largest number of elements that a step computes at once. MEMORY: the
     * largest number of elements in all temporary arrays, to limit the stack. */
    enum { BLOCK = 512, MEMORY = 1 << 14 };
    const npy_intp n_arrays = op->code[0], n_temporaries = op->code[1],
                   n_values = n_arrays + n_temporaries, *item_sizes = op->code + 2,
                   *steps = item_sizes + n_values;
    npy_intp block = BLOCK;
    while (block > 1 && block * n_temporaries > MEMORY)
        block /= 2;
    block = std::min(block, sizes[1]);
    npy_int64 temporaries[n_temporaries * block + 1];
    char *values[n_values];
    for (npy_intp i = 0; i < n_temporaries; i++)
        values[n_arrays + i] = (char *)(temporaries + i * block);
    for (npy_intp row = 0; row < sizes[0]; row++)
        for (npy_intp done = 0; done < sizes[1]; done += block) {
            const npy_intp block_sizes[] = {1, std::min(block, sizes[1] - done)};
            const npy_intp *code = steps;
            for (npy_intp i = 0; i < n_arrays; i++)
                values[i] = data[i] + row * strides[i] + done * item_sizes[i];
            for (npy_intp n_steps = *code++; n_steps; n_steps--) {
                const theano_loops loops = (theano_loops)*code++;
                const npy_intp n = *code++;
                char *arrays[n];
                npy_intp block_strides[2 * n];
                for (npy_intp i = 0; i < n; i++) {
                    arrays[i] = values[code[i]];
                    block_strides[i] = 0;
                    block_strides[n + i] = item_sizes[code[i]];
                }
                if (loops(arrays, block_sizes, block_strides))
                    return -1;
                code += n;
            }
            for (npy_intp n_copies = *code++; n_copies; n_copies--, code += 2)
                memcpy(values[code[0]], values[code[1]],
                       block_sizes[1] * item_sizes[code[0]]);
        }
    return 0;
}

/* Runs an op's compiled loops or its chain. The type theano_loops describes the
 * arguments. */
struct run_op {
    const theano_elemwise_op *op;
    /* The compiled loops, or NULL. Another thread can set op->loops at any time. */
    const theano_loops loops = __atomic_load_n(&op->loops, __ATOMIC_ACQUIRE);

    int operator()(char *const *data, const npy_intp *sizes,
                   const npy_intp *strides) const {
        return loops ? loops(data, sizes, strides)
                     : run_chain((const chained_op *)op, data, sizes, strides);
    }
};

#endif
