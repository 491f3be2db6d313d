/* Helpers of the ops that call cuDNN: check a status, choose the math type, and choose
 * an algorithm. */
#ifndef THEANO_DNN_COMMON_H
#define THEANO_DNN_COMMON_H

#include <Python.h>
#include <cudnn.h>
#include <gpuarray/types.h>

/* Return 0 if `err` is CUDNN_STATUS_SUCCESS. Otherwise set a RuntimeError that names
 * the failed action `what`, such as "run an RNN", and return -1. */
static inline int dnn_check(cudnnStatus_t err, const char *what) {
    if (err == CUDNN_STATUS_SUCCESS)
        return 0;
    PyErr_Format(PyExc_RuntimeError, "cuDNN could not %s: %s", what,
                 cudnnGetErrorString(err));
    return -1;
}

/* Return cuDNN's math type for elements of a libgpuarray typecode. On devices with
 * TF32, cuDNN 8 and newer round float32 to TF32 (10 bits) by default. This function
 * prevents that unless the flag dnn.tf32 defines THEANO_DNN_TF32. */
static inline cudnnMathType_t c_default_math_type(int typecode) {
#ifndef THEANO_DNN_TF32
    if (typecode == GA_FLOAT)
        return CUDNN_FMA_MATH;
#endif
    return CUDNN_DEFAULT_MATH;
}

/* Set *algo to the fastest algorithm that needs at most `limit` bytes of workspace:
 * cuDNN sorts `results` by time. Return CUDNN_STATUS_NOT_SUPPORTED if there is none. */
template <typename AlgoPerf, typename Algo>
static cudnnStatus_t c_choose_algo(const AlgoPerf *results, int count, size_t limit,
                                   Algo *algo) {
    for (int i = 0; i < count; i++) {
        if (results[i].status == CUDNN_STATUS_SUCCESS && results[i].memory <= limit) {
            *algo = results[i].algo;
            return CUDNN_STATUS_SUCCESS;
        }
    }
    return CUDNN_STATUS_NOT_SUPPORTED;
}

#endif
