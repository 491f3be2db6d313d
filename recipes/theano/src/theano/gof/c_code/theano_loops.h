#ifndef THEANO_LOOPS_H
#define THEANO_LOOPS_H

/* Header of modules that contain only the loops of an Elemwise or a CAReduce. It
 * replaces Python's and NumPy's headers, because reading these takes g++ longer than
 * compiling most loops. */

#ifndef Py_PYTHON_H
#include <stdint.h>

typedef unsigned char npy_bool;
typedef int8_t npy_int8;
typedef int16_t npy_int16;
typedef int32_t npy_int32;
typedef int64_t npy_int64;
typedef uint8_t npy_uint8;
typedef uint16_t npy_uint16;
typedef uint32_t npy_uint32;
typedef uint64_t npy_uint64;
typedef float npy_float32;
typedef double npy_float64;
typedef intptr_t npy_intp;

typedef struct _object PyObject;
extern "C" {
extern PyObject *PyExc_ZeroDivisionError;
void PyErr_SetString(PyObject *type, const char *message);
void *PyCapsule_Import(const char *name, int no_block);
}
#include "theano_functions.h"
#endif

#ifndef _MATH_H
/* The functions of <math.h> that most loops need. Reading <math.h> takes g++ longer
 * than everything else. Each has variants for float, for double, and for other types,
 * which are converted to double. */
#define THEANO_MATH_1(name)                                                            \
    extern "C" double name(double) throw();                                            \
    static inline float name(float x) {                                                \
        return __builtin_##name##f(x);                                                 \
    }                                                                                  \
    template <typename T> static inline double name(T x) {                             \
        return __builtin_##name((double)x);                                            \
    }
#define THEANO_MATH_2(name)                                                            \
    extern "C" double name(double, double) throw();                                    \
    static inline float name(float x, float y) {                                       \
        return __builtin_##name##f(x, y);                                              \
    }                                                                                  \
    template <typename T, typename U> static inline double name(T x, U y) {            \
        return __builtin_##name((double)x, (double)y);                                 \
    }
extern "C" double nan(const char *) throw();
THEANO_MATH_1(acos)
THEANO_MATH_1(acosh)
THEANO_MATH_1(asin)
THEANO_MATH_1(asinh)
THEANO_MATH_1(atan)
THEANO_MATH_1(atanh)
THEANO_MATH_1(ceil)
THEANO_MATH_1(cos)
THEANO_MATH_1(cosh)
THEANO_MATH_1(erf)
THEANO_MATH_1(erfc)
THEANO_MATH_1(exp)
THEANO_MATH_1(exp2)
THEANO_MATH_1(expm1)
THEANO_MATH_1(fabs)
THEANO_MATH_1(floor)
THEANO_MATH_1(log)
THEANO_MATH_1(log10)
THEANO_MATH_1(log1p)
THEANO_MATH_1(log2)
THEANO_MATH_1(rint)
THEANO_MATH_1(round)
THEANO_MATH_1(sin)
THEANO_MATH_1(sinh)
THEANO_MATH_1(sqrt)
THEANO_MATH_1(tan)
THEANO_MATH_1(tanh)
THEANO_MATH_1(trunc)
THEANO_MATH_2(atan2)
THEANO_MATH_2(copysign)
THEANO_MATH_2(fmod)
THEANO_MATH_2(pow)
#undef THEANO_MATH_1
#undef THEANO_MATH_2
#endif

/* The two innermost loops over n arrays: sizes[0] rows of sizes[1] elements. In array
 * i, rows are strides[i] bytes apart and elements strides[n + i] bytes. Returns 0, or
 * another value with an exception set. */
typedef int (*theano_loops)(char *const *data, const npy_intp *sizes,
                            const npy_intp *strides);

/* Sets n elements to the initial value of a reduction. */
typedef void (*theano_fill)(char *data, npy_intp n);

/* Description of an Elemwise or a CAReduce. op_descriptions.py reads the types and
 * names of the fields from here, one per line. A change needs a new version of the ops'
 * code, because modules in compile directories keep the old layout. */
struct theano_elemwise_op {
    int nd;
    int n_inputs;
    int n_outputs;
    /* The number of storages that instantiate takes. */
    int n_storages;
    /* The return value of a thunk that fails. */
    int failure;
    /* The loops' arrays are the inputs, then each output that is not one of them.
     * The loops follow the order in memory of the array with this number. */
    int like;
    /* For inputs, then outputs: the number of the storage, and NumPy's type number. */
    const int *storages;
    const int *types;
    /* The number of the input that each output overwrites, or -1. */
    const int *overwritten;
    /* For each of the loops' arrays: a '1' for each dimension along which it is
     * broadcast, otherwise '0'. */
    const char *const *broadcast;
    theano_loops loops;
    /* Whether the loops ignore the innermost strides: the elements are contiguous, or
     * the same where an array is broadcast along its last dimension. */
    int next_to;
    /* The fields from here on describe a reduction, which has two arrays: the input,
     * with nd dimensions, and the accumulator. A '1' for each reduced dimension. */
    const char *reduced;
    /* NumPy's type number of the accumulator. */
    int type;
    theano_fill fill;
    /* The op's name if a reduction of no element is an error, otherwise NULL. */
    const char *not_empty;
};

/* Return the module of an op; thunks_ext.cpp makes it. */
static inline PyObject *theano_elemwise_module(const char *name,
                                               const theano_elemwise_op *op) {
    typedef PyObject *(*function)(const char *, const theano_elemwise_op *);
    function make =
        (function)PyCapsule_Import("theano.tensor.thunks_ext.make_module", 0);
    return make ? make(name, op) : 0;
}

#endif
