#section support_code
#include <utility>
#include <vector>

/* Set the input size in an RNN's descriptor. RNNBlock makes the descriptor before it
 * knows the input size, so each call of the RNN sets it. */
static int rnn_set_input_size(cudnnRNNDescriptor_t desc, int size) {
    cudnnRNNAlgo_t algo;
    cudnnRNNMode_t mode;
    cudnnRNNBiasMode_t bias;
    cudnnDirectionMode_t direction;
    cudnnRNNInputMode_t input;
    cudnnDataType_t type, precision;
    cudnnMathType_t math;
    int32_t old_size, hidden, projection, layers;
    cudnnDropoutDescriptor_t dropout;
    uint32_t flags;

    return dnn_check(cudnnGetRNNDescriptor_v8(desc, &algo, &mode, &bias, &direction,
                                              &input, &type, &precision, &math,
                                              &old_size, &hidden, &projection, &layers,
                                              &dropout, &flags),
                     "read an RNN descriptor") ||
           dnn_check(cudnnSetRNNDescriptor_v8(desc, algo, mode, bias, direction, input,
                                              type, precision, math, size, hidden,
                                              projection, layers, dropout, flags),
                     "set the input size of an RNN");
}

/* Create the descriptor of a batch of sequences with equal lengths. `shape` is (length,
 * size of the batch, elements in a step). Return 0, or -1 with an exception set. */
static int rnn_make_data(cudnnRNNDataDescriptor_t *desc, cudnnDataType_t type,
                         const size_t *shape) {
    std::vector<int> lengths(shape[1], (int)shape[0]);

    return dnn_check(cudnnCreateRNNDataDescriptor(desc),
                     "create an RNN data descriptor") ||
           dnn_check(cudnnSetRNNDataDescriptor(
                         *desc, type, CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED, shape[0],
                         shape[1], shape[2], lengths.data(), NULL),
                     "set an RNN data descriptor");
}

/* Convert libgpuarray's typecode to cuDNN's type. Return 0, or set TypeError and return
 * -1 for a type that RNNs do not support. */
static int rnn_data_type(int typecode, cudnnDataType_t *type) {
    switch (typecode) {
    case GA_FLOAT: *type = CUDNN_DATA_FLOAT; return 0;
    case GA_DOUBLE: *type = CUDNN_DATA_DOUBLE; return 0;
    case GA_HALF: *type = CUDNN_DATA_HALF; return 0;
    default:
        PyErr_SetString(PyExc_TypeError, "Unsupported data type of an RNN");
        return -1;
    }
}

/* The resources of one call of an RNN: its descriptors and its workspace. The
 * constructor enters the device's context. The destructor frees the resources and exits
 * the context. Sizes are in bytes. */
struct rnn_call {
    gpucontext *ctx;
    cudnnHandle_t handle;
    cudnnRNNDescriptor_t desc;
    cudnnRNNDataDescriptor_t x, y;
    cudnnTensorDescriptor_t
        h; /* Of the hidden states and of the cell states: their shapes are equal. */
    size_t weightsize, worksize, ressize;
    gpudata *workspace;
    /* The memory that the call accesses, and the kinds of access
     * (GPUARRAY_CUDA_WAIT_*). The destructor records them, so that other streams wait
     * for the call. */
    std::vector<std::pair<gpudata *, int>> used;

    rnn_call(PyGpuContextObject *c, cudnnHandle_t handle, cudnnRNNDescriptor_t desc)
        : ctx(c->ctx), handle(handle), desc(desc), x(NULL), y(NULL), h(NULL),
          workspace(NULL) {
        cuda_enter(ctx);
    }

    ~rnn_call() {
        for (size_t i = 0; i < used.size(); i++)
            cuda_record(used[i].first, used[i].second);
        if (x != NULL)
            cudnnDestroyRNNDataDescriptor(x);
        if (y != NULL)
            cudnnDestroyRNNDataDescriptor(y);
        if (h != NULL)
            cudnnDestroyTensorDescriptor(h);
        if (workspace != NULL)
            gpudata_release(workspace);
        cuda_exit(ctx);
    }

    /* Create the descriptors and allocate the workspace. Shapes are (length, size of
     * the batch, elements in a step); wsize is the number of weights. Return 0, or -1
     * with an exception set. */
    int prepare(const size_t *xshape, const size_t *yshape, PyGpuArrayObject *hx,
                size_t wsize) {
        cudnnDataType_t type;

        if (rnn_data_type(hx->ga.typecode, &type) ||
            rnn_set_input_size(desc, xshape[2]) || rnn_make_data(&x, type, xshape) ||
            rnn_make_data(&y, type, yshape) || c_make_tensorNd(hx, &h) ||
            dnn_check(cudnnGetRNNWeightSpaceSize(handle, desc, &weightsize),
                      "get the size of an RNN's weights") ||
            dnn_check(cudnnGetRNNTempSpaceSizes(handle, desc, CUDNN_FWD_MODE_TRAINING,
                                                x, &worksize, &ressize),
                      "get the sizes of an RNN's memory"))
            return -1;
        if (wsize * gpuarray_get_elsize(hx->ga.typecode) < weightsize) {
            PyErr_Format(PyExc_ValueError,
                         "the RNN needs %zu bytes of weights, not %zu", weightsize,
                         wsize * gpuarray_get_elsize(hx->ga.typecode));
            return -1;
        }
        workspace = gpudata_alloc(ctx, worksize, NULL, 0, NULL);
        if (workspace == NULL) {
            PyErr_SetString(PyExc_MemoryError, "Could not allocate workspace");
            return -1;
        }
        return 0;
    }

    /* Let the call wait for pending accesses to memory that conflict with `access`.
     * Return the memory's address on the device. */
    void *use(gpudata *data, int access) {
        cuda_wait(data, access);
        used.push_back(std::make_pair(data, access));
        return *(void **)data;
    }

    /* Return the address of an array that cuDNN reads; NULL if `a` is NULL. */
    void *read(PyGpuArrayObject *a) {
        return a == NULL
                   ? NULL
                   : (char *)use(a->ga.data, GPUARRAY_CUDA_WAIT_READ) + a->ga.offset;
    }

    /* Return the address of an array that cuDNN writes; NULL if `a` is NULL. */
    void *write(PyGpuArrayObject **a) {
        return a == NULL ? NULL
                         : (char *)use((*a)->ga.data, GPUARRAY_CUDA_WAIT_WRITE) +
                               (*a)->ga.offset;
    }

    void *write(gpudata *data) {
        return use(data, GPUARRAY_CUDA_WAIT_WRITE);
    }
};

/* Make two views into the weights w, of `size` bytes: the transpose of matrix number
 * `id` of a layer, and its bias. With input_mode 'skip', the inputs have no matrix; the
 * view of the matrix then has no elements. Return 0, or -1 with an exception set. */
static int rnn_split(cudnnHandle_t handle, cudnnRNNDescriptor_t desc, int layer,
                     size_t size, PyGpuArrayObject *w, int id,
                     PyGpuArrayObject **matrix, PyGpuArrayObject **bias) {
    char *start = (char *)PyGpuArray_DEV_DATA(w), *maddr = NULL, *baddr = NULL;
    cudnnTensorDescriptor_t mdesc = NULL, bdesc = NULL;
    size_t flat[2] = {PyGpuArray_DIM(w, 0), 1};
    int mdims[3] = {1, 0, 0}, bdims[3] = {1, 0, 1}, strides[3], nd;
    cudnnDataType_t type;

    int failed =
        dnn_check(cudnnCreateTensorDescriptor(&mdesc), "create a tensor descriptor") ||
        dnn_check(cudnnCreateTensorDescriptor(&bdesc), "create a tensor descriptor") ||
        dnn_check(cudnnGetRNNWeightParams(handle, desc, layer, size, start, id, mdesc,
                                          (void **)&maddr, bdesc, (void **)&baddr),
                  "find the weights of an RNN") ||
        (maddr &&
         dnn_check(cudnnGetTensorNdDescriptor(mdesc, 3, &type, &nd, mdims, strides),
                   "get the shape of an RNN's matrix")) ||
        (baddr &&
         dnn_check(cudnnGetTensorNdDescriptor(bdesc, 3, &type, &nd, bdims, strides),
                   "get the shape of an RNN's bias"));
    if (mdesc != NULL)
        cudnnDestroyTensorDescriptor(mdesc);
    if (bdesc != NULL)
        cudnnDestroyTensorDescriptor(bdesc);
    if (failed)
        return -1;

    *matrix = pygpu_reshape(w, 2, flat, GA_F_ORDER, 1, -1);
    *bias = pygpu_view(w, Py_None);
    if (*matrix == NULL || *bias == NULL)
        return -1;
    if (maddr)
        (*matrix)->ga.offset += maddr - start;
    (*matrix)->ga.dimensions[0] = mdims[2];
    (*matrix)->ga.dimensions[1] = mdims[1];
    (*matrix)->ga.strides[1] = mdims[2] * gpuarray_get_elsize(w->ga.typecode);
    GpuArray_fix_flags(&(*matrix)->ga);
    if (baddr)
        (*bias)->ga.offset += baddr - start;
    (*bias)->ga.dimensions[0] = bdims[1];
    GpuArray_fix_flags(&(*bias)->ga);
    return 0;
}
