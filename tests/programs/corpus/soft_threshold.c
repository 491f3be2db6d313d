#section support_code

static double soften(double x, double limit) {
    if (x > limit)
        return x - limit;
    return x < -limit ? x + limit : 0.0;
}

#section init_code_struct

calls = 0;

#section support_code_struct

int calls;

int APPLY_SPECIFIC(soft_threshold)(PyArrayObject *x, PyArrayObject *limit, PyArrayObject **z,
                                   PARAMS_TYPE *params) {
    PyArrayObject *contiguous = PyArray_GETCONTIGUOUS(x);
    if (contiguous == NULL)
        return 1;
    if (*z == NULL || !PyArray_SAMESHAPE(*z, contiguous) || !PyArray_IS_C_CONTIGUOUS(*z)) {
        Py_XDECREF(*z);
        *z = (PyArrayObject *)PyArray_EMPTY(PyArray_NDIM(x), PyArray_DIMS(x), TYPENUM_INPUT_0, 0);
        if (*z == NULL) {
            Py_DECREF(contiguous);
            return 1;
        }
    }
    const DTYPE_INPUT_0 *source = (const DTYPE_INPUT_0 *)PyArray_DATA(contiguous);
    DTYPE_OUTPUT_0 *target = (DTYPE_OUTPUT_0 *)PyArray_DATA(*z);
    const double threshold = *(const DTYPE_INPUT_1 *)PyArray_DATA(limit) * params->scale;
    for (npy_intp i = 0; i < PyArray_SIZE(*z); ++i)
        target[i] = (DTYPE_OUTPUT_0)soften(source[i], threshold);
    ++calls;
    Py_DECREF(contiguous);
    return 0;
}
