/* Products of vectors and of small matrices, and correlations. For small matrices, a
 * BLAS takes longer to copy them and to wake its threads than to multiply them.
 *
 * theano_products_kernel.h, theano_vector_kernels.h and theano_correlation_kernels.h
 * have the kernels. A product of
 * matrices adds the terms of a sum in order, by fused multiply-add. The results do not
 * depend on the number of threads. */

#include <stdlib.h>
#include <string.h>
#include "theano_correlations.h"
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

static inline long max(long x, long y) {
    return x > y ? x : y;
}

#define INLINE static inline __attribute__((always_inline))

static theano_run_parts run_parts;

/* Run the parts 0 to n_parts - 1 of some work, in threads if `in_threads` is true and
 * the kernels are enabled. Precompiled thunks use the kernels even if they are disabled
 * later. */
static void run_all(void (*run_part)(void *, long), void *work, long n_parts,
                    bool in_threads = true) {
    if (in_threads && run_parts && n_parts > 1)
        return run_parts(run_part, work, n_parts);
    for (long part = 0; part < n_parts; part++)
        run_part(work, part);
}

#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define VECTOR_BYTES 32
#define MAX_ROWS 4
namespace avx2 {
#include "theano_products_kernel.h"
#include "theano_vector_kernels.h"
#include "theano_correlation_kernels.h"
} // namespace avx2
#undef VECTOR_BYTES
#undef MAX_ROWS
#pragma GCC pop_options

#pragma GCC push_options
#pragma GCC target("avx512f,prefer-vector-width=512")
#define VECTOR_BYTES 64
#define MAX_ROWS 8
namespace avx512 {
#include "theano_products_kernel.h"
#include "theano_vector_kernels.h"
#include "theano_correlation_kernels.h"
} // namespace avx512
#pragma GCC pop_options

static enum { NONE, AVX2, AVX512 } instructions;

int theano_enable_products(theano_run_parts run) {
    __builtin_cpu_init();
    run_parts = run;
    if (__builtin_cpu_supports("avx512f"))
        instructions = AVX512;
    else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        instructions = AVX2;
    return run && instructions;
}

/* MIN_ROWS: the least number of rows of C for which the kernels are faster than a BLAS.
 * MAX_WORK: the largest m n k. MIN_WORK_IN_PARTS: the smallest m n k for which another
 * thread may help. */
enum { MIN_ROWS = 4, MAX_WORK = 1 << 27, MIN_WORK_IN_PARTS = 1 << 19 };

template <typename T> static int multiply(THEANO_GEMM_PARAMETERS(T)) {
    const double work = (double)*m * *n * *k;
    if (!run_parts || !instructions || *alpha == 0 || *k < 1 || work > MAX_WORK)
        return 0;
    const bool is_a_transposed = *transpose_a != 'N' && *transpose_a != 'n';
    const bool is_b_transposed = *transpose_b != 'N' && *transpose_b != 'n';
    const long row_of_a = is_a_transposed ? *lda : 1,
               column_of_a = is_a_transposed ? 1 : *lda,
               row_of_b = is_b_transposed ? *ldb : 1,
               column_of_b = is_b_transposed ? 1 : *ldb;
    if (*m == 1 || *n == 1) {
        const gemv<T> p =
            *n == 1 ? gemv<T>{*m, *k,       alpha, beta, a, row_of_a, column_of_a,
                              b,  row_of_b, c,     1,    c, 1}
                    : gemv<T>{*n, *k,          alpha, beta, b, column_of_b, row_of_b,
                              a,  column_of_a, c,     *ldc, c, *ldc};
        return instructions == AVX512 ? avx512::compute_gemv(p) : avx2::compute_gemv(p);
    }
    if (*n < MIN_ROWS)
        return 0;
    /* BLAS stores matrices by columns. So its C, A and B are the transposes of this
     * file's C, B and A. */
    const product<T> p = {*n,       *m, *k,          *alpha,   *beta, b,   column_of_b,
                          row_of_b, a,  column_of_a, row_of_a, c,     *ldc};
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

template <typename T> void theano_multiply(const gemv<T> &product) {
    gemv<T> p = product;
    T *copy = NULL;
    /* As in BLAS, a factor of 0 ignores A and x. */
    if (*p.alpha == 0)
        p.n_columns = 0;
    /* DebugMode also runs the nodes that the optimizer rejected because they would
     * overwrite x. The BLAS reads x first. */
    const long last_of_x = (p.n_columns - 1) * p.step_of_x,
               last_of_y = (p.n_rows - 1) * p.step_of_y;
    const T *const first_of_x = p.x + min(0, last_of_x), *const first_of_y =
                                                             p.y + min(0, last_of_y);
    const bool is_overwritten = first_of_x <= first_of_y + labs(last_of_y) &&
                                first_of_y <= first_of_x + labs(last_of_x);
    if ((p.column_of_a == 1 && p.step_of_x != 1) || is_overwritten)
        copy = (T *)malloc(p.n_columns * sizeof(T));
    if (copy) {
        for (long j = 0; j < p.n_columns; j++)
            copy[j] = p.x[j * p.step_of_x];
        p.x = copy;
        p.step_of_x = 1;
    }
    if (*p.beta != 0 && p.step_of_from != 1 && p.step_of_y == 1) {
        for (long i = 0; i < p.n_rows; i++)
            p.y[i] = p.from[i * p.step_of_from];
        p.from = p.y;
        p.step_of_from = 1;
    }
    instructions == AVX512 ? avx512::multiply(p) : avx2::multiply(p);
    free(copy);
}

template <typename T> void theano_multiply(const ger<T> &p) {
    instructions == AVX512 ? avx512::multiply(p) : avx2::multiply(p);
}

template void theano_multiply(const gemv<float> &product);
template void theano_multiply(const gemv<double> &product);
template void theano_multiply(const ger<float> &product);
template void theano_multiply(const ger<double> &product);

template <typename T> int theano_correlate(const correlation<T> &c) {
    return instructions == AVX512 ? avx512::correlate(c) : avx2::correlate(c);
}

template <typename T> int theano_correlate_for_filters(const correlation<T> &c) {
    return instructions == AVX512 ? avx512::correlate_for_filters(c)
                                  : avx2::correlate_for_filters(c);
}

template <typename T> int theano_correlate_for_images(const correlation<T> &c) {
    return instructions == AVX512 ? avx512::correlate_for_images(c)
                                  : avx2::correlate_for_images(c);
}

template int theano_correlate(const correlation<float> &c);
template int theano_correlate(const correlation<double> &c);
template int theano_correlate_for_filters(const correlation<float> &c);
template int theano_correlate_for_filters(const correlation<double> &c);
template int theano_correlate_for_images(const correlation<float> &c);
template int theano_correlate_for_images(const correlation<double> &c);
