#section support_code

/* The thunk's struct contains these parameters, because the arrays of the Python
 * parameters are seldom in a cache during a call. */
struct theano_dimshuffle {
    int nd_in;
    int nd_out;
    bool inplace;
    /* -1 is an added dimension */
    signed char order[NPY_MAXDIMS];
};

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
