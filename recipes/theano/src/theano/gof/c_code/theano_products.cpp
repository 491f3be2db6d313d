/* Small matrix products, for which a BLAS takes longer to copy matrices and to wake its
 * threads than to multiply.
 *
 * theano_products_kernel.h has the kernel. Each element of C is the sum of its products
 * in the order of k, by fused multiply-add. So the results do not depend on the number
 * of threads. */

#include <stddef.h>
#include "theano_products.h"

/* C = alpha A B + beta C, with C in rows. A has m rows and k columns, B has k rows and
 * n columns. Distances between rows and columns are numbers of elements. The columns
 * of C are adjacent. */
template <typename T> struct product {
    long m, n, k;
    T alpha, beta;
    const T *a;
    long row_of_a, column_of_a;
    const T *b;
    long row_of_b, column_of_b;
    T *c;
    long row_of_c;
};

/* The integers that select elements of a vector of T. */
template <typename T> struct integer;
template <> struct integer<double> {
    typedef long type;
};
template <> struct integer<float> {
    typedef int type;
};

static inline long min(long x, long y) {
    return x < y ? x : y;
}

#define INLINE static inline __attribute__((always_inline))

static theano_run_parts run_parts;

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define VECTOR_BYTES 32
#define MAX_ROWS 4
namespace avx2 {
#include "theano_products_kernel.h"
}
#undef VECTOR_BYTES
#undef MAX_ROWS
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,prefer-vector-width=512")
#define VECTOR_BYTES 64
#define MAX_ROWS 8
namespace avx512 {
#include "theano_products_kernel.h"
}
#pragma GCC pop_options

static enum { DISABLED, AVX2, AVX512 } instructions;

int theano_enable_products(theano_run_parts run) {
    __builtin_cpu_init();
    run_parts = run;
    if (run && __builtin_cpu_supports("avx512f"))
        instructions = AVX512;
    else if (run && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        instructions = AVX2;
    else
        instructions = DISABLED;
    return instructions != DISABLED;
}

/* MIN_ROWS: the least number of rows of C for which the kernels are faster than a BLAS.
 * MAX_WORK: the largest m n k. MIN_WORK_IN_PARTS: the smallest m n k for which another
 * thread may help. */
enum { MIN_ROWS = 4, MAX_WORK = 1 << 27, MIN_WORK_IN_PARTS = 1 << 19 };

template <typename T> static int multiply(THEANO_GEMM_PARAMETERS(T)) {
    const double work = (double)*m * *n * *k;
    if (!instructions || *alpha == 0 || *n < MIN_ROWS || *k < 1 || work > MAX_WORK)
        return 0;
    const bool is_a_transposed = *transpose_a != 'N' && *transpose_a != 'n';
    const bool is_b_transposed = *transpose_b != 'N' && *transpose_b != 'n';
    /* BLAS stores matrices by columns. So its C, A and B are the transposes of this
     * file's C, B and A. */
    const product<T> p = {*n,
                          *m,
                          *k,
                          *alpha,
                          *beta,
                          b,
                          is_b_transposed ? 1 : *ldb,
                          is_b_transposed ? *ldb : 1,
                          a,
                          is_a_transposed ? 1 : *lda,
                          is_a_transposed ? *lda : 1,
                          c,
                          *ldc};
    const bool in_parts = work >= MIN_WORK_IN_PARTS;
    return instructions == AVX512 ? avx512::run(p, in_parts) : avx2::run(p, in_parts);
}

int theano_dgemm(THEANO_GEMM_PARAMETERS(double)) {
    return multiply(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c,
                    ldc);
}

int theano_sgemm(THEANO_GEMM_PARAMETERS(float)) {
    return multiply(transpose_a, transpose_b, m, n, k, alpha, a, lda, b, ldb, beta, c,
                    ldc);
}
