#ifndef THEANO_THUNKS_REPLAY_H
#define THEANO_THUNKS_REPLAY_H

/* Replay of the steps of a Scan.
 *
 * All steps compute the same nodes, usually on arrays of the same dimensions. Checking
 * a small node's arrays and preparing its loops take longer than the loops.
 * Therefore, the second step is recorded. After each thunk, the recorder of its op
 * (recorders.h) adds operations on addresses that do the thunk's work. From step to
 * step, the addresses of most arrays stay the same; only the elements of sequences and
 * outputs change. A later step updates their addresses and runs the operations.
 *
 * Ops without a recorder are not replayed: each step calls their thunks. If such a
 * thunk outputs an array that differs from the recorded array, the step calls the
 * thunks of all remaining nodes, and the next step is recorded again. */

#include <new>
#include "recorders.h"
#include "theano_replay.h"

/* The replay of one Scan's inner function. A step that fails, and each call of
 * `forget`, discards the recording. */
class replay : public theano_replay {
    Py_ssize_t n_variables = 0, n_nodes = 0;
    variable *variables = NULL;
    node *nodes = NULL;
    bool is_recorded = false;
    recording recorded;
    /* Since the first step: the number of replayed steps, and the number of thunks that
     * these steps called. */
    Py_ssize_t n_replayed = 0, n_called = 0;
    /* References to the views that operations put into the storages of outputs. Scan
     * clears these storages after a step, which would free the views. */
    list<PyObject *> views;
    /* Maps the address of a storage to the number of its variable. */
    PyObject *numbers = NULL;

  public:
    /* Discard the recording. */
    void forget() {
        is_recorded = false;
        recorded.clear();
        for (PyObject *view : views)
            Py_DECREF(view);
        views.shorten(0);
        for (Py_ssize_t i = 0; i < n_variables; i++) {
            variables[i].addresses.shorten(0);
            variables[i].array = NULL;
        }
    }

  private:
    /* Return whether each of n variables is fixed or has a recorded array. */
    static bool are_recorded(variable *const *variables, int n) {
        for (int i = 0; i < n; i++)
            if (!variables[i]->is_fixed && !variables[i]->array)
                return false;
        return true;
    }

    /* Return whether a recorder can use a node's arrays: all tensors must have recorded
     * arrays, and other inputs must be fixed. */
    static bool has_arrays(const node &of) {
        for (int i = 0; i < of.n_inputs; i++)
            if (of.inputs[i]->is_tensor ? !of.inputs[i]->array
                                        : !of.inputs[i]->is_fixed)
                return false;
        for (int i = 0; i < of.n_outputs; i++)
            if (!of.outputs[i]->array)
                return false;
        return true;
    }

    /* Return whether a node's results are the same in all steps in which arrays have
     * the recorded dimensions. A Shape_i of an array is fixed even if its elements
     * change. */
    static bool has_fixed_results(const node &of) {
        if (of.is_fixed && of.self && of.self->compute == shape_i)
            return are_recorded(of.inputs, of.n_inputs);
        return of.is_fixed && of.has_fixed_inputs(0);
    }

    /* Record the arrays that a node's thunk just computed. The array of a view is
     * usable only if the inputs and the root of the view have recorded arrays. */
    void record_outputs(const node &of) {
        const bool has_recorded_inputs = are_recorded(of.inputs, of.n_inputs);
        for (int i = 0; i < of.n_outputs; i++) {
            variable &output = *of.outputs[i];
            const variable *root = output.root;
            output.record(recorded.memory);
            if (&output == root)
                continue;
            if (!has_recorded_inputs || !root || !root->array)
                output.array = NULL;
            output.is_slot_array =
                output.array && root->is_slot && output.array == root->array;
        }
    }

    /* Record the effects of a node on its output views, because replayed steps do not
     * call the node's thunk: update a view's address when its root moves, and put the
     * view into its storage if Scan replaces the storage's content between steps. */
    void record_views(const node &of) {
        for (int i = 0; i < of.n_outputs; i++) {
            variable &output = *of.outputs[i];
            if (&output == output.root || !output.array)
                continue;
            bool is_new = !output.is_slot_array;
            for (int j = 0; j < of.n_inputs; j++)
                is_new = is_new && output.array != of.inputs[j]->array;
            if (is_new)
                recorded.follow(&((PyArrayObject_fields *)output.array)->data, &output);
            if (is_new && output.is_output)
                views.add(Py_NewRef((PyObject *)output.array));
            if (output.is_output || output.is_slot_array) {
                put_array *put = recorded.add<put_array>(of, put_array::run_it);
                put->item = output.item();
                put->array = output.is_slot_array ? &output.root->array : &output.array;
            }
        }
    }

    /* Call the thunks of the nodes from number `first` on, without invariant nodes
     * unless `all` is true. Return -1, or the number of the node that fails. */
    Py_ssize_t call_thunks(Py_ssize_t first, bool all, void *vm,
                           int (*call)(void *, Py_ssize_t)) const {
        for (Py_ssize_t i = first; i < n_nodes; i++)
            if ((all || !nodes[i].is_invariant) && call(vm, i))
                return i;
        return -1;
    }

    /* Call the thunks of a step, and record operations that do their work. Return -1,
     * or the number of the node that fails. */
    Py_ssize_t record(void *vm, int (*call)(void *, Py_ssize_t)) {
        forget();
        for (Py_ssize_t i = 0; i < n_variables; i++) {
            variables[i].record(recorded.memory);
            variables[i].is_fixed = variables[i].is_invariant;
        }
        for (Py_ssize_t i = 0; i < n_nodes; i++) {
            const node &current = nodes[i];
            if (current.is_invariant)
                continue;
            if (call(vm, i))
                return i;
            record_outputs(current);
            const bool is_fixed = has_fixed_results(current);
            for (int j = 0; j < current.n_outputs; j++)
                current.outputs[j]->is_fixed = is_fixed;
            if (is_fixed || (has_arrays(current) && record_node(recorded, current))) {
                record_views(current);
                continue;
            }
            recorded.add<operation>(current, NULL);
            for (int j = 0; j < current.n_outputs; j++) {
                variable &output = *current.outputs[j];
                if (output.array && &output != output.root)
                    recorded.follow(&output.data, &output);
            }
        }
        is_recorded = true;
        return -1;
    }

    /* Update all recorded addresses for the arrays that the slots contain in this step.
     * Return false if a slot's array has other properties than the recorded array. */
    bool update_addresses() {
        bool is_like = true;
        for (Py_ssize_t i = 0; i < n_variables; i++) {
            variable &slot = variables[i];
            if (!slot.is_slot || !slot.array || slot.root != &slot)
                continue;
            PyArrayObject *current = (PyArrayObject *)*slot.item();
            if (current != slot.array && !slot.is_like(current)) {
                slot.has_changed = true;
                is_like = false;
                continue;
            }
            slot.array = current;
            const npy_intp distance = PyArray_BYTES(current) - slot.data;
            slot.data += distance;
            for (char **address : slot.addresses)
                *address += distance;
        }
        return is_like;
    }

    /* Return whether the storages of a node's outputs contain the recorded arrays. */
    static bool is_expected(const node &of) {
        bool all = true;
        for (int i = 0; i < of.n_outputs; i++) {
            variable &output = *of.outputs[i];
            if (output.array && !output.is_expected()) {
                output.has_changed = true;
                all = false;
            }
        }
        return all;
    }

    /* Run the recorded operations. Return -1, or the number of the node that fails. */
    Py_ssize_t run_operations(void *vm, int (*call)(void *, Py_ssize_t)) {
        if (!update_addresses()) {
            forget();
            return call_thunks(0, false, vm, call);
        }
        for (const operation *next : recorded.operations) {
            const Py_ssize_t number = next->node;
            if (next->run ? next->run(next) : call(vm, number)) {
                forget();
                return number;
            }
            n_called += !next->run;
            if (!next->run && !is_expected(nodes[number])) {
                forget();
                return call_thunks(number + 1, false, vm, call);
            }
        }
        n_replayed++;
        return -1;
    }

    /* The function `run` of theano_replay. */
    static Py_ssize_t run_step(theano_replay *base, theano_replay_mode mode, void *vm,
                               int (*call)(void *, Py_ssize_t)) {
        replay *self = static_cast<replay *>(base);
        if (mode == THEANO_REPEATED)
            return self->is_recorded ? self->run_operations(vm, call)
                                     : self->record(vm, call);
        self->forget();
        self->n_replayed = self->n_called = 0;
        return self->call_thunks(0, mode == THEANO_FIRST, vm, call);
    }

    /* Return the variable of a storage, or NULL with an exception set. */
    variable *find_variable(PyObject *storage) const {
        PyObject *key = PyLong_FromVoidPtr(storage);
        PyObject *number = key ? PyDict_GetItemWithError(numbers, key) : NULL;
        Py_XDECREF(key);
        if (!number && !PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "a storage of a node has no variable");
        return number ? variables + PyLong_AsSsize_t(number) : NULL;
    }

    /* Add the variables from a list of tuples. A tuple has a storage, the number of the
     * root or -1, and four truth values: is_tensor, is_invariant, is_slot and is_output
     * (struct variable). Return false on failure. If no exception is set, memory has
     * run out. */
    bool add_variables(PyObject *tuples) {
        const Py_ssize_t n = PyList_GET_SIZE(tuples);
        numbers = PyDict_New();
        variables = (variable *)PyMem_Calloc(n + 1, sizeof(variable));
        if (!numbers || !variables)
            return false;
        for (; n_variables < n; n_variables++) {
            variable &added = *new (variables + n_variables) variable();
            Py_ssize_t root;
            int is_tensor, is_invariant, is_slot, is_output;
            if (!PyArg_ParseTuple(PyList_GET_ITEM(tuples, n_variables), "O!npppp",
                                  &PyList_Type, &added.storage, &root, &is_tensor,
                                  &is_invariant, &is_slot, &is_output))
                return false;
            Py_INCREF(added.storage);
            added.root = root < 0 ? NULL : variables + root;
            added.is_tensor = is_tensor;
            added.is_invariant = is_invariant;
            added.is_slot = is_slot;
            added.is_output = is_output;
            PyObject *key = PyLong_FromVoidPtr(added.storage);
            PyObject *number = PyLong_FromSsize_t(n_variables);
            const bool failed = !key || !number || PyDict_SetItem(numbers, key, number);
            Py_XDECREF(key);
            Py_XDECREF(number);
            if (failed) {
                n_variables++;
                return false;
            }
        }
        return true;
    }

    /* Set *result to a new array of the variables of n storages. Return false on
     * failure. If no exception is set, memory has run out. */
    bool find_variables(PyObject *const *storages, int n, variable ***result) const {
        *result = (variable **)PyMem_Calloc(n + 1, sizeof(variable *));
        for (int i = 0; i < n && *result; i++) {
            (*result)[i] = find_variable(storages[i]);
            if (!(*result)[i])
                return false;
        }
        return *result;
    }

    /* Add the nodes from a list of tuples. A tuple has a C thunk or None, the tuples of
     * the storages of the inputs and of the outputs, and two truth values: is_invariant
     * and is_fixed (struct node). Return false on failure. If no exception is set,
     * memory has run out. */
    bool add_nodes(PyObject *tuples) {
        const Py_ssize_t n = PyList_GET_SIZE(tuples);
        nodes = (node *)PyMem_Calloc(n + 1, sizeof(node));
        if (!nodes)
            return false;
        while (n_nodes < n) {
            PyObject *capsule, *inputs, *outputs;
            int is_invariant, is_fixed;
            node &added = nodes[n_nodes++];
            if (!PyArg_ParseTuple(PyList_GET_ITEM(tuples, n_nodes - 1), "OO!O!pp",
                                  &capsule, &PyTuple_Type, &inputs, &PyTuple_Type,
                                  &outputs, &is_invariant, &is_fixed))
                return false;
            added.number = n_nodes - 1;
            added.is_invariant = is_invariant;
            added.is_fixed = is_fixed;
            added.n_inputs = PyTuple_GET_SIZE(inputs);
            added.n_outputs = PyTuple_GET_SIZE(outputs);
            PyObject *const *storages = ((PyTupleObject *)inputs)->ob_item;
            PyObject *const *results = ((PyTupleObject *)outputs)->ob_item;
            if (PyCapsule_CheckExact(capsule) && !PyCapsule_GetName(capsule) &&
                PyCapsule_GetPointer(capsule, NULL) == (void *)::run) {
                added.self = (const thunk *)PyCapsule_GetContext(capsule);
                added.n_inputs = added.self->n_inputs;
                added.n_outputs = added.self->n_outputs;
                storages = added.self->storages;
                results = storages + added.n_inputs;
            }
            if (!find_variables(storages, added.n_inputs, &added.inputs) ||
                !find_variables(results, added.n_outputs, &added.outputs))
                return false;
        }
        return true;
    }

    static void destroy(PyObject *capsule) {
        from(capsule)->free();
    }

    /* Free this object and its memory. */
    void free() {
        forget();
        for (Py_ssize_t i = 0; i < n_nodes; i++) {
            PyMem_Free(nodes[i].inputs);
            PyMem_Free(nodes[i].outputs);
        }
        for (Py_ssize_t i = 0; i < n_variables; i++) {
            Py_XDECREF(variables[i].storage);
            variables[i].addresses.free();
        }
        PyMem_Free(nodes);
        PyMem_Free(variables);
        Py_XDECREF(numbers);
        recorded.free();
        views.free();
        PyMem_Free(this);
    }

  public:
    /* Return the replay that a capsule contains, or NULL with an exception set. */
    static replay *from(PyObject *capsule) {
        theano_replay *base =
            (theano_replay *)PyCapsule_GetPointer(capsule, THEANO_REPLAY);
        return static_cast<replay *>(base);
    }

    /* Return n_replayed and n_called as a Python tuple. */
    PyObject *counts() const {
        return Py_BuildValue("nn", n_replayed, n_called);
    }

    /* Make a capsule with a replay; add_variables and add_nodes describe the tuples.
     * Return NULL and set an exception on failure. */
    static PyObject *make(PyObject *tuples_of_variables, PyObject *tuples_of_nodes) {
        void *memory = PyMem_Malloc(sizeof(replay));
        if (!memory)
            return PyErr_NoMemory();
        replay *self = new (memory) replay();
        self->run = run_step;
        PyObject *capsule =
            PyCapsule_New(static_cast<theano_replay *>(self), THEANO_REPLAY, destroy);
        if (!capsule) {
            self->free();
        } else if (!self->add_variables(tuples_of_variables) ||
                   !self->add_nodes(tuples_of_nodes)) {
            if (!PyErr_Occurred())
                PyErr_NoMemory();
            Py_CLEAR(capsule);
        }
        return capsule;
    }
};

/* make_replay(variables, nodes): return the replay of a Scan's inner function, a
 * capsule. describe_scan() of theano/scan_module/replay.py makes the arguments. */
static PyObject *make_replay(PyObject *, PyObject *arguments) {
    PyObject *variables, *nodes;
    if (!PyArg_ParseTuple(arguments, "O!O!", &PyList_Type, &variables, &PyList_Type,
                          &nodes))
        return NULL;
    return replay::make(variables, nodes);
}

/* forget(capsule): discard the recording of a replay, because it refers to arrays.
 * Return the number of steps that were replayed since the first step, and the number of
 * thunks that these steps called. */
static PyObject *forget(PyObject *, PyObject *capsule) {
    replay *self = replay::from(capsule);
    if (!self)
        return NULL;
    self->forget();
    return self->counts();
}

#endif
