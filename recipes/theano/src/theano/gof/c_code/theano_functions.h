#ifndef THEANO_FUNCTIONS_H
#define THEANO_FUNCTIONS_H

/* Exponentials and hyperbolic tangents of which g++ makes loops of several at once.
 *
 *     x = n log 2 + r, |r| <= (log 2) / 2
 *     p = e^r - 1 = r + r^2 (P0 + P1 r + ...)
 *     e^x = 2^n (p + 1)
 *     tanh x = t / (t + 2), t = e^(2 x) - 1 = 2^n p + (2^n - 1)
 *
 * Exponentials err by less than 1 unit in the last place, tangents by 2.4; glibc's by
 * 0.6 and 2.2. An element has the same bits wherever in a loop it is, on all processors
 * with fused multiply-add: there are no branches, nor operations that g++ may fuse or
 * not. The constants are recipes/theano/functions_constants.py's. */

#if defined(__FMA__) && !defined(REPLACE_WITH_AMDLIBM)

template <typename T> struct theano_format;

template <> struct theano_format<double> {
    typedef npy_int64 integer;
    enum { DIGITS = 52, BIAS = 1023, LARGEST = 800 };
    /* n + SHIFT has the integer n in its lowest bits. */
    static constexpr double SHIFT = 0x1.8p52;
    static constexpr double LOG2_E = 0x1.71547652b82fep+0;
    static constexpr double LN2 = 0x1.62e42fefa39efp-1;
    static constexpr double LN2_LOW = 0x1.abc9e3b39803fp-56;
    static double fma(double a, double b, double c) {
        return __builtin_fma(a, b, c);
    }
    static double abs(double x) {
        return __builtin_fabs(x);
    }
    static double copysign(double x, double y) {
        return __builtin_copysign(x, y);
    }
    static double series(double r, double r2) {
        const double r4 = r2 * r2;
        const double p0 = fma(r, 0x1.5555555555559p-3, 0.5);
        const double p2 = fma(r, 0x1.111111110f651p-7, 0x1.5555555555557p-5);
        const double p4 = fma(r, 0x1.a01a01b0054cbp-13, 0x1.6c16c16c1577ep-10);
        const double p6 = fma(r, 0x1.71ddf80b7def9p-19, 0x1.a01a01ab1325dp-16);
        const double p8 = fma(r, 0x1.af5f30f40dd14p-26, 0x1.27e4d1463cbf7p-22);
        const double q8 = fma(r2, 0x1.1f83dd857934cp-29, p8);
        return fma(r4, fma(r4, q8, fma(r2, p6, p4)), fma(r2, p2, p0));
    }
};

template <> struct theano_format<float> {
    typedef npy_int32 integer;
    enum { DIGITS = 23, BIAS = 127, LARGEST = 110 };
    static constexpr float SHIFT = 0x1.8p23f;
    static constexpr float LOG2_E = 0x1.715476p+0f;
    static constexpr float LN2 = 0x1.62e43p-1f;
    static constexpr float LN2_LOW = -0x1.05c61p-29f;
    static float fma(float a, float b, float c) {
        return __builtin_fmaf(a, b, c);
    }
    static float abs(float x) {
        return __builtin_fabsf(x);
    }
    static float copysign(float x, float y) {
        return __builtin_copysignf(x, y);
    }
    static float series(float r, float r2) {
        const float p0 = fma(r, 0x1.555556p-3f, 0.5f);
        const float p2 = fma(r, 0x1.110fep-7f, 0x1.5554fp-5f);
        const float p4 = fma(r, 0x1.a293d2p-13f, 0x1.6d436ap-10f);
        return fma(r2, fma(r2, p4, p2), p0);
    }
};

/* 2^n, of an integer. */
template <typename T> static inline T theano_power_of_2(T n) {
    typedef theano_format<T> format;
    const T shifted = n + (format::SHIFT + format::BIAS);
    typename format::integer bits;
    T power;
    __builtin_memcpy(&bits, &shifted, sizeof(T));
    bits <<= format::DIGITS;
    __builtin_memcpy(&power, &bits, sizeof(T));
    return power;
}

/* Return p, and n. */
template <typename T> static inline T theano_expm1_of_rest(T x, T &n) {
    typedef theano_format<T> format;
    n = format::fma(x, format::LOG2_E, format::SHIFT) - format::SHIFT;
    const T high = format::fma(-n, format::LN2, x);
    const T r = format::fma(-n, format::LN2_LOW, high);
    const T left = format::fma(-n, format::LN2_LOW, high - r);
    const T r2 = r * r;
    return format::fma(r2, format::series(r, r2), left) + r;
}

template <typename T> static inline T theano_exp_of(T x) {
    typedef theano_format<T> format;
    /* NaN stays. */
    const T below = x > format::LARGEST ? (T)format::LARGEST : x;
    const T inside = below < -format::LARGEST ? (T)-format::LARGEST : below;
    T n;
    const T p = theano_expm1_of_rest(inside, n);
    /* In two parts, as n is larger than exponents are. */
    const T half = format::fma(n, 0.5, format::SHIFT) - format::SHIFT;
    const T power = theano_power_of_2(half);
    /* A product could be fused with what the caller adds to it. */
    return format::fma(format::fma(p, power, power), theano_power_of_2(n - half), 0);
}

template <typename T> static inline T theano_tanh_of(T x) {
    typedef theano_format<T> format;
    const T twice = format::abs(x) + format::abs(x);
    T n;
    /* From 44 on it is 1. */
    const T p = theano_expm1_of_rest(twice > 44 ? (T)44 : twice, n);
    const T power = theano_power_of_2(n);
    const T t = format::fma(p, power, power - 1);
    return format::copysign(t / (t + 2), x);
}

static inline float theano_exp(float x) {
    return theano_exp_of(x);
}
static inline float theano_tanh(float x) {
    return theano_tanh_of(x);
}
template <typename T> static inline double theano_exp(T x) {
    return theano_exp_of((double)x);
}
template <typename T> static inline double theano_tanh(T x) {
    return theano_tanh_of((double)x);
}

#else
#define theano_exp exp
#define theano_tanh tanh
#endif

#endif
