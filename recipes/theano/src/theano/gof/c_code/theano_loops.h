#ifndef THEANO_LOOPS_H
#define THEANO_LOOPS_H

/* Header of modules that contain only the loops of an Elemwise or a CAReduce
 * (theano/tensor/linkers). It declares the parts of Python and NumPy that loops use:
 * g++ takes longer to parse Python's and NumPy's own headers than to compile most
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
/* Declare the functions of <math.h> that most loops call. Parsing <math.h> takes more
 * than a third of g++'s time for a small module. Each function has three overloads: for
 * float, for double, and a template that converts all other types to double. */
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

/* Runs the two innermost loops over n arrays: sizes[0] rows of sizes[1] elements.
 * data[i] is the address of array i's first element. Its rows are strides[i] bytes
 * apart, and the elements of a row are strides[n + i] bytes apart. Returns 0 on
 * success; otherwise sets an exception and returns another value. */
typedef int (*theano_loops)(char *const *data, const npy_intp *sizes,
                            const npy_intp *strides);

/* Sets n contiguous elements to the initial value of a reduction: 0 for a sum. */
typedef void (*theano_fill)(char *data, npy_intp n);

/* Describes an Elemwise or a CAReduce to thunks_ext.cpp. op_descriptions.py parses the
 * types and names of the fields from this declaration, so each field needs its own
 * line. If you change the layout, raise the c_code_cache_version of both ops: compiled
 * modules in compiledirs contain structs with the old layout. */
struct theano_elemwise_op {
    int nd;
    int n_inputs;
    int n_outputs;
    /* The number of storages that the module's function `instantiate` takes. */
    int n_storages;
    /* The value that the thunk returns on failure: CLinker's number of the op's block
     * of code. */
    int failure;
    /* The loops' arrays are the inputs, followed by the outputs that do not overwrite
     * an input. The loops are nested in the memory order of array number `like`: its
     * largest stride is the outermost loop. */
    int like;
    /* For the inputs, then for the outputs: the number of the storage among the
     * arguments of `instantiate`. */
    const int *storages;
    /* For the inputs, then for the outputs: NumPy's type number. */
    const int *types;
    /* For each output: the number of the input that it overwrites, or -1. */
    const int *overwritten;
    /* For each of the loops' arrays: a string with one character for each dimension,
     * '1' if the array is broadcast along it, otherwise '0'. */
    const char *const *broadcast;
    theano_loops loops;
    /* Whether the loops ignore the innermost strides: they assume contiguous elements,
     * and a stride of 0 for an array that is broadcast along its last dimension. */
    int assumes_contiguous;
    /* The fields from here on describe a reduction; they are 0 or NULL for an Elemwise.
     * A reduction has two arrays: the input, with nd dimensions, and the accumulator.
     * `reduced` is a string with one character for each dimension of the input, '1' if
     * the op reduces it, otherwise '0'. */
    const char *reduced;
    /* NumPy's type number of the accumulator. */
    int type;
    theano_fill fill;
    /* If a reduction of no elements is an error, the op's name for the error message,
     * such as "maximum"; otherwise NULL. */
    const char *not_empty;
};

/* Make the Python module of an op by make_module of thunks_ext.cpp. `name` and `op`
 * must exist until the process ends. Return NULL and set an exception on failure. */
static inline PyObject *theano_elemwise_module(const char *name,
                                               const theano_elemwise_op *op) {
    typedef PyObject *(*function)(const char *, const theano_elemwise_op *);
    function make =
        (function)PyCapsule_Import("theano.tensor.thunks_ext.make_module", 0);
    return make ? make(name, op) : 0;
}

#endif
