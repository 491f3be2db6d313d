#section support_code

/* A call of dropout: enters the device's context in the constructor and exits it in the
 * destructor. The tensors `in` and `out` have the same shape. */
struct dropout_call {
    gpucontext *ctx;
    cudnnTensorDescriptor_t in, out;

    dropout_call(PyGpuContextObject *c) : ctx(c->ctx), in(NULL), out(NULL) {
        cuda_enter(ctx);
    }

    ~dropout_call() {
        if (in != NULL)
            cudnnDestroyTensorDescriptor(in);
        if (out != NULL)
            cudnnDestroyTensorDescriptor(out);
        cuda_exit(ctx);
    }

    int prepare(PyGpuArrayObject *x, PyGpuArrayObject **y) {
        return theano_prep_output(y, PyGpuArray_NDIM(x), PyGpuArray_DIMS(x),
                                  x->ga.typecode, GA_C_ORDER, x->context) ||
               (PyGpuArray_SIZE(x) &&
                (c_make_tensorNd(x, &in) || c_make_tensorNd(*y, &out)));
    }
};
