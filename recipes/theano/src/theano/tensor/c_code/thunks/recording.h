#ifndef THEANO_THUNKS_RECORDING_H
#define THEANO_THUNKS_RECORDING_H

/* Memory of a recording (replay.h): its operations, and the addresses that move. */

#include "operations.h"

/* A list that grows. It ends the process if there is no memory: a list has some kB. It
 * has no destructor, because that needs the C++ library. */
template <typename T> class list {
    T *items = NULL;
    size_t length = 0, room = 0;

  public:
    list() = default;
    list(const list &) = delete;

    void free() {
        PyMem_Free(items);
    }

    void add(const T &item) {
        if (length == room) {
            room = 2 * room + 8;
            items = (T *)PyMem_Realloc(items, room * sizeof(T));
            if (!items)
                Py_FatalError("no memory for the recording of a step");
        }
        items[length++] = item;
    }

    size_t size() const {
        return length;
    }

    /* Remove items from the end, and keep the memory. */
    void shorten(size_t new_size) {
        length = new_size;
    }

    T *begin() const {
        return items;
    }

    T *end() const {
        return items + length;
    }
};

/* Memory that is freed at once. */
class arena {
    enum { BLOCK = 1 << 15 };

    list<char *> blocks;
    size_t used = 0;

    /* Free the blocks after the first one, which most recordings need only. */
    void shorten(size_t n) {
        while (blocks.size() > n) {
            PyMem_Free(blocks.end()[-1]);
            blocks.shorten(blocks.size() - 1);
        }
    }

  public:
    void free() {
        shorten(0);
        blocks.free();
    }

    void clear() {
        shorten(1);
        used = 0;
    }

    /* Return memory for n objects. */
    template <typename T> T *take(size_t n) {
        const size_t size = (n * sizeof(T) + 15) / 16 * 16;
        if (!blocks.size() || used + size > BLOCK) {
            blocks.add((char *)PyMem_Malloc(std::max<size_t>(size, BLOCK)));
            if (!blocks.end()[-1])
                Py_FatalError("no memory for the recording of a step");
            used = 0;
        }
        T *memory = (T *)(blocks.end()[-1] + used);
        used += size;
        return memory;
    }

    template <typename T> T *copy(const T *from, size_t n) {
        return (T *)memcpy(take<T>(n), from, n * sizeof(T));
    }
};

/* A variable of the function. */
struct variable {
    /* The storage of its value. */
    PyObject *storage;
    /* The variable that owns the value's memory: itself, or the variable of which it is
     * a view; NULL if there can be several. */
    variable *root;
    bool is_tensor;
    /* Whether the value is the same in all steps: always, or while arrays keep their
     * dimensions. */
    bool is_invariant, is_fixed;
    /* Whether it is an input or output of the function: Scan sets its storage before
     * each step. */
    bool is_slot;
    /* Whether it is an output of the function. */
    bool is_output;
    /* Whether a step found an array that differs from the recorded array. */
    bool has_changed;
    /* The array in the storage, borrowed; NULL if the recording cannot rely on it. */
    PyArrayObject *array;
    /* Whether the array is the root's own array, which is a slot's. Scan may put
     * another array into the slot before a step. */
    bool is_slot_array;
    /* The address of the array's data in this step. */
    char *data;
    /* The array's properties; `layout` has its dimensions, then its strides. */
    PyArray_Descr *descr;
    int nd, flags;
    const npy_intp *layout;
    /* For a root: the addresses that move with it. */
    list<char **> addresses;

    PyObject **item() const {
        return theano_item(storage);
    }

    /* Record the array in the storage. */
    void record(arena &memory) {
        PyObject *value = *item();
        array = NULL;
        is_slot_array = false;
        if (!is_tensor || has_changed || Py_TYPE(value) != &PyArray_Type)
            return;
        array = (PyArrayObject *)value;
        data = PyArray_BYTES(array);
        descr = PyArray_DESCR(array);
        nd = PyArray_NDIM(array);
        flags = PyArray_FLAGS(array);
        npy_intp *both = memory.take<npy_intp>(2 * nd);
        memcpy(both, PyArray_DIMS(array), nd * sizeof(npy_intp));
        memcpy(both + nd, PyArray_STRIDES(array), nd * sizeof(npy_intp));
        layout = both;
    }

    /* Return whether an array has the properties of the recorded array. */
    bool is_like(PyArrayObject *other) const {
        const size_t size = nd * sizeof(npy_intp);
        return Py_TYPE(other) == &PyArray_Type && PyArray_DESCR(other) == descr &&
               PyArray_NDIM(other) == nd && PyArray_FLAGS(other) == flags &&
               !memcmp(PyArray_DIMS(other), layout, size) &&
               !memcmp(PyArray_STRIDES(other), layout + nd, size);
    }

    /* Return whether the thunk put the array into the storage that the recording
     * expects. */
    bool is_expected() const {
        PyArrayObject *now = (PyArrayObject *)*item();
        return now == (is_slot_array ? root->array : array) && is_like(now) &&
               PyArray_BYTES(now) == data;
    }
};

/* A node of the function. */
struct node {
    /* The thunk if it is precompiled, otherwise NULL. */
    const thunk *self;
    Py_ssize_t number;
    int n_inputs, n_outputs;
    /* In the order of the thunk's storages if there is one. */
    variable **inputs, **outputs;
    /* Whether its results are the same in all steps: always, or while arrays keep their
     * dimensions. Only the first step computes an invariant node. */
    bool is_invariant, is_fixed;

    const npy_intp *op() const {
        return (const npy_intp *)self->op;
    }

    PyArrayObject *input(int i) const {
        return inputs[i]->array;
    }

    PyArrayObject *output(int i) const {
        return outputs[i]->array;
    }

    /* Return whether the inputs from number `first` on are the same in all steps. */
    bool has_fixed_inputs(int first) const {
        for (int i = first; i < n_inputs; i++)
            if (!inputs[i]->is_fixed)
                return false;
        return true;
    }
};

/* The operations of a step. */
struct recording {
    arena memory;
    list<operation *> operations;

    void clear() {
        memory.clear();
        operations.shorten(0);
    }

    void free() {
        memory.free();
        operations.free();
    }

    /* Add an operation of a node. */
    template <typename T> T *add(const node &of, int (*run)(const operation *)) {
        T *added = memory.take<T>(1);
        added->run = run;
        added->node = of.number;
        operations.add(added);
        return added;
    }

    /* Set an address to an array's, and let it move with the array. */
    void set_address(char **address, variable *of, npy_intp offset = 0) {
        *address = PyArray_BYTES(of->array) + offset;
        follow(address, of);
    }

    /* Let an address move with an array. */
    void follow(char **address, variable *of) {
        if (of->root && of->root->is_slot && of->root->array)
            of->root->addresses.add(address);
    }
};

#endif
