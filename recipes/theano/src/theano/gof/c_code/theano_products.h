#ifndef THEANO_PRODUCTS_H
#define THEANO_PRODUCTS_H

/* Kernels of libtheano_functions for small matrix products. */

/* The parameters of the BLAS functions sgemm_ and dgemm_. */
#define THEANO_GEMM_PARAMETERS(type)                                                   \
    char *transpose_a, char *transpose_b, const int *m, const int *n, const int *k,    \
        const type *alpha, const type *a, const int *lda, const type *b,               \
        const int *ldb, const type *beta, type *c, const int *ldc

/* Compute a product as the BLAS function does, and return 1. Return 0, without a change
 * of C, if the BLAS should compute it. */
extern "C" int theano_dgemm(THEANO_GEMM_PARAMETERS(double));
extern "C" int theano_sgemm(THEANO_GEMM_PARAMETERS(float));

/* Runs part number 0 to n_parts - 1 of some work, in any order, in several threads. */
typedef void (*theano_run_parts)(void (*run_part)(void *work, long part), void *work,
                                 long n_parts);

/* Enable the kernels if the processor has AVX2 and fused multiply-add, and return
 * whether it has; `run_parts` runs the parts of products. NULL disables the kernels, as
 * at first. */
extern "C" int theano_enable_products(theano_run_parts run_parts);

#endif
