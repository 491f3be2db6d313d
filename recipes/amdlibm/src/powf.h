/* Define POWF, which computes powf of LANES floats with the instructions TARGET.

   powf.c includes this file once for each number of lanes. Before each inclusion, it
   defines LANES, TARGET, POWF and these macros: NAME(name), a name that is unique to
   this inclusion; MM(name), the intrinsic for vectors of this size; TABLE(values), the
   8 values, repeated until they fill a vector; GREATER(a, b), a mask with one bit for
   each lane, set where the signed integer in a is greater than the integer in b. This
   file undefines them at its end. */
typedef float NAME(floats) __attribute__((vector_size(4 * LANES)));
typedef int NAME(ints) __attribute__((vector_size(4 * LANES)));
/* Unsigned integers, because the sums below overflow. */
typedef unsigned NAME(bits) __attribute__((vector_size(4 * LANES)));

#define FLOATS NAME(floats)
#define BITS NAME(bits)
#define FMA MM(fmadd_ps)
#define ALL MM(set1_ps)
/* Look up table[index modulo 8]. The shuffle uses the lowest 3 bits of an index, or 4 bits
   where the vector contains the table twice. */
#define LOOK_UP(table, index) __builtin_shuffle((FLOATS){TABLE(table)}, index)

/* Return z with the lanes in the mask replaced by the scalar powf's results. */
static __attribute__((noinline, cold, target(TARGET))) FLOATS
NAME(recompute)(FLOATS x, FLOATS y, FLOATS z, unsigned lanes)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);

        z[lane] = powf(x[lane], y[lane]);
    }
    return z;
}

__attribute__((target(TARGET))) FLOATS POWF(FLOATS x, FLOATS y)
{
    /* x = 2^e m. scale is 2^23 e, which is e in the position of a float's exponent bits. */
    const BITS above = (BITS)x - (BITS)ALL(FIRST);
    const BITS scale = above & (BITS)ALL(-INFINITY);
    const BITS part = above >> 20;
    const FLOATS m = (FLOATS)((BITS)x - scale);
    const FLOATS e = __builtin_convertvector((NAME(ints))scale, FLOATS);

    /* log(1 + r) = main + tail. main is r - r^2 / 2 rounded to float; tail contains the exact
       rounding error. */
    const FLOATS r = FMA(m, LOOK_UP(RECIPROCALS, part), ALL(-1));
    const FLOATS half = -0.5f * r;
    const FLOATS main = FMA(half, r, r);
    const FLOATS p2 = FMA(r, FMA(r, ALL(P4), ALL(P3)), ALL(P2));
    const FLOATS p = FMA(r, FMA(r, p2, ALL(P1)), ALL(P0));
    const FLOATS tail = FMA(half * r, p * r, FMA(half, r, r - main));

    /* log x = high + low. base is exact. Where it is not 0, it is larger than main, so that
       (base - high) + main is the exact rounding error of high = base + main. */
    const FLOATS base = FMA(e, ALL(LN2_HIGH), LOOK_UP(LOGS_HIGH, part));
    const FLOATS high = base + main;
    const FLOATS base_low = FMA(e, ALL(LN2_LOW), LOOK_UP(LOGS_LOW, part));
    const FLOATS low = ((base - high) + main) + tail + base_low;

    /* y log x = product + error = n (log 2) / 8 + f; the lowest bits of shifted contain n. */
    const FLOATS product = y * high;
    const FLOATS error = FMA(y, low, FMA(y, high, -product));
    const FLOATS exponent = product + error;
    const FLOATS shifted = FMA(exponent, ALL(1 / STEP_HIGH), ALL(0x1.8p23f));
    const FLOATS n = shifted - 0x1.8p23f;
    const FLOATS f = FMA(n, ALL(-STEP_HIGH), product) + FMA(n, ALL(-STEP_LOW), error);

    /* e^(y log x) = power (1 + q). n 2^20 is n / 8 in the position of the exponent bits.
       The fraction of n / 8 changes bits of the mantissa too; ROOTS compensate for this. */
    const FLOATS root = LOOK_UP(ROOTS, (BITS)shifted);
    const FLOATS power = (FLOATS)((BITS)root + ((BITS)shifted << 20));
    const FLOATS q = FMA(f * f, FMA(f, FMA(f, ALL(Q2), ALL(Q1)), ALL(Q0)),
                         f + LOOK_UP(ROOTS_LOW, (BITS)shifted));
    const FLOATS z = FMA(power, q, power);

    /* Compare the floats as integers: floats of the same sign keep their order, and NaN is
       above infinity. The sum overflows, so that positive normal numbers become the lowest
       integers, in their order. */
    const unsigned special =
        GREATER((BITS)x + (BITS)ALL(INFINITY), (BITS)ALL(-0x1.fffffep126f)) |
        GREATER((BITS)exponent & 0x7fffffff, (BITS)ALL(LARGEST));

    return __builtin_expect(special != 0, 0) ? NAME(recompute)(x, y, z, special) : z;
}

#undef FLOATS
#undef BITS
#undef FMA
#undef ALL
#undef LOOK_UP
#undef LANES
#undef TARGET
#undef POWF
#undef NAME
#undef MM
#undef TABLE
#undef GREATER
