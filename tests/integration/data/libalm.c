/* A stand-in for AMD's libalm.so: some of its functions under AMD's names, which
   count the elements that they compute. It has no erf, no float pow of 16 lanes,
   and no array function that may be called. */
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>

long scalars, lanes;

#define SCALAR(name, type) \
    type amd_##name(type x) { scalars++; return name(x); }
#define VECTOR(prefix, count, name, type, vector, instructions)                     \
    __attribute__((target(instructions))) vector amd_##prefix##_##name(vector x)    \
    {                                                                               \
        union { vector all; type each[count]; } value = {x};                        \
                                                                                    \
        lanes += count;                                                             \
        for (int i = 0; i < count; i++)                                             \
            value.each[i] = name(value.each[i]);                                    \
        return value.all;                                                           \
    }
#define FUNCTION(name)                                        \
    SCALAR(name, double) SCALAR(name##f, float)               \
    VECTOR(vrd2, 2, name, double, __m128d, "sse2")            \
    VECTOR(vrs4, 4, name##f, float, __m128, "sse2")           \
    VECTOR(vrd4, 4, name, double, __m256d, "avx2")            \
    VECTOR(vrs8, 8, name##f, float, __m256, "avx2")           \
    VECTOR(vrd8, 8, name, double, __m512d, "avx512f")         \
    VECTOR(vrs16, 16, name##f, float, __m512, "avx512f")
FUNCTION(exp)
FUNCTION(log)
FUNCTION(tanh)

double amd_pow(double x, double y) { scalars++; return pow(x, y); }

/* What counts with int must not be called with npy_intp. */
void amd_vrsa_expf(int n, float *x, float *z) { (void)n, (void)x, (void)z; abort(); }
void amd_vrda_exp(int n, double *x, double *z) { (void)n, (void)x, (void)z; abort(); }
