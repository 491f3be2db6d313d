#section support_code

/* Run an RNN with `numDirs` directions (1 or 2) on the sequences x, from the hidden
 * states hx and, for an LSTM, the cell states cx. Set the outputs y, the last states hy
 * and cy, and *reserve, the memory that the gradients read. cx and cy are NULL for
 * other RNNs. Return 0, or -1 with an exception set. */
int dnn_rnn_fwd(cudnnRNNDescriptor_t desc, uint32_t numDirs, PyGpuArrayObject *w,
                PyGpuArrayObject *x, PyGpuArrayObject *hx, PyGpuArrayObject *cx,
                gpudata **reserve, PyGpuArrayObject **y, PyGpuArrayObject **hy,
                PyGpuArrayObject **cy, cudnnHandle_t _handle) {
    PyGpuContextObject *c = x->context;
    const size_t yshape[3] = {PyGpuArray_DIM(x, 0), PyGpuArray_DIM(x, 1),
                              PyGpuArray_DIM(hx, 2) * numDirs};
    rnn_call call(c, _handle, desc);

    if (call.prepare(PyGpuArray_DIMS(x), yshape, hx, PyGpuArray_DIM(w, 0)) ||
        theano_prep_output(y, 3, yshape, x->ga.typecode, GA_C_ORDER, c) ||
        theano_prep_output(hy, 3, PyGpuArray_DIMS(hx), hx->ga.typecode, GA_C_ORDER,
                           c) ||
        (cy && theano_prep_output(cy, 3, PyGpuArray_DIMS(cx), cx->ga.typecode,
                                  GA_C_ORDER, c)))
        return -1;

    *reserve = gpudata_alloc(c->ctx, call.ressize, NULL, 0, NULL);
    if (*reserve == NULL) {
        PyErr_SetString(PyExc_MemoryError, "Could not allocate reserve");
        return -1;
    }

    return dnn_check(
        cudnnRNNForward(_handle, desc, CUDNN_FWD_MODE_TRAINING, NULL, call.x,
                        call.read(x), call.y, call.write(y), call.h, call.read(hx),
                        call.write(hy), call.h, call.read(cx), call.write(cy),
                        call.weightsize, call.read(w), call.worksize,
                        call.write(call.workspace), call.ressize, call.write(*reserve)),
        "run an RNN");
}
