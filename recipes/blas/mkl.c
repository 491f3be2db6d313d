/* MKL as gfortran, forking programs and loops over small matrices expect a BLAS to be.
 *
 * The interface that Intel's wheel has is that of Intel's Fortran: a function
 * returns a complex number through a hidden first argument, GNU Fortran's in
 * registers. These are all such functions of BLAS and LAPACK; the rest of MKL is
 * reached through this library's dependencies. */
#include <complex.h>
#include <pthread.h>

#define DOT(type, name)                                                                         \
    void name(type *, const int *, const type *, const int *, const type *, const int *);       \
    type name##_(const int *n, const type *x, const int *incx, const type *y, const int *incy)  \
    {                                                                                           \
        type result;                                                                            \
        name(&result, n, x, incx, y, incy);                                                     \
        return result;                                                                          \
    }

#define DIVIDE(type, name)                                                                      \
    void name(type *, const type *, const type *);                                              \
    type name##_(const type *x, const type *y)                                                  \
    {                                                                                           \
        type result;                                                                            \
        name(&result, x, y);                                                                    \
        return result;                                                                          \
    }

DOT(float complex, cdotc)
DOT(float complex, cdotu)
DOT(double complex, zdotc)
DOT(double complex, zdotu)
DIVIDE(float complex, cladiv)
DIVIDE(double complex, zladiv)

/* A team of threads takes 50 us to wake, unless it burns the processor that other
 * threads and processes need. Products below these numbers of multiplications are
 * done sooner by one, as measured on two cores with AVX-512: of a matrix and a
 * vector up to 700 x 700, of two matrices up to 160 x 160. */
#define FEW_OF_A_MATRIX 5e5
#define FEW_OF_A_PRODUCT 4e6

int MKL_Set_Num_Threads_Local(int count);

#define WITH_THREADS_FOR(multiplications, few, call)                                            \
    if ((multiplications) < (few)) {                                                            \
        const int before = MKL_Set_Num_Threads_Local(1);                                        \
        call;                                                                                   \
        MKL_Set_Num_Threads_Local(before);                                                      \
    } else                                                                                      \
        call

#define GEMV(type, name)                                                                        \
    void name(const char *, const int *, const int *, const type *, const type *, const int *,  \
              const type *, const int *, const type *, type *, const int *);                    \
    void name##_(const char *trans, const int *m, const int *n, const type *alpha,              \
                 const type *a, const int *lda, const type *x, const int *incx,                 \
                 const type *beta, type *y, const int *incy)                                    \
    {                                                                                           \
        WITH_THREADS_FOR((double)*m * *n, FEW_OF_A_MATRIX,                                      \
                         name(trans, m, n, alpha, a, lda, x, incx, beta, y, incy));             \
    }

#define GER(type, name)                                                                         \
    void name(const int *, const int *, const type *, const type *, const int *, const type *,  \
              const int *, type *, const int *);                                                \
    void name##_(const int *m, const int *n, const type *alpha, const type *x,                  \
                 const int *incx, const type *y, const int *incy, type *a, const int *lda)      \
    {                                                                                           \
        WITH_THREADS_FOR((double)*m * *n, FEW_OF_A_MATRIX,                                      \
                         name(m, n, alpha, x, incx, y, incy, a, lda));                          \
    }

#define GEMM(type, name)                                                                        \
    void name(const char *, const char *, const int *, const int *, const int *, const type *,  \
              const type *, const int *, const type *, const int *, const type *, type *,       \
              const int *);                                                                     \
    void name##_(const char *transa, const char *transb, const int *m, const int *n,            \
                 const int *k, const type *alpha, const type *a, const int *lda, const type *b, \
                 const int *ldb, const type *beta, type *c, const int *ldc)                     \
    {                                                                                           \
        WITH_THREADS_FOR((double)*m * *n * *k, FEW_OF_A_PRODUCT,                                \
                         name(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));   \
    }

GEMV(float, sgemv)
GEMV(double, dgemv)
GER(float, sger)
GER(double, dger)
GEMM(float, sgemm)
GEMM(double, dgemm)

/* GNU OpenMP's threads do not survive a fork, and a child that calls on them waits for ever. */
void MKL_Set_Num_Threads(int count);

static void run_alone(void)
{
    MKL_Set_Num_Threads(1);
}

__attribute__((constructor)) static void on_load(void)
{
    pthread_atfork(0, 0, run_alone);
}
