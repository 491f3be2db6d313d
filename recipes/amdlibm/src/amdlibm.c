/* glibc's vector mathematics, libmvec, under the names in amdlibm.h, powf.c's powf
   and, where the linker finds them under libmvec's names, exp_log.c's exp and log.

   libmvec errs by 4 units in the last place at most, hands special values to
   the scalar functions of libm, and chooses among its variants by processor. */
#include "amdlibm.h"

#ifndef REPLACE_WITH_AMDLIBM
/* A definition with attribute simd makes GCC define the vector variants too
   (x86-64 vector function ABI: _ZGVbN2v_amd_exp for SSE, c for AVX, d for AVX2,
   e for AVX-512). They jump to libmvec's, except SSE's of doubles, for which
   GCC 12 calls the scalar function twice: only processors from before 2011
   need them. */
#define UNARY(name)                                                           \
    AMDLIBM_VECTOR double name(double);                                       \
    AMDLIBM_VECTOR float name##f(float);                                      \
    double amd_##name(double x) { return name(x); }                           \
    float amd_##name##f(float x) { return name##f(x); }
#define BINARY(name)                                                          \
    AMDLIBM_VECTOR double name(double, double);                               \
    AMDLIBM_VECTOR float name##f(float, float);                               \
    double amd_##name(double x, double y) { return name(x, y); }              \
    float amd_##name##f(float x, float y) { return name##f(x, y); }
/* In this file too, powf and its variants are those of powf.c. */
float __REDIRECT_NTH(powf, (float, float), own_powf) AMDLIBM_VECTOR;
AMDLIBM_SCALARS(UNARY, BINARY)

#endif
/* Chosen when the library is loaded. */
#define FOR_EACH_PROCESSOR \
    __attribute__((target_clones("avx512f", "avx2", "default")))

/* ivdep: an array is the same as z or apart from it; without the pragma, GCC
   takes the scalar loop where it is the same. */
#define LOOP(value)                                                           \
    _Pragma("GCC ivdep")                                                      \
    for (ptrdiff_t i = 0; i < n; i++)                                         \
        z[i] = value;

#define ARRAY(name, type, function)                                           \
    FOR_EACH_PROCESSOR void name(ptrdiff_t n, const type *x, type *z)         \
    {                                                                         \
        LOOP(function(x[i]))                                                  \
    }
ARRAY(amd_vrsa_cosf, float, cosf)
ARRAY(amd_vrsa_expf, float, expf)
ARRAY(amd_vrsa_log10f, float, log10f)
ARRAY(amd_vrsa_log2f, float, log2f)
ARRAY(amd_vrsa_logf, float, logf)
ARRAY(amd_vrsa_sinf, float, sinf)
ARRAY(amd_vrda_cos, double, cos)
ARRAY(amd_vrda_exp, double, exp)
ARRAY(amd_vrda_log, double, log)
ARRAY(amd_vrda_log10, double, log10)
ARRAY(amd_vrda_log2, double, log2)
ARRAY(amd_vrda_sin, double, sin)

FOR_EACH_PROCESSOR void amd_vrsa_powf(ptrdiff_t n, const float *x, const float *y, float *z)
{
    LOOP(powf(x[i], y[i]))
}

FOR_EACH_PROCESSOR void amd_vrsa_powxf(ptrdiff_t n, const float *x, float y, float *z)
{
    LOOP(powf(x[i], y))
}
