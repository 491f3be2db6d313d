#ifndef THEANO_FUNCTIONS_H
#define THEANO_FUNCTIONS_H

/* In place of the C library's functions, those of libtheano_functions, of which g++
 * calls variants for several elements at once in loops that it vectorises. They keep
 * the names: only of functions that are built in, g++ computes what a branch may not
 * need. The C library's are called libm_exp and so on. Ours need fused multiply-add,
 * and leave the place to amdlibm's, and to the C library's where THEANO_LIBM is
 * defined. */

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
