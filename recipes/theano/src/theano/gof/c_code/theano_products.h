#ifndef THEANO_PRODUCTS_H
#define THEANO_PRODUCTS_H

/* Kernels of libtheano_functions for products of matrices and vectors. */

/* The parameters of the BLAS functions sgemm_ and dgemm_. */
#define THEANO_GEMM_PARAMETERS(type)                                                   \
    char *transpose_a, char *transpose_b, const int *m, const int *n, const int *k,    \
        const type *alpha, const type *a, const int *lda, const type *b,               \
        const int *ldb, const type *beta, type *c, const int *ldc

/* Compute a product as the BLAS function does, and return 1. Return 0, without a change
 * of C, if the BLAS should compute it. */
extern "C" int theano_dgemm(THEANO_GEMM_PARAMETERS(double));
extern "C" int theano_sgemm(THEANO_GEMM_PARAMETERS(float));

/* y = alpha A x + beta from. A has n_rows rows and n_columns columns. Distances between
 * rows, columns and elements are numbers of elements. y may be `from`. If beta is 0,
 * `from` is not read. */
template <typename T> struct gemv {
    long n_rows, n_columns;
    const T *alpha, *beta;
    const T *a;
    long row_of_a, column_of_a;
    const T *x;
    long step_of_x;
    const T *from;
    long step_of_from;
    T *y;
    long step_of_y;
};

/* Z = alpha x y' + A. The matrices have n_rows rows and n_columns columns. Z may be A.
 */
template <typename T> struct ger {
    long n_rows, n_columns;
    const T *alpha;
    const T *x;
    long step_of_x;
    const T *y;
    long step_of_y;
    const T *a;
    long row_of_a, column_of_a;
    T *z;
    long row_of_z, column_of_z;
};

/* Compute a product for T = float or double. theano_enable_products must have returned
 * true before. */
template <typename T> void theano_multiply(const gemv<T> &product);
template <typename T> void theano_multiply(const ger<T> &product);

/* Runs part number 0 to n_parts - 1 of some work, in any order, in several threads. */
typedef void (*theano_run_parts)(void (*run_part)(void *work, long part), void *work,
                                 long n_parts);

/* Enable the kernels, and return true, if the processor has AVX2 and fused
 * multiply-add. The kernels call run_parts. If it is NULL, disable the kernels, and
 * return false. Until the first call, the kernels are disabled. */
extern "C" int theano_enable_products(theano_run_parts run_parts);

#endif
