#section support_code_struct

/* Compute y, dropout of x, with the random states `state`. Set *ostate to the states
 * after the call, and *reserve to the memory that dnn_dropout_gi reads. Return 0, or -1
 * with an exception set. */
int dnn_dropout_fwd(PyGpuArrayObject *x, cudnnDropoutDescriptor_t desc,
                    PyGpuArrayObject *state, PyGpuArrayObject **y,
                    PyGpuArrayObject **ostate, gpudata **reserve, PARAMS_TYPE *params) {
    dropout_call call(x->context);
    size_t size = 0, states = PyGpuArray_DIM(state, 0);
    unsigned long long seed;
    float probability;
    void *memory;

    if (call.prepare(x, y) ||
        (call.in && dnn_check(cudnnDropoutGetReserveSpaceSize(call.in, &size),
                              "get the size of dropout's memory")))
        return -1;
    *reserve = gpudata_alloc(call.ctx, size, NULL, 0, NULL);
    if (*reserve == NULL) {
        PyErr_SetString(PyExc_MemoryError, "Could not allocate reserve for dropout");
        return -1;
    }
    if (params->inplace)
        Py_INCREF(state);
    else if ((state = pygpu_copy(state, GA_C_ORDER)) == NULL)
        return -1;
    Py_XDECREF(*ostate);
    *ostate = state;
    /* cuDNN does not support dimensions of length 0. */
    if (call.in == NULL)
        return 0;

    /* The descriptor contains the address that the states had when it was made. Replace
     * it by their present address. */
    if (dnn_check(cudnnGetDropoutDescriptor(desc, params->handle, &probability, &memory,
                                            &seed),
                  "read a dropout descriptor") ||
        dnn_check(cudnnRestoreDropoutDescriptor(desc, params->handle, probability,
                                                PyGpuArray_DEV_DATA(state), states,
                                                seed),
                  "set a dropout descriptor"))
        return -1;

    cuda_wait(x->ga.data, GPUARRAY_CUDA_WAIT_READ);
    cuda_wait(state->ga.data, GPUARRAY_CUDA_WAIT_WRITE);
    cuda_wait((*y)->ga.data, GPUARRAY_CUDA_WAIT_WRITE);
    cuda_wait(*reserve, GPUARRAY_CUDA_WAIT_WRITE);
    int failed = dnn_check(cudnnDropoutForward(params->handle, desc, call.in,
                                               PyGpuArray_DEV_DATA(x), call.out,
                                               PyGpuArray_DEV_DATA(*y),
                                               *(void **)*reserve, size),
                           "run dropout");
    cuda_record(x->ga.data, GPUARRAY_CUDA_WAIT_READ);
    cuda_record(state->ga.data, GPUARRAY_CUDA_WAIT_WRITE);
    cuda_record((*y)->ga.data, GPUARRAY_CUDA_WAIT_WRITE);
    cuda_record(*reserve, GPUARRAY_CUDA_WAIT_WRITE);
    return failed;
}
