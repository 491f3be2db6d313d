/* powf on vectors. Processors with AVX2 or AVX-512 use the kernel in this file, because
   libmvec's powf takes more than twice the time. Other processors use libmvec's powf.

   The kernel computes x^y = e^(y log x) in float only, so that a vector holds the maximal
   number of lanes. It represents log x and y log x as sums of two floats.

   log x: x = 2^e m, with m in [FIRST, 2 FIRST). This interval is divided into 8 parts
   with the same number of floats, and each part has a reciprocal c. r = c m - 1 is below
   2^-4. c has so few bits that r is exact as a float. Near 1, where log x is as small as
   r, c is 1.
       log x = (e log 2 - log c) + (r - r^2/2 + r^3 P(r)), P = (P0 + P1 r + ...) / -2
   y log x = n (log 2)/8 + f, with n an integer, |f| < 0.044.
       e^(y log x) = 2^(n/8) (1 + f + f^2 Q(f)), Q = Q0 + Q1 f + Q2 f^2

   The errors of P and Q are 2^-35.9 r and 2^-32.4 of the result. They have the greatest
   effect for x from 1/2 to 2 and large |y log x|: for all floats x in this range and
   y log x = 86.9, 60, -45 or -86.9, the error is at most 0.89 units in the last place.
   For x from 0.001 to 1000 and |y| <= 100, the error is at most 0.58 units. In both ranges,
   98 of 100 results are the nearest float.

   The scalar powf computes a lane if x is not a positive normal number, or if |y log x| is
   above LARGEST or NaN. So the scalar powf handles special values and subnormal results. */
#include <immintrin.h>
#include <math.h>

/* The output of powf_constants.py. */
#define FIRST 0x1.6ap-1f
#define RECIPROCALS \
    0x1.6p+0f, 0x1.4p+0f, 0x1.3p+0f, 0x1.1p+0f, \
    0x1p+0f, 0x1.dp-1f, 0x1.ap-1f, 0x1.8p-1f
#define LOGS_HIGH \
    -0x1.4618p-2f, -0x1.c9p-3f, -0x1.5ff4p-3f, -0x1.f0ap-5f, \
    0, 0x1.9338p-4f, 0x1.a94p-3f, 0x1.2696p-2f
#define LOGS_LOW \
    -0x1.78438cp-19f, 0x1.070cacp-20f, 0x1.f1eb0ep-20f, -0x1.86008cp-20f, \
    0, -0x1.0d1536p-19f, -0x1.2c3752p-19f, 0x1.089a6ep-21f
#define LN2_HIGH 0x1.62e4p-24f
#define LN2_LOW 0x1.7f7d1cp-43f
#define P0 -0x1.555556p-1f
#define P1 0x1.ffff7cp-2f
#define P2 -0x1.99953ep-2f
#define P3 0x1.56d2aap-2f
#define P4 -0x1.288ae2p-2f
#define STEP_HIGH 0x1.62e43p-4f
#define STEP_LOW -0x1.05c61p-32f
#define ROOTS \
    0x1p+0f, 0x1.f72b84p-1f, 0x1.f06fep-1f, 0x1.ebfdaep-1f, \
    0x1.ea09e6p-1f, 0x1.eace54p-1f, 0x1.ee89fap-1f, 0x1.f5818ep-1f
#define ROOTS_LOW \
    0, -0x1.9c0c22p-27f, 0x1.125002p-25f, -0x1.0a355p-25f, \
    0x1.26055cp-26f, 0x1.67a1cap-28f, -0x1.f9c304p-27f, -0x1.a5217cp-28f
#define Q0 0x1p-1f
#define Q1 0x1.555c82p-3f
#define Q2 0x1.555a4p-5f

/* e^LARGEST and e^-LARGEST, and the floats near them, are normal numbers. */
#define LARGEST 87

#pragma GCC visibility push(hidden)

#define LANES 8
#define TARGET "avx2,fma"
#define POWF _ZGVdN8vv_own_powf
#define NAME(name) name##8
#define MM(name) _mm256_##name
#define TABLE(...) __VA_ARGS__
#define GREATER(a, b) \
    _mm256_movemask_ps((__m256)_mm256_cmpgt_epi32((__m256i)(a), (__m256i)(b)))
#include "powf.h"

#define LANES 16
#define TARGET "avx512f,avx512bw,avx512dq,avx512vl,fma"
#define POWF _ZGVeN16vv_own_powf
#define NAME(name) name##16
#define MM(name) _mm512_##name
#define TABLE(...) __VA_ARGS__, __VA_ARGS__
#define GREATER(a, b) _mm512_cmpgt_epi32_mask((__m512i)(a), (__m512i)(b))
#include "powf.h"

float own_powf(float x, float y)
{
    return powf(x, y);
}

__m128 _ZGVbN4vv_powf(__m128, __m128) __attribute__((visibility("default")));
__m128 _ZGVbN4vv_own_powf(__m128 x, __m128 y)
{
    return _ZGVbN4vv_powf(x, y);
}

__attribute__((target("avx"), visibility("default"))) __m256 _ZGVcN8vv_powf(__m256, __m256);
__attribute__((target("avx"))) __m256 _ZGVcN8vv_own_powf(__m256 x, __m256 y)
{
    return _ZGVcN8vv_powf(x, y);
}
