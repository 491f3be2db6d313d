#section support_code

/* Compute dw, the gradient with respect to an RNN's _wsize weights. `reserve` is from
 * dnn_rnn_gi. Return 0, or -1 with an exception set. */
int dnn_rnn_gw(cudnnRNNDescriptor_t desc, npy_uint64 _wsize, PyGpuArrayObject *x,
               PyGpuArrayObject *hx, PyGpuArrayObject *y, gpudata *reserve,
               PyGpuArrayObject **dw, cudnnHandle_t _handle) {
    PyGpuContextObject *c = x->context;
    size_t wsize = _wsize;
    rnn_call call(c, _handle, desc);

    if (call.prepare(PyGpuArray_DIMS(x), PyGpuArray_DIMS(y), hx, wsize) ||
        theano_prep_output(dw, 1, &wsize, x->ga.typecode, GA_C_ORDER, c))
        return -1;
    /* cuDNN adds the gradient to dw (CUDNN_WGRAD_MODE_ADD). */
    if (GpuArray_memset(&(*dw)->ga, 0) != GA_NO_ERROR) {
        PyErr_SetString(PyExc_RuntimeError,
                        "cannot set the gradient of an RNN's weights to 0");
        return -1;
    }

    return dnn_check(cudnnRNNBackwardWeights_v8(
                         _handle, desc, CUDNN_WGRAD_MODE_ADD, NULL, call.x,
                         call.read(x), call.h, call.read(hx), call.y, call.read(y),
                         call.weightsize, call.write(dw), call.worksize,
                         call.write(call.workspace), call.ressize, call.write(reserve)),
                     "run an RNN's gradient of its weights");
}
