/* MKL as gfortran and forking programs expect a BLAS to be.
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
