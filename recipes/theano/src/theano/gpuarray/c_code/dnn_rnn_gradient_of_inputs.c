#section support_code

/* Compute dx, dhx and dcx, the gradients with respect to an RNN's inputs and initial
 * states, from dy, dhy and dcy. xshp is the number of inputs in a step. `reserve` is
 * from dnn_rnn_fwd; *oreserve is for dnn_rnn_gw. Return 0, or -1 with an exception
 * set. */
int dnn_rnn_gi(cudnnRNNDescriptor_t desc, npy_uint64 xshp, PyGpuArrayObject *y,
               PyGpuArrayObject *dy, PyGpuArrayObject *w, PyGpuArrayObject *hx,
               gpudata *reserve, PyGpuArrayObject *cx, PyGpuArrayObject *dhy,
               PyGpuArrayObject *dcy, gpudata **oreserve, PyGpuArrayObject **dx,
               PyGpuArrayObject **dhx, PyGpuArrayObject **dcx, cudnnHandle_t _handle) {
    PyGpuContextObject *c = y->context;
    const size_t xshape[3] = {PyGpuArray_DIM(y, 0), PyGpuArray_DIM(y, 1), xshp};
    rnn_call call(c, _handle, desc);

    if (call.prepare(xshape, PyGpuArray_DIMS(y), hx, PyGpuArray_DIM(w, 0)) ||
        theano_prep_output(dx, 3, xshape, y->ga.typecode, GA_C_ORDER, c) ||
        theano_prep_output(dhx, 3, PyGpuArray_DIMS(hx), hx->ga.typecode, GA_C_ORDER,
                           c) ||
        (dcx && theano_prep_output(dcx, 3, PyGpuArray_DIMS(cx), cx->ga.typecode,
                                   GA_C_ORDER, c)))
        return -1;

    /* cudnnRNNBackwardData_v8 changes the reserve, so it gets a copy. The gradient of
     * the weights needs the changed reserve. */
    *oreserve = gpudata_alloc(c->ctx, call.ressize, NULL, 0, NULL);
    if (*oreserve == NULL) {
        PyErr_SetString(PyExc_MemoryError, "Could not allocate reserve");
        return -1;
    }
    if (gpudata_move(*oreserve, 0, reserve, 0, call.ressize) != GA_NO_ERROR) {
        PyErr_SetString(PyExc_RuntimeError, "could not copy reserve");
        return -1;
    }

    return dnn_check(cudnnRNNBackwardData_v8(
                         _handle, desc, NULL, call.y, call.read(y), call.read(dy),
                         call.x, call.write(dx), call.h, call.read(hx), call.read(dhy),
                         call.write(dhx), call.h, call.read(cx), call.read(dcy),
                         call.write(dcx), call.weightsize, call.read(w), call.worksize,
                         call.write(call.workspace), call.ressize,
                         call.write(*oreserve)),
                     "run an RNN's gradient of its inputs");
}
