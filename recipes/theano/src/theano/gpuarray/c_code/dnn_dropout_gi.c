#section support_code

/* Compute dx, the gradient with respect to dropout's input, from dy, the gradient with
 * respect to its output. dnn_dropout_fwd wrote `reserve`: the elements that it dropped.
 * Return 0, or -1 with an exception set. */
int dnn_dropout_gi(PyGpuArrayObject *dy, cudnnDropoutDescriptor_t desc,
                   gpudata *reserve, PyGpuArrayObject **dx, cudnnHandle_t _handle) {
    dropout_call call(dy->context);
    size_t size;

    if (call.prepare(dy, dx))
        return -1;
    if (call.in == NULL)
        return 0;
    if (dnn_check(cudnnDropoutGetReserveSpaceSize(call.in, &size),
                  "get the size of dropout's memory"))
        return -1;

    cuda_wait(dy->ga.data, GPUARRAY_CUDA_WAIT_READ);
    cuda_wait(reserve, GPUARRAY_CUDA_WAIT_READ);
    cuda_wait((*dx)->ga.data, GPUARRAY_CUDA_WAIT_WRITE);
    int failed = dnn_check(
        cudnnDropoutBackward(_handle, desc, call.in, PyGpuArray_DEV_DATA(dy), call.out,
                             PyGpuArray_DEV_DATA(*dx), *(void **)reserve, size),
        "run dropout's gradient");
    cuda_record(dy->ga.data, GPUARRAY_CUDA_WAIT_READ);
    cuda_record(reserve, GPUARRAY_CUDA_WAIT_READ);
    cuda_record((*dx)->ga.data, GPUARRAY_CUDA_WAIT_WRITE);
    return failed;
}
