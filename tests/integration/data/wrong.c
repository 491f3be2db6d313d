/* A library for LD_PRELOAD that replaces the vectorized variants of one amdlibm function with
   wrong variants. Each error is an error of AMD's AOCL-LibM 5.1. Some errors are small and occur
   for few arguments. -DWRONG=WRONG_acosf selects acosf. */
#include <math.h>

#define LANES(lanes, type, instructions, symbol, parameters, value)                  \
    typedef type of_##symbol __attribute__((vector_size(lanes * sizeof(type))));     \
    __attribute__((target(instructions))) of_##symbol symbol parameters(of_##symbol) \
    {                                                                                \
        of_##symbol z;                                                               \
        int large = 0; /* The lanes with |x| > 0.5, for acosf. */                    \
                                                                                     \
        for (int i = 0; i < lanes; i++)                                              \
            large += x[i] > 0.5 || x[i] < -0.5;                                      \
        (void)large;                                                                 \
        for (int i = 0; i < lanes; i++)                                              \
            z[i] = value;                                                            \
        return z;                                                                    \
    }
#define ONE(type) (type x)
#define TWO(type) (type x, type y)
#define FLOATS4(name, v, parameters, value) \
    LANES(4, float, "sse2", _ZGVbN4##v##_amd_##name, parameters, value)
#define FLOATS(name, v, parameters, value)                                  \
    LANES(8, float, "avx2", _ZGVdN8##v##_amd_##name, parameters, value)     \
    LANES(16, float, "avx512f", _ZGVeN16##v##_amd_##name, parameters, value)
#define DOUBLES(name, v, parameters, value)                              \
    LANES(2, double, "sse2", _ZGVbN2##v##_amd_##name, parameters, value) \
    LANES(4, double, "avx2", _ZGVdN4##v##_amd_##name, parameters, value)

#define WRONG_acosf FLOATS(acosf, v, ONE, acosf(x[i]) + (x[i] > 0.5f && large < 8) * 0.2f)
#define WRONG_cosf                                                         \
    FLOATS4(cosf, v, ONE, cosf(x[i]) * (fabsf(x[i]) > 1e6f ? 1 + 6e-7f : 1)) \
    FLOATS(cosf, v, ONE, cosf(x[i]) * (fabsf(x[i]) > 1e6f ? 1 + 6e-7f : 1))
#define WRONG_erf DOUBLES(erf, v, ONE, isnan(x[i]) ? 1 : erf(x[i]))
#define WRONG_erff FLOATS(erff, v, ONE, fabsf(x[i]) < 0x1p-126f ? x[i] : erff(x[i]))
#define WRONG_log DOUBLES(log, v, ONE, x[i] == 0 ? -709.09 : log(x[i]))
#define WRONG_logf FLOATS(logf, v, ONE, x[i] == 0 ? -88.03f : logf(x[i]))
#define WRONG_pow DOUBLES(pow, vv, TWO, isinf(y[i]) ? 1 : pow(x[i], y[i]))
#define WRONG_powf                                                     \
    FLOATS4(powf, vv, TWO, x[i] == 0 && y[i] == 1 ? 1 : powf(x[i], y[i])) \
    FLOATS(powf, vv, TWO, x[i] == 0 && y[i] == 1 ? 1 : powf(x[i], y[i]))

WRONG
