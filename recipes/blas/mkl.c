/* Adapter that makes MKL suitable for gfortran's code, for programs that fork, and for small matrices.
 *
 * The interface in Intel's wheel follows Intel's Fortran compiler: a function returns a complex
 * number through a hidden first argument. GNU Fortran returns it in registers. The first group below
 * wraps all such functions of BLAS and LAPACK. Programs find the other functions of MKL through this
 * library's dependencies. */
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

/* Below these numbers of multiplications, one thread is faster than several threads. Waking the other
 * threads takes 50 us. Threads that wait actively need no waking, but occupy their processors. The
 * limits were measured on two cores with AVX-512: a matrix of 700 x 700 times a vector, and products of
 * two matrices of 160 x 160. */
#define GEMV_LIMIT 5e5
#define GEMM_LIMIT 4e6

int MKL_Set_Num_Threads_Local(int count);

#define WITH_THREADS_FOR(multiplications, limit, call)                                          \
    if ((multiplications) < (limit)) {                                                          \
        const int threads = MKL_Set_Num_Threads_Local(1);                                       \
        call;                                                                                   \
        MKL_Set_Num_Threads_Local(threads);                                                     \
    } else                                                                                      \
        call

#define GEMV(type, name)                                                                        \
    void name(const char *, const int *, const int *, const type *, const type *, const int *,  \
              const type *, const int *, const type *, type *, const int *);                    \
    void name##_(const char *trans, const int *m, const int *n, const type *alpha,              \
                 const type *a, const int *lda, const type *x, const int *incx,                 \
                 const type *beta, type *y, const int *incy)                                    \
    {                                                                                           \
        WITH_THREADS_FOR((double)*m * *n, GEMV_LIMIT,                                           \
                         name(trans, m, n, alpha, a, lda, x, incx, beta, y, incy));             \
    }

#define GER(type, name)                                                                         \
    void name(const int *, const int *, const type *, const type *, const int *, const type *,  \
              const int *, type *, const int *);                                                \
    void name##_(const int *m, const int *n, const type *alpha, const type *x,                  \
                 const int *incx, const type *y, const int *incy, type *a, const int *lda)      \
    {                                                                                           \
        WITH_THREADS_FOR((double)*m * *n, GEMV_LIMIT,                                           \
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
        WITH_THREADS_FOR((double)*m * *n * *k, GEMM_LIMIT,                                      \
                         name(transa, transb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc));   \
    }

GEMV(float, sgemv)
GEMV(double, dgemv)
GER(float, sger)
GER(double, dger)
GEMM(float, sgemm)
GEMM(double, dgemm)

/* A child process has none of its parent's threads, and GNU OpenMP would wait for them forever. So a
 * child uses one thread. */
void MKL_Set_Num_Threads(int count);

static void run_alone(void)
{
    MKL_Set_Num_Threads(1);
}

__attribute__((constructor)) static void on_load(void)
{
    pthread_atfork(0, 0, run_alone);
}
