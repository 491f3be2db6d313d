#section support_code

/* The resources of one call of cuDNN's dropout. The constructor enters the device's
 * context; the destructor frees the descriptors and exits the context. The tensors that
 * `in` and `out` describe have the same shape. */
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

    /* Allocate *y in the shape of x and, unless x is empty, create both descriptors.
     * Return 0, or another value with an exception set. */
    int prepare(PyGpuArrayObject *x, PyGpuArrayObject **y) {
        return theano_prep_output(y, PyGpuArray_NDIM(x), PyGpuArray_DIMS(x),
                                  x->ga.typecode, GA_C_ORDER, x->context) ||
               (PyGpuArray_SIZE(x) &&
                (c_make_tensorNd(x, &in) || c_make_tensorNd(*y, &out)));
    }
};
