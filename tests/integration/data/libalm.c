/* A fake of libalm.so, the library of AMD's AOCL-LibM. Its functions have AMD's names.
   "scalars" counts the calls of scalar functions. "lanes" counts the elements that
   vectorized functions compute.

   The library lacks erf and vectorized pow. Its array functions abort when called.
   Three vectorized functions are wrong:
   log and logf return -709 for 0;
   tanhf returns 1 if the survey emulates a Zen 2 processor;
   sinh returns 1 if the environment variable ELSEWHERE is set. The variable stands for
   a processor that the survey did not emulate. */
#include <immintrin.h>
#include <math.h>
#include <stdlib.h>

long scalars, lanes;

int au_cpuid_arch_is_zen2(unsigned cpu)
{
    (void)cpu;
    return 0;
}

static double wrong_for_zero(double x) { return x == 0 ? -709 : log(x); }
static double wrong_on_zen2(double x) { return au_cpuid_arch_is_zen2(0) ? 1 : tanh(x); }
static double wrong_elsewhere(double x) { return getenv("ELSEWHERE") ? 1 : sinh(x); }

#define SCALAR(name, type)                                                        \
    type amd_##name(type x) { scalars++; return name(x); }
#define VECTOR(prefix, count, name, type, vector, instructions, function)         \
    __attribute__((target(instructions))) vector amd_##prefix##_##name(vector x)  \
    {                                                                             \
        union { vector all; type lane[count]; } value = {x};                      \
                                                                                  \
        lanes += count;                                                           \
        for (int i = 0; i < count; i++)                                           \
            value.lane[i] = function(value.lane[i]);                              \
        return value.all;                                                         \
    }
#define FUNCTION(name, value, valuef)                                             \
    SCALAR(name, double) SCALAR(name##f, float)                                   \
    VECTOR(vrd2, 2, name, double, __m128d, "sse2", value)                         \
    VECTOR(vrs4, 4, name##f, float, __m128, "sse2", valuef)                       \
    VECTOR(vrd4, 4, name, double, __m256d, "avx2", value)                         \
    VECTOR(vrs8, 8, name##f, float, __m256, "avx2", valuef)                       \
    VECTOR(vrd8, 8, name, double, __m512d, "avx512f", value)                      \
    VECTOR(vrs16, 16, name##f, float, __m512, "avx512f", valuef)
FUNCTION(exp, exp, expf)
FUNCTION(log, wrong_for_zero, wrong_for_zero)
FUNCTION(sinh, wrong_elsewhere, sinhf)
FUNCTION(tanh, tanh, wrong_on_zen2)

double amd_pow(double x, double y) { scalars++; return pow(x, y); }

/* Theano must not call AMD's array functions: they take the number of elements as an int,
   and Theano has an npy_intp. */
void amd_vrsa_expf(int n, float *x, float *z) { (void)n, (void)x, (void)z; abort(); }
void amd_vrda_exp(int n, double *x, double *z) { (void)n, (void)x, (void)z; abort(); }
