/* What ops of cuDNN have in common. */
#ifndef THEANO_DNN_COMMON_H
#define THEANO_DNN_COMMON_H

#include <Python.h>
#include <cudnn.h>
#include <gpuarray/types.h>

/* Whether cuDNN failed to do what; the exception is set then. */
static inline int dnn_check(cudnnStatus_t err, const char *what) {
    if (err == CUDNN_STATUS_SUCCESS)
        return 0;
    PyErr_Format(PyExc_RuntimeError, "cuDNN could not %s: %s", what,
                 cudnnGetErrorString(err));
    return -1;
}

/* Since cuDNN 8 the default is to round float32 to TF32, of 10 bits, on devices that
 * have it. */
static inline cudnnMathType_t c_default_math_type(int typecode) {
#ifndef THEANO_DNN_TF32
    if (typecode == GA_FLOAT)
        return CUDNN_FMA_MATH;
#endif
    return CUDNN_DEFAULT_MATH;
}

/* Of the algorithms that cuDNN found, the fastest first, the first that works with so
 * much memory. */
template <typename AlgoPerf, typename Algo>
static cudnnStatus_t c_choose_algo(const AlgoPerf *found, int count, size_t limit,
                                   Algo *algo) {
    for (int i = 0; i < count; i++) {
        if (found[i].status == CUDNN_STATUS_SUCCESS && found[i].memory <= limit) {
            *algo = found[i].algo;
            return CUDNN_STATUS_SUCCESS;
        }
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
}

#endif
