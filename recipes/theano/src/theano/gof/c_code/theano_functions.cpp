/* libtheano_functions: exp, log, log1p, pow and tanh for loops that g++ vectorizes.
 * theano_functions.h declares the functions.
 *
 * The code of a function computes one element without branches. From this code, g++
 * also generates SIMD variants that compute several elements. All variants give the
 * same bits: with -ffp-contract=off, g++ fuses a product and a sum only for calls of
 * fma. Errors are below 1 unit in the last place, and below 2.4 units for tanh.
 * recipes/theano/functions_constants.py prints the constants. */

#include <stdint.h>

#define INLINE static inline __attribute__((always_inline))

template <typename T> struct format;

template <> struct format<double> {
    typedef uint64_t bits;
    enum { DIGITS = 52, BIAS = 1023 };
    /* If |x| exceeds LARGEST, e^x is 0 or infinite. */
    static constexpr double LARGEST = 800;
    /* The smallest normal number, and the square root of 1/2. */
    static constexpr double NORMAL = 0x1p-1022, ROOT_HALF = 0x1.6a09e667f3bcdp-1;
    /* Let n be an integer that is small compared with 2^DIGITS. The lowest bits of the
       number n + SHIFT are n in two's complement. If n >= 0, the lowest bits of the
       number n + FIRST are n. */
    static constexpr double SHIFT = 0x1.8p52, FIRST = 0x1p52;
    static constexpr double LOG2_E = 0x1.71547652b82fep+0;
    /* log 2 = LN2 + LN2_LOW, with twice the digits of the type. */
    static constexpr double LN2 = 0x1.62e42fefa39efp-1;
    static constexpr double LN2_LOW = 0x1.abc9e3b39803fp-56;
    /* log 2 = LN2_SHORT + LN2_REST. Products of LN2_SHORT and exponents are exact. */
    static constexpr double LN2_SHORT = 0x1.62e42fefa38p-1;
    static constexpr double LN2_REST = 0x1.ef35793c7673p-45;
};

template <> struct format<float> {
    typedef uint32_t bits;
    enum { DIGITS = 23, BIAS = 127 };
    static constexpr float LARGEST = 110;
    static constexpr float NORMAL = 0x1p-126f, ROOT_HALF = 0x1.6a09e6p-1f;
    static constexpr float SHIFT = 0x1.8p23f, FIRST = 0x1p23f;
    static constexpr float LOG2_E = 0x1.715476p+0f;
    static constexpr float LN2 = 0x1.62e43p-1f;
    static constexpr float LN2_LOW = -0x1.05c61p-29f;
    static constexpr float LN2_SHORT = 0x1.62e4p-1f;
    static constexpr float LN2_REST = 0x1.7f7d1cp-20f;
};

INLINE double fma(double a, double b, double c) {
    return __builtin_fma(a, b, c);
}
INLINE float fma(float a, float b, float c) {
    return __builtin_fmaf(a, b, c);
}
INLINE double abs(double x) {
    return __builtin_fabs(x);
}
INLINE float abs(float x) {
    return __builtin_fabsf(x);
}
INLINE double copysign(double x, double y) {
    return __builtin_copysign(x, y);
}
INLINE float copysign(float x, float y) {
    return __builtin_copysignf(x, y);
}
INLINE uint64_t as_bits(double x) {
    uint64_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
INLINE uint32_t as_bits(float x) {
    uint32_t bits;
    __builtin_memcpy(&bits, &x, sizeof bits);
    return bits;
}
INLINE double as_number(uint64_t bits) {
    double x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}
INLINE float as_number(uint32_t bits) {
    float x;
    __builtin_memcpy(&x, &bits, sizeof x);
    return x;
}

/* Return (e^r - 1 - r) / r^2 for |r| <= (log 2) / 2; r2 is r^2. */
INLINE double exp_series(double r, double r2) {
    const double p0 = fma(r, 0x1.5555555555559p-3, 0.5);
    const double p2 = fma(r, 0x1.111111110f651p-7, 0x1.5555555555557p-5);
    const double p4 = fma(r, 0x1.a01a01b0054cbp-13, 0x1.6c16c16c1577ep-10);
    const double p6 = fma(r, 0x1.71ddf80b7def9p-19, 0x1.a01a01ab1325dp-16);
    const double p8 = fma(r, 0x1.af5f30f40dd14p-26, 0x1.27e4d1463cbf7p-22);
    const double q8 = fma(r2, 0x1.1f83dd857934cp-29, p8);
    const double r4 = r2 * r2;
    return fma(r4, fma(r4, q8, fma(r2, p6, p4)), fma(r2, p2, p0));
}
INLINE float exp_series(float r, float r2) {
    const float p0 = fma(r, 0x1.555556p-3f, 0.5f);
    const float p2 = fma(r, 0x1.110fep-7f, 0x1.5554fp-5f);
    const float p4 = fma(r, 0x1.a293d2p-13f, 0x1.6d436ap-10f);
    return fma(r2, fma(r2, p4, p2), p0);
}

/* Return (atanh s / s - 1 - z / 3) / z^2 for z = s^2 and
 * |s| <= (sqrt 2 - 1) / (sqrt 2 + 1). */
INLINE double log_series(double z) {
    const double p0 = fma(z, 0x1.249249249242fp-3, 0x1.999999999999ap-3);
    const double p2 = fma(z, 0x1.745d17479031bp-4, 0x1.c71c71c71a94bp-4);
    const double p4 = fma(z, 0x1.1110fc1dde059p-4, 0x1.3b13b152b1344p-4);
    const double p6 = fma(z, 0x1.aff63a1452e06p-5, 0x1.e1e0e1c3ae72p-5);
    const double z2 = z * z;
    const double q4 = fma(z2, fma(z2, 0x1.885076e1e0084p-5, p6), p4);
    return fma(z2, fma(z2, q4, p2), p0);
}
INLINE float log_series(float z) {
    return fma(z, fma(z, 0x1.c7807cp-4f, 0x1.24b672p-3f), 0x1.999996p-3f);
}

/* Return 2^n for an integer n; 2^n must be a normal number. */
template <typename T> INLINE T power_of_2(T n) {
    typedef format<T> f;
    return as_number(as_bits(n + (f::SHIFT + f::BIAS)) << f::DIGITS);
}

/* Write x + low as n log 2 + r + r_low, where n is an integer and |r| <= (log 2) / 2.
 * Set n and q, and return r; q satisfies e^(r + r_low) = 1 + r + q. */
template <typename T> INLINE T exp_parts(T x, T low, T &n, T &q) {
    typedef format<T> f;
    n = fma(x, f::LOG2_E, f::SHIFT) - f::SHIFT;
    const T main = fma(-n, f::LN2, x);
    const T correction = fma(-n, f::LN2_LOW, low);
    const T r = main + correction;
    const T r_low = (main - r) + correction;
    const T r2 = r * r;
    q = fma(r2, exp_series(r, r2), fma(r_low, r, r_low));
    return r;
}

/* Return e^(x + low). */
template <typename T> INLINE T exp_of(T x, T low) {
    typedef format<T> f;
    /* Both comparisons are false for NaN, so NaN stays NaN. */
    const T below = x > f::LARGEST ? f::LARGEST : x;
    const T inside = below < -f::LARGEST ? -f::LARGEST : below;
    T n, q;
    const T r = exp_parts(inside, low, n, q);
    const T main = 1 + r;
    const T fraction = main + ((1 - main) + r + q);
    /* Multiply by 2^n in two steps, because n can exceed the range of exponents. */
    const T half = fma(n, (T)0.5, f::SHIFT) - f::SHIFT;
    return fraction * power_of_2(half) * power_of_2(n - half);
}

/* Return tanh x: t / (t + 2) for t = e^(2 |x|) - 1, with the sign of x. */
template <typename T> INLINE T tanh_of(T x) {
    const T twice = abs(x) + abs(x);
    T n, q;
    /* The result rounds to 1 if 2 |x| >= 44. */
    const T r = exp_parts(twice > 44 ? (T)44 : twice, (T)0, n, q);
    const T power = power_of_2(n);
    const T t = fma(q + r, power, power - 1);
    return copysign(t / (t + 2), x);
}

/* Write a positive, finite x as 2^e m, with m from sqrt 1/2 to sqrt 2. Set e, and
 * return m. */
template <typename T> INLINE T log_parts(T x, T &e) {
    typedef format<T> f;
    typedef typename f::bits bits;
    const bool subnormal = x < f::NORMAL;
    const T normal = subnormal ? x * f::FIRST : x;
    /* `above` is e in two's complement, in the bits above the digits: 12 bits for
       double, 9 bits for float. `above ^ added` is e + added, which is positive. */
    const bits above = (as_bits(normal) - as_bits(f::ROOT_HALF)) >> f::DIGITS;
    const bits added = 2 * (f::BIAS + 1);
    const T shifted = as_number(as_bits(f::FIRST) | (above ^ added));
    e = shifted - (f::FIRST + added) - (subnormal ? (T)f::DIGITS : 0);
    return as_number(as_bits(normal) - (above << f::DIGITS));
}

/* Return log (2^e (1 + g)) + correction. With s = g / (2 + g) and z = s^2:
 * log (1 + g) = 2 atanh s = g - g^2/2 + s (g^2/2 + 2 z/3 + 2 z^2/5 + ...) */
template <typename T> INLINE T log_of_parts(T e, T g, T correction) {
    typedef format<T> f;
    const T s = g / (2 + g);
    const T z = s * s;
    const T tail = 2 * z * fma(z, log_series(z), (T)(1.0 / 3));
    const T half = (T)0.5 * g * g;
    const T low = fma(e, f::LN2_REST, correction);
    return fma(e, f::LN2_SHORT, g - (half - fma(s, half + tail, low)));
}

/* Return y, which must be log x if x is positive and finite. For other x, return -inf
 * for 0, NaN for negative numbers, and x for infinity and NaN. */
template <typename T> INLINE T log_or_special(T x, T y) {
    const T inf = __builtin_inf();
    const T finite = x < inf ? y : x;
    const T positive = x < 0 ? (T)__builtin_nan("") : finite;
    return x == 0 ? -inf : positive;
}

template <typename T> INLINE T log_of(T x) {
    T e;
    const T m = log_parts(x, e);
    return log_or_special(x, log_of_parts(e, m - 1, (T)0));
}

template <typename T> INLINE T log1p_of(T x) {
    typedef format<T> f;
    const T u = 1 + x;
    const T lost = abs(x) < 1 ? x - (u - 1) : 1 - (u - x);
    T e;
    const T main = log_parts(u, e) - 1;
    /* For larger e, the rounding error `lost` of u is negligible. */
    const T more = lost * power_of_2(e < f::BIAS ? -e : (T)(1 - f::BIAS));
    const T g = main + more;
    /* copysign makes log1p(-0) = -0. */
    return copysign(log_or_special(u, log_of_parts(e, g, (main - g) + more)), x);
}

/* Compute y log a for a positive, finite a as the sum of two numbers. Set `low` to the
 * smaller number, and return the larger number. The relative error of log a is 2^-66:
 * each intermediate value is exact, or has a second variable, with the suffix _low,
 * for its rounding error. */
INLINE double times_log(double y, double a, double &low) {
    typedef format<double> f;
    double e;
    const double m = log_parts(a, e);
    const double g = m - 1;
    const double d = m + 1, d_low = m - (d - 1);
    const double inverse = 1 / d;
    const double s = g * inverse;
    const double s_low = fma(-s, d_low, fma(-s, d, g)) * inverse;
    const double z = s * s;
    const double z_low = fma(2 * s, s_low, fma(s, s, -z));
    /* t = z/3 + z^2/5 + ... */
    const double third = 0x1.5555555555555p-2, third_low = 0x1.5555555555555p-56;
    const double t1 = z * third;
    const double t1_low = fma(z, third_low, fma(z_low, third, fma(z, third, -t1)));
    const double z2 = z * z, z2_low = fma(2 * z, z_low, fma(z, z, -z2));
    const double series = log_series(z);
    const double t2 = z2 * series;
    const double t2_low = fma(z2_low, series, fma(z2, series, -t2));
    const double t = t1 + t2;
    const double t_low = ((t1 - t) + t2) + (t1_low + t2_low);
    /* log (1 + g) = 2 s (1 + t) */
    const double p = 2 * s * t;
    const double p_low = fma(2 * s, t, -p) + 2 * fma(s, t_low, s_low * t);
    const double n = e * f::LN2_SHORT;
    const double n_s = n + 2 * s, n_s_low = (n - n_s) + 2 * s;
    const double n_s_p = n_s + p, n_s_p_low = (n_s - n_s_p) + p;
    const double tail = fma(e, f::LN2_REST, n_s_low + n_s_p_low + p_low + 2 * s_low);
    const double log_a = n_s_p + tail, log_a_low = (n_s_p - log_a) + tail;
    const double product = y * log_a;
    low = fma(y, log_a_low, fma(y, log_a, -product));
    return product;
}

/* Return x^y for z = |x|^y, with the special cases of the C standard's annex F. */
INLINE double pow_or_special(double x, double y, double z) {
    const double inf = __builtin_inf(), a = abs(x);
    const bool is_integer = __builtin_rint(y) == y;
    const bool is_odd = is_integer & (2 * __builtin_rint(y / 2) != y);
    const bool is_undefined = (x < 0) & (a < inf) & !is_integer;
    const bool is_one = (y == 0) | (x == 1) | ((a == 1) & (abs(y) == inf));
    const double power = is_undefined ? __builtin_nan("") : copysign(z, is_odd ? x : 1);
    return is_one ? 1 : power;
}

INLINE double pow_of(double x, double y) {
    const double a = abs(x);
    double low;
    const double finite = times_log(y, a, low);
    const double special = y * log_or_special(a, 0.);
    const bool is_finite = (a > 0) & (a < __builtin_inf());
    const double product = is_finite ? finite : special;
    const bool inside = is_finite & (abs(product) < format<double>::LARGEST);
    return pow_or_special(x, y, exp_of(product, inside ? low : 0));
}

INLINE float pow_of(float x, float y) {
    return pow_or_special(x, y, exp_of(y * log_of(abs((double)x)), 0.));
}

#define VECTORIZED extern "C" __attribute__((simd("notinbranch")))

VECTORIZED double theano_exp(double x) {
    return exp_of(x, 0.);
}
VECTORIZED float theano_expf(float x) {
    return exp_of(x, 0.f);
}
VECTORIZED double theano_log(double x) {
    return log_of(x);
}
VECTORIZED float theano_logf(float x) {
    return log_of(x);
}
VECTORIZED double theano_log1p(double x) {
    return log1p_of(x);
}
VECTORIZED float theano_log1pf(float x) {
    return log1p_of(x);
}
VECTORIZED double theano_pow(double x, double y) {
    return pow_of(x, y);
}
VECTORIZED float theano_powf(float x, float y) {
    return pow_of(x, y);
}
VECTORIZED double theano_tanh(double x) {
    return tanh_of(x);
}
VECTORIZED float theano_tanhf(float x) {
    return tanh_of(x);
}
