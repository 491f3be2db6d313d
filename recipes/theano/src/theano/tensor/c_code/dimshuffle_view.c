#section support_code

/* The parameters of a DimShuffle, copied into the thunk's struct: the arrays of the
 * op's Params object are seldom in a CPU cache when a function is called. */
struct theano_dimshuffle {
    int nd_in;
    int nd_out;
    bool inplace;
    /* For each dimension of the output: the input's dimension, or -1 for a new one. */
    signed char order[NPY_MAXDIMS];
};

/* Copy the parameters of a DimShuffle; return 0, or -1 with an exception set. */
static int theano_dimshuffle_init(theano_dimshuffle *shuffle,
                                  PyArrayObject *input_broadcastable,
                                  PyArrayObject *new_order, bool inplace) {
    npy_intp nd_in = PyArray_SIZE(input_broadcastable);
    npy_intp nd_out = PyArray_SIZE(new_order);

    if (!PyArray_IS_C_CONTIGUOUS(new_order)) {
        PyErr_SetString(PyExc_RuntimeError,
                        "DimShuffle: param _new_order must be C-contiguous.");
        return -1;
    }
    if (nd_out > NPY_MAXDIMS) {
        PyErr_Format(PyExc_ValueError,
                     "DimShuffle: number of dimensions must be within [0, %d]",
                     NPY_MAXDIMS);
        return -1;
    }
    shuffle->nd_in = nd_in;
    shuffle->nd_out = nd_out;
    shuffle->inplace = inplace;
    for (npy_intp i = 0; i < nd_out; ++i)
        shuffle->order[i] = ((npy_int64 *)PyArray_DATA(new_order))[i];
    return 0;
}

/* Compute a DimShuffle. `stored` is the object in the output's storage. If it is *res,
 * the thunk and the storage have three references to it: CLinker's variables V and py_V
 * of the output, and the storage's item. */
static int theano_dimshuffle_run(PyArrayObject *input, PyArrayObject **res,
                                 PyObject *stored, const theano_dimshuffle *shuffle) {
    return theano_shuffle(input, res, stored == (PyObject *)*res ? 3 : 1,
                          shuffle->inplace, shuffle->nd_in, shuffle->nd_out,
                          shuffle->order);
}

#section support_code_struct

theano_dimshuffle APPLY_SPECIFIC(shuffle);

#section init_code_struct

if (theano_dimshuffle_init(&APPLY_SPECIFIC(shuffle), PARAMS->input_broadcastable,
                           PARAMS->_new_order, PARAMS->inplace))
FAIL
