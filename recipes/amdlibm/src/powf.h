/* powf of LANES floats at once: POWF, for TARGET.

   Included by powf.c once for each number of lanes, with these macros defined:
   NAME(name) is a name of this inclusion's own, MM(name) an intrinsic of its
   vectors, TABLE(values) the 8 values as often as they fill a vector, and
   GREATER(a, b) the lanes, one bit each, whose signed integer in a is above b's.
   They are undefined again at the end. */
typedef float NAME(floats) __attribute__((vector_size(4 * LANES)));
typedef int NAME(ints) __attribute__((vector_size(4 * LANES)));
/* Unsigned, for sums that overflow. */
typedef unsigned NAME(bits) __attribute__((vector_size(4 * LANES)));

#define FLOATS NAME(floats)
#define BITS NAME(bits)
#define FMA MM(fmadd_ps)
#define ALL MM(set1_ps)
/* The 3 lowest bits of an index count, or 4, where the table is in the vector twice. */
#define LOOK_UP(table, index) __builtin_shuffle((FLOATS){TABLE(table)}, index)

/* z with what powf makes of those lanes. */
static __attribute__((noinline, cold, target(TARGET))) FLOATS
NAME(mend)(FLOATS x, FLOATS y, FLOATS z, unsigned lanes)
{
    for (; lanes != 0; lanes &= lanes - 1) {
        const int lane = __builtin_ctz(lanes);

        z[lane] = powf(x[lane], y[lane]);
    }
    return z;
}

__attribute__((target(TARGET))) FLOATS POWF(FLOATS x, FLOATS y)
{
    /* x = 2^e m; scale is e in the bits of a float's exponent, 2^23 e. */
    const BITS above = (BITS)x - (BITS)ALL(FIRST);
    const BITS scale = above & (BITS)ALL(-INFINITY);
    const BITS part = above >> 20;
    const FLOATS m = (FLOATS)((BITS)x - scale);
    const FLOATS e = __builtin_convertvector((NAME(ints))scale, FLOATS);

    /* log(1 + r) = main + rest; main is r - r^2 / 2 rounded, by what rest knows exactly. */
    const FLOATS r = FMA(m, LOOK_UP(RECIPROCALS, part), ALL(-1));
    const FLOATS half = -0.5f * r;
    const FLOATS main = FMA(half, r, r);
    const FLOATS p2 = FMA(r, FMA(r, ALL(P4), ALL(P3)), ALL(P2));
    const FLOATS p = FMA(r, FMA(r, p2, ALL(P1)), ALL(P0));
    const FLOATS rest = FMA(half * r, p * r, FMA(half, r, r - main));

    /* log x = high + low. base is not rounded; where it is not 0, it is larger than
       main, so that (base - high) + main is all that high lacks of their sum. */
    const FLOATS base = FMA(e, ALL(LN2_HIGH), LOOK_UP(LOGS_HIGH, part));
    const FLOATS high = base + main;
    const FLOATS base_low = FMA(e, ALL(LN2_LOW), LOOK_UP(LOGS_LOW, part));
    const FLOATS low = ((base - high) + main) + rest + base_low;

    /* y log x = product + error = n (log 2) / 8 + f; n is the lowest bits of shifted. */
    const FLOATS product = y * high;
    const FLOATS error = FMA(y, low, FMA(y, high, -product));
    const FLOATS exponent = product + error;
    const FLOATS shifted = FMA(exponent, ALL(1 / STEP_HIGH), ALL(0x1.8p23f));
    const FLOATS n = shifted - 0x1.8p23f;
    const FLOATS f = FMA(n, ALL(-STEP_HIGH), product) + FMA(n, ALL(-STEP_LOW), error);

    /* e^(y log x) = power (1 + q). n 2^20 is n / 8 in the place of the exponent;
       what its fraction adds to the bits, ROOTS lack. */
    const FLOATS root = LOOK_UP(ROOTS, (BITS)shifted);
    const FLOATS power = (FLOATS)((BITS)root + ((BITS)shifted << 20));
    const FLOATS q = FMA(f * f, FMA(f, FMA(f, ALL(Q2), ALL(Q1)), ALL(Q0)),
                         f + LOOK_UP(ROOTS_LOW, (BITS)shifted));
    const FLOATS z = FMA(power, q, power);

    /* As integers, floats of one sign have their order, and NaN is above infinity.
       The sum's overflow leaves positive normal numbers, in order, at the bottom. */
    const unsigned others =
        GREATER((BITS)x + (BITS)ALL(INFINITY), (BITS)ALL(-0x1.fffffep126f)) |
        GREATER((BITS)exponent & 0x7fffffff, (BITS)ALL(LARGEST));

    return __builtin_expect(others != 0, 0) ? NAME(mend)(x, y, z, others) : z;
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
