#ifndef THEANO_FUNCTIONS_H
#define THEANO_FUNCTIONS_H

/* Replace exp, log, log1p, pow and tanh of the C library by the functions of
 * libtheano_functions. That library also has SIMD variants, which g++ calls in
 * vectorized loops.
 *
 * The replacements keep their names, because g++ treats functions with these names as
 * built-in: a conditional that calls another function is not vectorized. The C
 * library's own functions get the names libm_exp, libm_log and so on.
 *
 * Nothing is replaced if g++ may not use fused multiply-add, if amdlibm is used,
 * or if THEANO_LIBM is defined. */

#if defined(__FMA__) && !defined(REPLACE_WITH_AMDLIBM) && !defined(THEANO_LIBM)

#define THEANO_SAME(type, name, arguments)                                             \
    extern "C" type name arguments throw() __asm__("theano_" #name)                    \
        __attribute__((simd("notinbranch"), const));                                   \
    extern "C" type libm_##name arguments throw() __asm__(#name)
#define THEANO_FUNCTION_1(name)                                                        \
    THEANO_SAME(double, name, (double));                                               \
    THEANO_SAME(float, name##f, (float));                                              \
    static inline float libm_##name(float x) {                                         \
        return libm_##name##f(x);                                                      \
    }                                                                                  \
    template <typename T> static inline double libm_##name(T x) {                      \
        return libm_##name((double)x);                                                 \
    }
#define THEANO_FUNCTION_2(name)                                                        \
    THEANO_SAME(double, name, (double, double));                                       \
    THEANO_SAME(float, name##f, (float, float));                                       \
    static inline float libm_##name(float x, float y) {                                \
        return libm_##name##f(x, y);                                                   \
    }                                                                                  \
    template <typename T, typename U> static inline double libm_##name(T x, U y) {     \
        return libm_##name((double)x, (double)y);                                      \
    }
THEANO_FUNCTION_1(exp)
THEANO_FUNCTION_1(log)
THEANO_FUNCTION_1(log1p)
THEANO_FUNCTION_1(tanh)
THEANO_FUNCTION_2(pow)
#undef THEANO_SAME
#undef THEANO_FUNCTION_1
#undef THEANO_FUNCTION_2

#else
#define libm_exp exp
#define libm_log log
#define libm_log1p log1p
#define libm_pow pow
#define libm_tanh tanh
#endif

#endif
