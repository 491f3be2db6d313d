#ifndef THEANO_GEMM_H
#define THEANO_GEMM_H

/* Replace sgemm_ and dgemm_ by functions that compute small products by the kernels of
 * theano_products.h, and all other products by the BLAS. */

#include "theano_products.h"

/* These functions have C linkage, because a source of several modules may declare
 * sgemm_ and dgemm_ again. */
extern "C" {
static inline void dgemm_or_kernel(THEANO_GEMM_PARAMETERS(double)) {
    if (!theano_dgemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c,
                      ldc))
        dgemm_(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
static inline void sgemm_or_kernel(THEANO_GEMM_PARAMETERS(float)) {
    if (!theano_sgemm(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c,
                      ldc))
        sgemm_(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}
}
#define dgemm_ dgemm_or_kernel
#define sgemm_ sgemm_or_kernel

#endif
