#ifndef THEANO_LOOPS_H
#define THEANO_LOOPS_H

/* What a module is made of that has nothing but the loops of an Elemwise. It needs
 * none of Python's and NumPy's headers: g++ reads them longer than it compiles most
 * loops. */

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
/* What most loops need of <math.h>, which takes g++ longer than all the rest: for
 * float, double, and others as double. */
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

/* The two innermost loops of an Elemwise: sizes[1] elements, sizes[0] times, of
 * n arrays. In bytes, their strides are strides[n + i] and strides[i]. The result
 * is 0, or an exception is set. */
typedef int (*theano_loops)(char *const *data, const npy_intp *sizes,
                            const npy_intp *strides);

/* An Elemwise, or a CAReduce. A change of this needs a new version of their code, as
 * it is read from modules that were compiled before. */
struct theano_elemwise_op {
    int nd, n_inputs, n_outputs;
    /* How many storages instantiate takes; what a thunk returns if it fails. */
    int n_storages, failure;
    /* The loops' arrays are the inputs, then each output that is not one of them.
     * The loops follow the order in memory of the array with this number. */
    int like;
    /* Of inputs, then outputs: the number of the storage, and NumPy's of the type. */
    const int *storages, *types;
    /* The number of the input that each output overwrites, or -1. */
    const int *overwritten;
    /* Of the loops' arrays: along which dimensions they are broadcast, as '1'. */
    const char *const *broadcast;
    theano_loops loops;
    /* Whether the loops take each element for the one next to the last, or for the
     * same where an array is broadcast along its last dimension, whatever the innermost
     * strides are. */
    int next_to;
    /* What follows is of a reduction, which has two arrays, the input, with nd
     * dimensions, and what is accumulated: along which of them, as '1'; NumPy's number
     * of the type, and what sets n of it to the value before the first element. A
     * name, if it is an error that there is no element. */
    const char *reduced;
    int type;
    void (*fill)(char *data, npy_intp n);
    const char *not_empty;
};

/* Return the module of an Elemwise, which thunks_ext.cpp makes. */
static inline PyObject *theano_elemwise_module(const char *name,
                                               const theano_elemwise_op *op) {
    typedef PyObject *(*function)(const char *, const theano_elemwise_op *);
    function make =
        (function)PyCapsule_Import("theano.tensor.thunks_ext.make_module", 0);
    return make ? make(name, op) : 0;
}

#endif
