/* Vectorized mathematical functions for Theano, under the names of AMD's library.

   Arrays: amd_vrsa_* (float) and amd_vrda_* (double) set z[i] = f(x[i]) for
   0 <= i < n. The arrays may have any alignment, and z may be x. n has the
   width of npy_intp; in AMD's library it is an int.

   Scalars: the declarations of amd_* and amd_*f have GCC's attribute simd, so
   that g++ vectorizes loops that call them.

   REPLACE_WITH_AMDLIBM binds the C library's names to the scalars. It renames
   the symbols and defines no macros. So std::exp still works, its overload for
   float calls amd_expf, and the functions are still built-in functions of g++:
   g++ may call them for all elements of a loop, even if the call is in a
   branch. */
#ifndef AMDLIBM_H
#define AMDLIBM_H

#include <math.h>
#include <stddef.h>

/* The functions of one and of two arguments. */
#define AMDLIBM_SCALARS(UNARY, BINARY)                                        \
    UNARY(acos) UNARY(acosh) UNARY(asin) UNARY(asinh) UNARY(atan)             \
    UNARY(atanh) UNARY(cos) UNARY(cosh) UNARY(erf) UNARY(erfc)                \
    UNARY(exp) UNARY(exp2) UNARY(expm1) UNARY(log) UNARY(log10)               \
    UNARY(log1p) UNARY(log2) UNARY(sin) UNARY(sinh) UNARY(tan) UNARY(tanh)    \
    BINARY(atan2) BINARY(pow)

#define AMDLIBM_VECTOR __attribute__((simd("notinbranch"), const))

#ifdef __cplusplus
extern "C" {
#endif

#define AMDLIBM_UNARY(name)                                                   \
    AMDLIBM_VECTOR double amd_##name(double);                                 \
    AMDLIBM_VECTOR float amd_##name##f(float);
#define AMDLIBM_BINARY(name)                                                  \
    AMDLIBM_VECTOR double amd_##name(double, double);                         \
    AMDLIBM_VECTOR float amd_##name##f(float, float);
AMDLIBM_SCALARS(AMDLIBM_UNARY, AMDLIBM_BINARY)
#undef AMDLIBM_UNARY
#undef AMDLIBM_BINARY

#ifdef REPLACE_WITH_AMDLIBM
#define AMDLIBM_UNARY(name)                                                   \
    double __REDIRECT_NTH(name, (double), amd_##name) AMDLIBM_VECTOR;         \
    float __REDIRECT_NTH(name##f, (float), amd_##name##f) AMDLIBM_VECTOR;
#define AMDLIBM_BINARY(name)                                                  \
    double __REDIRECT_NTH(name, (double, double), amd_##name) AMDLIBM_VECTOR; \
    float __REDIRECT_NTH(name##f, (float, float), amd_##name##f) AMDLIBM_VECTOR;
AMDLIBM_SCALARS(AMDLIBM_UNARY, AMDLIBM_BINARY)
#undef AMDLIBM_UNARY
#undef AMDLIBM_BINARY
#endif

void amd_vrsa_cosf(ptrdiff_t n, const float *x, float *z);
void amd_vrsa_expf(ptrdiff_t n, const float *x, float *z);
void amd_vrsa_log10f(ptrdiff_t n, const float *x, float *z);
void amd_vrsa_log2f(ptrdiff_t n, const float *x, float *z);
void amd_vrsa_logf(ptrdiff_t n, const float *x, float *z);
void amd_vrsa_sinf(ptrdiff_t n, const float *x, float *z);
/* Set z[i] to x[i]^y[i], or to x[i]^y; z may also be y. */
void amd_vrsa_powf(ptrdiff_t n, const float *x, const float *y, float *z);
void amd_vrsa_powxf(ptrdiff_t n, const float *x, float y, float *z);

void amd_vrda_cos(ptrdiff_t n, const double *x, double *z);
void amd_vrda_exp(ptrdiff_t n, const double *x, double *z);
void amd_vrda_log(ptrdiff_t n, const double *x, double *z);
void amd_vrda_log10(ptrdiff_t n, const double *x, double *z);
void amd_vrda_log2(ptrdiff_t n, const double *x, double *z);
void amd_vrda_sin(ptrdiff_t n, const double *x, double *z);

#ifdef __cplusplus
}
#endif

#endif
