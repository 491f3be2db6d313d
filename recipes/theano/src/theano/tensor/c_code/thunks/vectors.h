#ifndef THEANO_THUNKS_VECTORS_H
#define THEANO_THUNKS_VECTORS_H

/* Computations of CGemv and CGer by the kernels of theano_products.h. */

#include "theano_products.h"
#include "values.h"

/* Return the distance of elements along dimension d, as a number of elements of T. */
template <typename T> static long step(PyArrayObject *array, int d) {
    return PyArray_STRIDE(array, d) / (npy_intp)sizeof(T);
}

/* Set the dimensions and strides of a CGemv. `arrays` are its inputs y, alpha, A, x and
 * beta, and its output. */
template <typename T> static void set_layout(gemv<T> *p, PyArrayObject *const *arrays) {
    p->n_rows = PyArray_DIM(arrays[2], 0);
    p->n_columns = PyArray_DIM(arrays[2], 1);
    p->row_of_a = step<T>(arrays[2], 0);
    p->column_of_a = step<T>(arrays[2], 1);
    p->step_of_x = step<T>(arrays[3], 0);
    p->step_of_from = step<T>(arrays[0], 0);
    p->step_of_y = step<T>(arrays[5], 0);
}

/* Set the addresses of the same arrays. */
template <typename T> static void set_addresses(gemv<T> *p, char *const *addresses) {
    p->from = (const T *)addresses[0];
    p->alpha = (const T *)addresses[1];
    p->a = (const T *)addresses[2];
    p->x = (const T *)addresses[3];
    p->beta = (const T *)addresses[4];
    p->y = (T *)addresses[5];
}

/* Set the dimensions and strides of a CGer. `arrays` are its inputs A, alpha, x and y,
 * and its output. */
template <typename T> static void set_layout(ger<T> *p, PyArrayObject *const *arrays) {
    p->n_rows = PyArray_DIM(arrays[0], 0);
    p->n_columns = PyArray_DIM(arrays[0], 1);
    p->row_of_a = step<T>(arrays[0], 0);
    p->column_of_a = step<T>(arrays[0], 1);
    p->step_of_x = step<T>(arrays[2], 0);
    p->step_of_y = step<T>(arrays[3], 0);
    p->row_of_z = step<T>(arrays[4], 0);
    p->column_of_z = step<T>(arrays[4], 1);
}

/* Set the addresses of the same arrays. */
template <typename T> static void set_addresses(ger<T> *p, char *const *addresses) {
    p->a = (const T *)addresses[0];
    p->alpha = (const T *)addresses[1];
    p->x = (const T *)addresses[2];
    p->y = (const T *)addresses[3];
    p->z = (T *)addresses[4];
}

/* Compute a Product, gemv or ger, of the thunk's inputs and output. */
template <typename Product>
static void multiply_arrays(const thunk *self, PyArrayObject *const *inputs,
                            PyArrayObject *output) {
    const int n = self->n_inputs;
    PyArrayObject *arrays[n + 1];
    char *addresses[n + 1];
    for (int i = 0; i <= n; i++) {
        arrays[i] = i < n ? inputs[i] : output;
        addresses[i] = PyArray_BYTES(arrays[i]);
    }
    Product product;
    set_layout(&product, arrays);
    set_addresses(&product, addresses);
    theano_multiply(product);
}

/* Return 0 if dimension d of A has the length of a vector, or -1 with an exception set.
 */
static int check_length(PyArrayObject *a, int d, PyArrayObject *vector,
                        const char *name) {
    if (PyArray_DIM(a, d) == PyArray_DIM(vector, 0))
        return 0;
    PyErr_Format(PyExc_ValueError, "Shape mismatch: A.shape[%d] != %s.shape[0]", d,
                 name);
    return -1;
}

/* Compute a product whose output has the shape of input 0. op[0]: whether it works
 * in-place, on input 0. */
template <template <typename> class Product>
static int compute_product(const thunk *self, PyArrayObject **inputs,
                           PyArrayObject **outputs) {
    PyArrayObject *const first = inputs[0];
    const bool inplace = *(const npy_intp *)self->op;
    if (inplace ? put(outputs, Py_NewRef((PyObject *)first))
                : put_empty(outputs, PyArray_NDIM(first), PyArray_DIMS(first),
                            self->types[0], 0))
        return -1;
    (self->types[0] == NPY_DOUBLE
         ? multiply_arrays<Product<double>>
         : multiply_arrays<Product<float>>)(self, inputs, outputs[0]);
    return 0;
}

/* Compute a CGemv: the sum of beta y and alpha A x. */
static int compute_gemv(const thunk *self, PyArrayObject **inputs,
                        PyArrayObject **outputs) {
    PyArrayObject *const y = inputs[0], *const a = inputs[2], *const x = inputs[3];
    return check_length(a, 0, y, "y") || check_length(a, 1, x, "x")
               ? -1
               : compute_product<gemv>(self, inputs, outputs);
}

/* Compute a CGer: the sum of A and alpha times the outer product of x and y. */
static int compute_ger(const thunk *self, PyArrayObject **inputs,
                       PyArrayObject **outputs) {
    PyArrayObject *const a = inputs[0], *const x = inputs[2], *const y = inputs[3];
    return check_length(a, 0, x, "x") || check_length(a, 1, y, "y")
               ? -1
               : compute_product<ger>(self, inputs, outputs);
}

#endif
