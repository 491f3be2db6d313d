/* The functions of amdlibm.h, implemented by glibc's vector library libmvec, by powf.c
   and by exp_log.c. exp_log.c defines exp and log under libmvec's names, so that the
   linker uses them instead of libmvec's.

   libmvec's error is at most 4 units in the last place. libmvec calls the scalar
   functions of libm for special values, and selects its variants for the processor. */
#include "amdlibm.h"

#ifndef REPLACE_WITH_AMDLIBM
/* A definition with attribute simd makes GCC define the vector variants too
   (x86-64 vector function ABI: _ZGVbN2v_amd_exp for SSE, c for AVX, d for AVX2,
   e for AVX-512). These jump to libmvec's variants. The exception is SSE's variant
   for doubles, where GCC 12 calls the scalar function twice; only processors from
   before 2011 use it. */
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
/* Use powf.c's powf and vector variants in this file too. */
float __REDIRECT_NTH(powf, (float, float), own_powf) AMDLIBM_VECTOR;
AMDLIBM_SCALARS(UNARY, BINARY)

#endif
/* The dynamic linker selects a clone when it loads the library. */
#define FOR_EACH_PROCESSOR \
    __attribute__((target_clones("avx512f", "avx2", "default")))

/* The pragma ivdep is correct because each input array is z or does not overlap z.
   Without the pragma, GCC runs a scalar loop if an input array is z. */
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
