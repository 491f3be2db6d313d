#ifndef THEANO_THUNKS_RECORDING_H
#define THEANO_THUNKS_RECORDING_H

/* Data structures of the replay (replay.h): the recorded operations, the variables and
 * nodes of the Scan's inner function, and the memory of a recording. */

#include "operations.h"

/* A list that grows. If memory runs out, it ends the process instead of reporting an
 * error, because it needs only some kB. It has no destructor, which would need the C++
 * library; its owner calls free(). */
template <typename T> class list {
    T *items = NULL;
    size_t length = 0, capacity = 0;

  public:
    list() = default;
    list(const list &) = delete;

    void free() {
        PyMem_Free(items);
    }

    void add(const T &item) {
        if (length == capacity) {
            capacity = 2 * capacity + 8;
            items = (T *)PyMem_Realloc(items, capacity * sizeof(T));
            if (!items)
                Py_FatalError("no memory for the recording of a step");
        }
        items[length++] = item;
    }

    size_t size() const {
        return length;
    }

    /* Remove items from the end until new_size items remain; keep the memory. */
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

/* An allocator of objects that are all freed together. */
class arena {
    /* The size of a block in bytes; a larger object has a block of its own. */
    enum { BLOCK = 1 << 15 };

    list<char *> blocks;
    /* The number of used bytes in the last block. */
    size_t used = 0;

    /* Free all blocks except the first n. */
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

    /* Free all objects. Keep the first block: most recordings need only one. */
    void clear() {
        shorten(1);
        used = 0;
    }

    /* Return uninitialized memory for n objects, aligned to 16 bytes. */
    template <typename T> T *allocate(size_t n) {
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

    /* Return a copy of n objects. */
    template <typename T> T *copy(const T *from, size_t n) {
        return (T *)memcpy(allocate<T>(n), from, n * sizeof(T));
    }
};

/* A variable of the Scan's inner function, "the function" below. */
struct variable {
    /* The storage of its value, a list of one object. */
    PyObject *storage;
    /* The variable that owns the value's memory: this variable, or the variable of
     * which it is a view. NULL if the value can be a view of several variables. */
    variable *root;
    /* Whether a recording may use the value: it is a tensor that neither Scan nor the
     * virtual machine replaces, or a view that the virtual machine clears. */
    bool is_tensor;
    /* Whether the value is the same in all steps of a call. */
    bool is_invariant;
    /* Whether the value is the same in all steps in which arrays have the recorded
     * dimensions: a length, for example. */
    bool is_fixed;
    /* Whether Scan sets its storage before each step: it is an input or output of the
     * function, and its value is not invariant. */
    bool is_slot;
    /* Whether it is an output of the function. */
    bool is_output;
    /* Whether an array differed from the recorded array in any step. If so, later
     * recordings do not use the variable's array. */
    bool has_changed;
    /* The recorded array in the storage, a borrowed reference. NULL if the recording
     * cannot assume that later steps have the same array. */
    PyArrayObject *array;
    /* Whether the root is a slot, and the array is the same object as the root's array.
     * If so, the array changes when Scan puts another array into the slot. */
    bool is_slot_array;
    /* The address of the array's data in the current step. */
    char *data;
    /* The array's properties. `layout` has its nd dimensions, then its nd strides. */
    PyArray_Descr *descr;
    int nd, flags;
    const npy_intp *layout;
    /* For a root that is a slot: pointers to all recorded addresses in its memory. They
     * are updated when the slot's array has another address. */
    list<char **> addresses;

    /* Return the address of the object in the storage. */
    PyObject **item() const {
        return theano_item(storage);
    }

    /* Record the array in the storage, and its properties. */
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
        npy_intp *dims_and_strides = memory.allocate<npy_intp>(2 * nd);
        memcpy(dims_and_strides, PyArray_DIMS(array), nd * sizeof(npy_intp));
        memcpy(dims_and_strides + nd, PyArray_STRIDES(array), nd * sizeof(npy_intp));
        layout = dims_and_strides;
    }

    /* Return whether an array has the properties of the recorded array. */
    bool is_like(PyArrayObject *other) const {
        const size_t size = nd * sizeof(npy_intp);
        return Py_TYPE(other) == &PyArray_Type && PyArray_DESCR(other) == descr &&
               PyArray_NDIM(other) == nd && PyArray_FLAGS(other) == flags &&
               !memcmp(PyArray_DIMS(other), layout, size) &&
               !memcmp(PyArray_STRIDES(other), layout + nd, size);
    }

    /* Return whether the storage contains the array that the recording expects, with
     * the expected properties and address. */
    bool is_expected() const {
        PyArrayObject *current = (PyArrayObject *)*item();
        return current == (is_slot_array ? root->array : array) && is_like(current) &&
               PyArray_BYTES(current) == data;
    }
};

/* A node of the Scan's inner function. */
struct node {
    /* The node's thunk if it is a struct thunk (thunk.h), otherwise NULL. */
    const thunk *self;
    Py_ssize_t number;
    int n_inputs, n_outputs;
    /* The variables; if `self` is not NULL, in the order of the thunk's storages. */
    variable **inputs, **outputs;
    /* Whether its results are the same in all steps of a call. Only the first step
     * computes such a node. */
    bool is_invariant;
    /* Whether its results are the same in all steps in which arrays have the recorded
     * dimensions. */
    bool is_fixed;

    /* Return the op's parameters. */
    const npy_intp *op() const {
        return (const npy_intp *)self->op;
    }

    /* Return the recorded array of input i. */
    PyArrayObject *input(int i) const {
        return inputs[i]->array;
    }

    /* Return the recorded array of output i. */
    PyArrayObject *output(int i) const {
        return outputs[i]->array;
    }

    /* Return whether all inputs from number `first` on are fixed. */
    bool has_fixed_inputs(int first) const {
        for (int i = first; i < n_inputs; i++)
            if (!inputs[i]->is_fixed)
                return false;
        return true;
    }
};

/* The recorded operations of a step, and the memory for them. */
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

    /* Add an operation of a node; the caller sets the fields of its type T. */
    template <typename T> T *add(const node &of, int (*run)(const operation *)) {
        T *added = memory.allocate<T>(1);
        added->run = run;
        added->node = of.number;
        operations.add(added);
        return added;
    }

    /* Set *address to the address of a variable's array plus an offset in bytes, and
     * update it whenever the array has another address. */
    void set_address(char **address, variable *of, npy_intp offset = 0) {
        *address = PyArray_BYTES(of->array) + offset;
        follow(address, of);
    }

    /* Update *address whenever the array of the variable's root has another address. */
    void follow(char **address, variable *of) {
        if (of->root && of->root->is_slot && of->root->array)
            of->root->addresses.add(address);
    }
};

#endif
