/* Test the scalar functions of amdlibm in loops, under the C library's names. The
   compiler's flags select the vector variants that the loops call. The long double
   functions compute the exact results. The error must be at most 4 units in the last
   place, and at most POWF_BOUND units in test_large_powers. NaN, infinities and signed
   zeros must be equal to the exact results. */
#define REPLACE_WITH_AMDLIBM
#include <amdlibm.h>
#include <float.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifndef POWF_BOUND
#define POWF_BOUND 4
#endif

enum { N = 1 << 16 };
static const double special[] = {
    0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, INFINITY, -INFINITY, NAN, DBL_TRUE_MIN,
    -DBL_TRUE_MIN, FLT_TRUE_MIN, -FLT_TRUE_MIN, DBL_MIN, FLT_MIN / 2, DBL_MAX, -DBL_MAX, FLT_MAX,
    -FLT_MAX, 88.8, -104, 710, -746, 16777217, 4503599627370497, 1e22, -1e22,
};
enum { SPECIAL = sizeof special / sizeof *special };

static double xd[N], yd[N], zd[N];
static float xf[N], yf[N], zf[N];
static int failures;

/* Return whether got differs from exact by at most bound units in the last place.
   rounded is exact, rounded to the type. digits and least are the type's MANT_DIG and
   MIN_EXP in float.h. */
static int good(double got, long double exact, double rounded, int digits, int least, int bound)
{
    int exponent;

    if (isnan(rounded))
        return isnan(got);
    if (isinf(rounded) || (rounded == 0 && got == 0))
        return got == rounded && !signbit(got) == !signbit(rounded);
    frexp(rounded, &exponent);
    if (rounded == 0 || exponent < least)
        exponent = least;
    return fabsl(got - exact) <= bound * ldexpl(1, exponent - digits);
}

static void check(int right, const char *name, double x, double y)
{
    if (!right && failures++ < 20)
        printf("%s is wrong at (%a, %a)\n", name, x, y);
}

static uint64_t draw(void)
{
    static uint64_t state = 88172645463325252;

    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

/* Fill an operand with the special values, then with numbers from -30 to 30, random
   bits, and numbers from 0.9 to 1.1. The operand changes to the next special value after
   period elements, so that operands with the periods 1 and SPECIAL have all pairs. */
static void fill(double *operandd, float *operandf, int period)
{
    for (int i = 0; i < N; i++) {
        uint64_t bits = draw();
        uint32_t half = bits >> 32;
        double unit = bits / (double)UINT64_MAX * 2 - 1;

        operandd[i] = i % 3 == 0 ? 30 * unit : 1 + unit / 10;
        if (i < SPECIAL * SPECIAL)
            operandd[i] = special[i / period % SPECIAL];
        operandf[i] = operandd[i];
        if (i >= SPECIAL * SPECIAL && i % 3 == 1) {
            memcpy(&operandd[i], &bits, sizeof bits);
            memcpy(&operandf[i], &half, sizeof half);
        }
    }
}

/* Define a test of a function for double, and of its variant for float. */
#define TEST(name, arguments_d, arguments_f)                                                \
    static void test_##name(void)                                                           \
    {                                                                                       \
        _Pragma("GCC ivdep")                                                                \
        for (int i = 0; i < N; i++)                                                         \
            zd[i] = name arguments_d;                                                       \
        _Pragma("GCC ivdep")                                                                \
        for (int i = 0; i < N; i++)                                                         \
            zf[i] = name##f arguments_f;                                                    \
        for (int i = 0; i < N; i++) {                                                       \
            long double d = name##l arguments_d, f = name##l arguments_f;                   \
                                                                                            \
            check(good(zd[i], d, d, DBL_MANT_DIG, DBL_MIN_EXP, 4), #name, xd[i], yd[i]);    \
            check(good(zf[i], f, (float)f, FLT_MANT_DIG, FLT_MIN_EXP, 4), #name "f", xf[i], \
                  yf[i]);                                                                   \
        }                                                                                   \
    }
#define UNARY(name) TEST(name, (xd[i]), (xf[i]))
#define BINARY(name) TEST(name, (xd[i], yd[i]), (xf[i], yf[i]))
AMDLIBM_SCALARS(UNARY, BINARY)

static const double powers[] = {2, 3, -1, -2, 0.5, -0.5, 1.5, 1 / 3.0, 0.25, 10, 0, 1};
enum { POWERS = sizeof powers / sizeof *powers };

/* Test powf where the rounding error of log x has the largest effect: with y log2 x from
   -151 to 129, which is more than the range of a float's exponent. x is any positive
   float, or a number near 1 at a random distance. A third of the elements have
   exponents that programs often use. */
static void test_large_powers(void)
{
    for (int round = 0; round < 16; round++) {
        for (int i = 0; i < N; i++) {
            const uint32_t bits = 1 + draw() % 0x7f7fffff;
            const double unit = draw() / (double)UINT64_MAX;

            if (i % 3 == 0)
                xf[i] = 1 + ldexp(unit - 0.5, -(int)(draw() % 24));
            else
                memcpy(&xf[i], &bits, sizeof bits);
            yf[i] = i % 3 == 2 ? powers[i % POWERS] : (280 * unit - 151) / log2(xf[i]);
        }
        _Pragma("GCC ivdep")
        for (int i = 0; i < N; i++)
            zf[i] = powf(xf[i], yf[i]);
        for (int i = 0; i < N; i++) {
            const long double exact = powl(xf[i], yf[i]);

            check(good(zf[i], exact, (float)exact, FLT_MANT_DIG, FLT_MIN_EXP, POWF_BOUND), "powf",
                  xf[i], yf[i]);
        }
    }
}

#define CALL(name) test_##name();

int main(void)
{
    fill(xd, xf, SPECIAL);
    fill(yd, yf, 1);
    AMDLIBM_SCALARS(CALL, CALL)
    test_large_powers();
    return failures != 0;
}
