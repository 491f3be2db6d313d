#ifndef THEANO_THUNKS_RECORDERS_H
#define THEANO_THUNKS_RECORDERS_H

/* Recorders. The recorder of a computation (thunk.h) is called after the thunk of a
 * node ran. It adds the node's operations to a recording, and returns whether they do
 * the work of the thunk. */

#include "recording.h"
#include "shapes.h"

typedef bool (*recorder)(recording &to, const node &of);

/* Record an op whose output is a view of its first input. The view is the same in all
 * steps, relative to the input, if all other inputs are fixed. No operation is needed:
 * replay.h updates the view's address. */
static bool record_view(recording &, const node &of) {
    return of.has_fixed_inputs(1);
}

/* Record a DimShuffle, if it is a view. */
static bool record_dimshuffle(recording &, const node &of) {
    const bool inplace = of.op()[0];
    return inplace;
}

/* Record a Reshape, if it is a view. */
static bool record_reshape(recording &, const node &of) {
    return of.has_fixed_inputs(1) &&
           PyArray_DATA(of.input(0)) == PyArray_DATA(of.output(0));
}

/* Record an AllocEmpty of fixed lengths; it needs no operation. */
static bool record_alloc_empty(recording &, const node &of) {
    return of.has_fixed_inputs(0);
}

/* Add the loops over n arrays; theano_order_loops describes the parameters. The caller
 * sets the addresses of the arrays and the sizes of their elements. Return NULL if
 * there are no elements. */
static run_loops *record_loops(recording &to, const node &of, const npy_intp *dims,
                               int n, const npy_intp *array_strides,
                               const npy_intp *like, const char *in_order) {
    const theano_elemwise_op *op = (const theano_elemwise_op *)of.self->op;
    npy_intp sizes[op->nd + 2], strides[(op->nd + 2) * n];
    const int last = theano_order_loops(op->nd, dims, n, array_strides, like, in_order,
                                        sizes, strides);
    if (!last)
        return NULL;
    run_loops *loops =
        to.add<run_loops>(of, last == 1 ? run_loops::run_two : run_loops::run_all);
    loops->op = op;
    loops->n = n;
    loops->last = last;
    loops->sizes = to.memory.copy(sizes, last + 1);
    loops->strides = to.memory.copy(strides, (last + 1) * n);
    loops->data = to.memory.allocate<char *>(n);
    return loops;
}

static bool record_elemwise(recording &to, const node &of) {
    const theano_elemwise_op *op = (const theano_elemwise_op *)of.self->op;
    variable *variables[of.n_inputs + of.n_outputs];
    PyArrayObject *arrays[of.n_inputs + of.n_outputs];
    npy_intp dims[op->nd + 1];
    char in_order[op->nd + 1];
    int n = 0;
    for (int i = 0; i < of.n_inputs; i++)
        variables[n++] = of.inputs[i];
    for (int i = 0; i < of.n_outputs; i++)
        if (op->overwritten[i] < 0)
            variables[n++] = of.outputs[i];
    for (int i = 0; i < n; i++)
        arrays[i] = variables[i]->array;
    if (theano_dims(op->nd, dims, of.n_inputs, arrays, op->broadcast)) {
        PyErr_Clear();
        return false;
    }
    npy_intp strides[op->nd * n + 1];
    memset(in_order, '0', op->nd);
    theano_elemwise_strides(op->nd, n, arrays, op->broadcast, strides);
    run_loops *loops =
        record_loops(to, of, dims, n, strides, strides + op->like * op->nd, in_order);
    if (!loops)
        return true;
    int *item_sizes = to.memory.allocate<int>(n);
    loops->item_sizes = item_sizes;
    const any_strides run = {op, n, item_sizes};
    if (op->assumes_contiguous && are_large(loops->last, loops->sizes))
        loops->run = run_loops::run_any_strides;
    for (int i = 0; i < n; i++) {
        item_sizes[i] = PyArray_ITEMSIZE(arrays[i]);
        to.set_address(loops->data + i, variables[i]);
        if (op->assumes_contiguous && loops->sizes[loops->last] > 1 &&
            loops->strides[loops->last * n + i] != run.assumed_stride(i))
            loops->run = run_loops::run_any_strides;
    }
    return true;
}

static bool record_reduce(recording &to, const node &of) {
    /* The largest number of float64 accumulators for which a recording has memory. */
    enum { MAX_SUMS = 1024 };
    const theano_elemwise_op *op = (const theano_elemwise_op *)of.self->op;
    PyArrayObject *input = of.input(0), *result = of.output(0);
    const int nd = PyArray_NDIM(result);
    const npy_intp n = PyArray_SIZE(result);
    npy_intp sum_strides[nd + 1], strides[2 * op->nd + 1], kept_first[op->nd + 1];
    const bool rounds = op->type != of.self->types[1];
    if (rounds &&
        (op->type != NPY_DOUBLE || !is_plain(result, NPY_FLOAT) || n > MAX_SUMS))
        return false;
    start_reduction *start = to.add<start_reduction>(of, start_reduction::run_it);
    start->fill = op->fill;
    start->n = n;
    for (int d = 0; d < nd; d++)
        sum_strides[d] = PyArray_STRIDE(result, d) * (rounds ? 2 : 1);
    const npy_intp *like =
        reduction_strides(op, input, sum_strides, strides, kept_first);
    run_loops *loops =
        record_loops(to, of, PyArray_DIMS(input), 2, strides, like, op->reduced);
    double *sums = rounds ? to.memory.allocate<double>(n) : NULL;
    if (rounds)
        start->data = (char *)sums;
    else
        to.set_address(&start->data, of.outputs[0]);
    if (loops) {
        to.set_address(loops->data, of.inputs[0]);
        if (rounds)
            loops->data[1] = (char *)sums;
        else
            to.set_address(loops->data + 1, of.outputs[0]);
    }
    if (rounds) {
        round_to_float *round = to.add<round_to_float>(of, round_to_float::run_it);
        round->n = n;
        round->from = sums;
        to.set_address(&round->to, of.outputs[0]);
    }
    return true;
}

/* Record the assignment of a value to the elements `part` of an array, or the addition
 * of the value to them if `add` is true. from_strides are the value's strides. */
template <typename T>
static bool record_elements(recording &to, const node &of, bool add, variable *array,
                            const view &part, variable *value,
                            const npy_intp *from_strides) {
    const int nd = part.nd;
    npy_intp sizes[nd + 2], strides[2 * nd + 1], loop_strides[2 * (nd + 2)];
    char in_order[nd + 1];
    memset(in_order, '0', nd);
    memcpy(strides, part.strides, nd * sizeof(npy_intp));
    memcpy(strides + nd, from_strides, nd * sizeof(npy_intp));
    const int last = theano_order_loops(nd, part.dims, 2, strides, strides, in_order,
                                        sizes, loop_strides);
    typedef update_elements<T> update;
    update *added = to.add<update>(of, update::run_it);
    added->add = add;
    added->last = last;
    added->sizes = to.memory.copy(sizes, last + 1);
    added->strides = to.memory.copy(loop_strides, 2 * (last + 1));
    to.set_address(added->data, array, part.offset);
    to.set_address(added->data + 1, value);
    return true;
}

/* Record the work of theano_update_few: the update of `part` of an array by a value. */
static bool record_update(recording &to, const node &of, bool add, variable *array,
                          const view &part, variable *value) {
    npy_intp from_strides[NPY_MAXDIMS];
    if (!theano_can_update_few(array->array, part.nd, part.dims, part.strides,
                               PyArray_BYTES(array->array) + part.offset, value->array,
                               from_strides))
        return false;
    return (PyArray_TYPE(array->array) == NPY_DOUBLE
                ? record_elements<double>
                : record_elements<float>)(to, of, add, array, part, value,
                                          from_strides);
}

static bool record_alloc(recording &to, const node &of) {
    PyArrayObject *result = of.output(0);
    if (!of.has_fixed_inputs(1))
        return false;
    if (!can_fill(result, of.input(0))) {
        view whole;
        whole.nd = PyArray_NDIM(result);
        whole.offset = 0;
        memcpy(whole.dims, PyArray_DIMS(result), whole.nd * sizeof(npy_intp));
        memcpy(whole.strides, PyArray_STRIDES(result), whole.nd * sizeof(npy_intp));
        return record_update(to, of, false, of.outputs[0], whole, of.inputs[0]);
    }
    fill_array *fill = to.add<fill_array>(of, fill_array::run_it);
    fill->n_bytes = PyArray_NBYTES(result);
    fill->item_size = PyArray_ITEMSIZE(result);
    to.set_address(&fill->to, of.outputs[0]);
    to.set_address(&fill->value, of.inputs[0]);
    return true;
}

/* Record a copy of n rows of `length` units of `unit` bytes, from `source` to `target`.
 * The rows of these arrays have from_length and to_length units. The copy begins at
 * unit from_offset and to_offset of a row. */
static void record_rows(recording &to, const node &of, npy_intp n, npy_intp unit,
                        npy_intp length, variable *target, npy_intp to_offset,
                        npy_intp to_length, variable *source, npy_intp from_offset,
                        npy_intp from_length) {
    copy_operation *copy = to.add<copy_operation>(of, copy_operation::run_it);
    copy->n = n;
    copy->size = length * unit;
    copy->to_stride = to_length * unit;
    copy->from_stride = from_length * unit;
    to.set_address(&copy->to, target, to_offset * unit);
    to.set_address(&copy->from, source, from_offset * unit);
}

/* Record a copy of input 0 to output 0; return false if memcpy cannot copy it. */
static bool record_copy(recording &to, const node &of) {
    PyArrayObject *from = of.input(0);
    if (!has_dims(of.output(0), PyArray_NDIM(from), PyArray_DIMS(from)) ||
        !is_plain(from, PyArray_TYPE(from)) || !can_copy(of.output(0), from))
        return false;
    record_rows(to, of, 1, PyArray_NBYTES(from), 1, of.outputs[0], 0, 1, of.inputs[0],
                0, 1);
    return true;
}

static bool record_inc_subtensor(recording &to, const node &of) {
    const npy_intp *op = of.op();
    const bool inplace = op[0], set = op[1];
    PyArrayObject *inputs[of.n_inputs];
    view part;
    for (int i = 0; i < of.n_inputs; i++)
        inputs[i] = (PyArrayObject *)*of.inputs[i]->item();
    if (!of.has_fixed_inputs(2) ||
        make_view(of.self, inputs, op + 2, of.output(0), &part)) {
        PyErr_Clear();
        return false;
    }
    return (inplace || record_copy(to, of)) &&
           record_update(to, of, !set, of.outputs[0], part, of.inputs[1]);
}

/* Record a Join of plain arrays along an axis. */
static bool record_joined(recording &to, const node &of, int axis) {
    PyArrayObject *result = of.output(0);
    const int type_num = of.self->types[of.n_inputs];
    if (!is_plain(result, type_num))
        return false;
    for (int i = 1; i < of.n_inputs; i++)
        if (!is_plain(of.input(i), type_num) || !can_copy(result, of.input(i)))
            return false;
    const rows joined(result, axis);
    npy_intp done = 0;
    for (int i = 1; i < of.n_inputs; i++) {
        const npy_intp length = PyArray_DIM(of.input(i), axis);
        record_rows(to, of, joined.n, joined.unit, length, of.outputs[0], done,
                    PyArray_DIM(result, axis), of.inputs[i], 0, length);
        done += length;
    }
    return true;
}

/* Return the axis in an input of a node, or -1 if the input is not fixed. A negative
 * axis in the input counts from the end of nd dimensions. */
static int fixed_axis(const node &of, int input, int nd) {
    if (!of.inputs[input]->is_fixed || !of.input(input))
        return -1;
    const npy_intp axis =
        integer_at(PyArray_DATA(of.input(input)), of.self->types[input]);
    return axis < 0 ? axis + nd : axis;
}

static bool record_join(recording &to, const node &of) {
    const npy_intp view = of.op()[0];
    const int axis = fixed_axis(of, 0, PyArray_NDIM(of.output(0)));
    return view < 0 && axis >= 0 && record_joined(to, of, axis);
}

static bool record_join_as(recording &to, const node &of) {
    return of.inputs[0]->is_fixed && record_joined(to, of, of.op()[0]);
}

static bool record_split(recording &to, const node &of) {
    PyArrayObject *from = of.input(0);
    const int axis = fixed_axis(of, 1, PyArray_NDIM(from));
    if (!of.inputs[2]->is_fixed || axis < 0 || !is_plain(from, of.self->types[0]))
        return false;
    for (int i = 0; i < of.n_outputs; i++)
        if (!can_copy(of.output(i), from))
            return false;
    const rows whole(from, axis);
    npy_intp done = 0;
    for (int i = 0; i < of.n_outputs; i++) {
        const npy_intp length = PyArray_DIM(of.output(i), axis);
        record_rows(to, of, whole.n, whole.unit, length, of.outputs[i], 0, length,
                    of.inputs[0], done, PyArray_DIM(from, axis));
        done += length;
    }
    return true;
}

/* Return the offsets, in bytes from an array's first row, of the rows that fixed
 * indices select. */
static const npy_intp *record_offsets(recording &to, PyArrayObject *array,
                                      PyArrayObject *indices) {
    const rows_of rows(array, indices);
    const offsets_of offsets = {rows, PyArray_STRIDE(array, 0)};
    npy_intp *copies = to.memory.allocate<npy_intp>(rows.count());
    for (npy_intp i = 0; i < rows.count(); i++)
        copies[i] = offsets[i];
    return copies;
}

/* Return the number of the row after a run, which is a series of rows that are adjacent
 * in memory. The run begins with row `first` of n rows. */
static npy_intp end_of_run(const npy_intp *offsets, npy_intp size, npy_intp first,
                           npy_intp n) {
    do
        first++;
    while (first < n && offsets[first] - offsets[first - 1] == size);
    return first;
}

static bool record_advanced_subtensor1(recording &to, const node &of) {
    enum { ROWS_PER_RUN = 16 };
    PyArrayObject *from = of.input(0), *result = of.output(0);
    if (!of.has_fixed_inputs(1) || !is_plain(from, of.self->types[0]) ||
        !can_copy(result, from))
        return false;
    const npy_intp n = PyArray_DIM(result, 0), size = rows(from, 0).unit;
    const npy_intp *offsets = record_offsets(to, from, of.input(1));
    npy_intp n_runs = 0;
    for (npy_intp i = 0; i < n; i = end_of_run(offsets, size, i, n))
        n_runs++;
    if (n_runs * ROWS_PER_RUN <= n && size) {
        for (npy_intp i = 0, end; i < n; i = end) {
            end = end_of_run(offsets, size, i, n);
            record_rows(to, of, 1, size, end - i, of.outputs[0], i, n, of.inputs[0],
                        offsets[i] / size, n);
        }
        return true;
    }
    take_operation *take = to.add<take_operation>(of, take_operation::run_it);
    take->n = n;
    take->size = size;
    take->offsets = offsets;
    to.set_address(&take->to, of.outputs[0]);
    to.set_address(&take->from, of.inputs[0]);
    return true;
}

template <typename T> static bool record_add_elements(recording &to, const node &of) {
    typedef add_operation<T> operation;
    PyArrayObject *value = of.input(1);
    operation *add = to.add<operation>(of, operation::run_it);
    add->n = PyArray_DIM(of.input(2), 0);
    add->from_stride = PyArray_DIM(value, 0) == 1 ? 0 : PyArray_STRIDE(value, 0);
    add->offsets = record_offsets(to, of.output(0), of.input(2));
    to.set_address(&add->to, of.outputs[0]);
    to.set_address(&add->from, of.inputs[1]);
    return true;
}

/* Record an AdvancedIncSubtensor1 of a vector by a vector. */
static bool record_advanced_inc_subtensor1(recording &to, const node &of) {
    const bool inplace = of.op()[0];
    return of.has_fixed_inputs(2) && PyArray_NDIM(of.output(0)) == 1 &&
           PyArray_NDIM(of.input(1)) == 1 && (inplace || record_copy(to, of)) &&
           (of.self->types[0] == NPY_DOUBLE ? record_add_elements<double>
                                            : record_add_elements<float>)(to, of);
}

/* Record a CGemv or CGer. Product is gemv or ger of the arrays' type. */
template <typename Product>
static bool record_multiplication(recording &to, const node &of) {
    typedef multiply_operation<Product> operation;
    PyArrayObject *arrays[of.n_inputs + 1];
    operation *multiply = to.add<operation>(of, operation::run_it);
    for (int i = 0; i <= of.n_inputs; i++) {
        variable *const source = i < of.n_inputs ? of.inputs[i] : of.outputs[0];
        arrays[i] = source->array;
        to.set_address(multiply->addresses + i, source);
    }
    set_layout(&multiply->product, arrays);
    return true;
}

template <template <typename> class Product>
static bool record_product(recording &to, const node &of) {
    return (of.self->types[0] == NPY_DOUBLE
                ? record_multiplication<Product<double>>
                : record_multiplication<Product<float>>)(to, of);
}

/* The recorder of each computation. Shape_i has none: replay.h handles it. Other
 * computations without a recorder are called in each step. */
static const struct {
    computation compute;
    recorder record;
} recorders[] = {
    {advanced_inc_subtensor1, record_advanced_inc_subtensor1},
    {advanced_subtensor1, record_advanced_subtensor1},
    {alloc, record_alloc},
    {alloc_empty, record_alloc_empty},
    {assertion, record_view},
    {compute_gemv, record_product<gemv>},
    {compute_ger, record_product<ger>},
    {deep_copy, record_copy},
    {dimshuffle, record_dimshuffle},
    {elemwise, record_elemwise},
    {inc_subtensor, record_inc_subtensor},
    {join, record_join},
    {join_as, record_join_as},
    {rebroadcast, record_view},
    {reduce, record_reduce},
    {reshape, record_reshape},
    {specify_shape, record_view},
    {split, record_split},
    {subtensor, record_view},
};

/* Add a node's operations; return false if each step must call its thunk instead. */
static bool record_node(recording &to, const node &of) {
    const size_t before = to.operations.size();
    for (const auto &recorder : recorders)
        if (of.self && of.self->compute == recorder.compute && recorder.record(to, of))
            return true;
    to.operations.shorten(before);
    return false;
}

#endif
