/*
  The loop over a Scan's steps in C, without Python's overhead for each slice.
  Scan.execute prepares the arguments and calls the function run.

  Slices of sequences and outputs are ndarrays in the storages of the inner
  function. If nothing else refers to such an ndarray, the next step changes its
  address to the next slice instead of making another object.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#include <string.h>

/* A cell, and the element that this loop put into it: an item of an array along the
   array's first axis. A cell is the storage of an input or output of the inner
   function, a list of one object. */
typedef struct {
    PyObject *cell;
    PyObject *element; /* the element, or NULL: an owned reference */
    PyObject *array; /* the element's array if it is an ndarray, else NULL: borrowed */
    char *data;      /* the element's address if it is an ndarray */
    npy_intp stride; /* the distance to the array's next element in bytes */
    npy_intp n_next; /* how many elements follow to which `data` may move */
    PyObject *address; /* the address as a Python number if element is on a device */
} Slot;

/* Replace the object in a cell. */
static void set_cell(PyObject *cell, PyObject *value) {
    PyObject *old = PyList_GET_ITEM(cell, 0);
    Py_INCREF(value);
    PyList_SET_ITEM(cell, 0, value);
    Py_XDECREF(old);
}

/* Return the object in a cell, a borrowed reference. */
static PyObject *get_cell(PyObject *cell) {
    return PyList_GET_ITEM(cell, 0);
}

/* Return the address of a device array as a Python number. OpenCL has no addresses, and
   the attribute gpudata raises TypeError. For OpenCL, return the sum of the memory
   object's address and the offset, which identifies the memory. */
static PyObject *address_of(PyObject *array) {
    PyObject *base, *offset, *sum = PyObject_GetAttrString(array, "gpudata");
    if (sum != NULL || !PyErr_ExceptionMatches(PyExc_TypeError))
        return sum;
    PyErr_Clear();
    base = PyObject_GetAttrString(array, "base_data");
    if (base == NULL)
        return NULL;
    offset = PyObject_GetAttrString(array, "offset");
    sum = offset == NULL ? NULL : PyNumber_Add(base, offset);
    Py_DECREF(base);
    Py_XDECREF(offset);
    return sum;
}

/* Return 1 if the cell still contains the slot's element at the same address, 0 if the
   inner function replaced or moved it, or -1 with an exception set. */
static int has_kept_element(Slot *slot) {
    PyObject *current = get_cell(slot->cell), *address;
    int same;
    if (slot->element == NULL || current != slot->element)
        return 0;
    if (PyArray_Check(current))
        return PyArray_BYTES((PyArrayObject *)current) == slot->data;
    address = address_of(current);
    if (address == NULL)
        return -1;
    same = PyObject_RichCompareBool(address, slot->address, Py_EQ);
    Py_DECREF(address);
    return same;
}

/* Return whether a slot's element may get another address: only the cell and this slot
   refer to it, so no other code sees the change, and it is not the base of a view. */
static int can_move(Slot *slot) {
    return get_cell(slot->cell) == slot->element && Py_REFCNT(slot->element) == 2;
}

/* Move a slot's element to another address. */
static void move_element(Slot *slot, char *data) {
    ((PyArrayObject_fields *)slot->element)->data = data;
    slot->data = data;
}

/* Put the next element of the slot's array into a slot, without a look at the array.
   Return whether that was possible. */
static int put_next_element(Slot *slot) {
    if (slot->n_next <= 0 || !can_move(slot))
        return 0;
    move_element(slot, slot->data + slot->stride);
    --slot->n_next;
    return 1;
}

/* Put array[index] into a slot. The element of a vector is a 0-d ndarray, not a NumPy
   scalar. Return 0, or -1 with an exception set. */
static int put_element(Slot *slot, PyObject *array, Py_ssize_t index) {
    PyArrayObject *whole = (PyArrayObject *)array;
    PyObject *element;
    if (PyArray_Check(array) && PyArray_NDIM(whole) > 0 && 0 <= index &&
        index < PyArray_DIM(whole, 0)) {
        char *data = PyArray_BYTES(whole) + index * PyArray_STRIDE(whole, 0);
        slot->stride = PyArray_STRIDE(whole, 0);
        slot->n_next = PyArray_ISALIGNED(whole) ? PyArray_DIM(whole, 0) - index - 1 : 0;
        if (slot->array == array && PyArray_ISALIGNED(whole) && can_move(slot)) {
            move_element(slot, data);
            return 0;
        }
        Py_INCREF(PyArray_DESCR(whole));
        element = PyArray_NewFromDescr(
            &PyArray_Type, PyArray_DESCR(whole), PyArray_NDIM(whole) - 1,
            PyArray_DIMS(whole) + 1, PyArray_STRIDES(whole) + 1, data,
            PyArray_FLAGS(whole) & NPY_ARRAY_WRITEABLE, NULL);
        if (element == NULL)
            return -1;
        Py_INCREF(array);
        if (PyArray_SetBaseObject((PyArrayObject *)element, array)) {
            Py_DECREF(element);
            return -1;
        }
        slot->data = data;
        slot->array = array;
    } else {
        PyObject *address;
        element = PySequence_GetItem(array, index);
        if (element == NULL)
            return -1;
        address = address_of(element);
        if (address == NULL) {
            Py_DECREF(element);
            return -1;
        }
        Py_XSETREF(slot->address, address);
        slot->array = NULL;
        slot->n_next = 0;
    }
    Py_XSETREF(slot->element, element);
    set_cell(slot->cell, element);
    return 0;
}

/* Remove the element of a slot, and put None into its cell. */
static void clear_slot(Slot *slot) {
    Py_CLEAR(slot->element);
    slot->array = NULL;
    slot->n_next = 0;
    set_cell(slot->cell, Py_None);
}

/* Prepare the slot of a result that was copied to the output. If only the cell refers
   to the old result, keep it there: the inner function can write the next result into
   its memory. Otherwise, clear the slot. */
static void keep_or_clear(Slot *slot) {
    PyObject *value = get_cell(slot->cell);
    if (slot->element || Py_TYPE(value) != &PyArray_Type || Py_REFCNT(value) != 1 ||
        !(PyArray_FLAGS((PyArrayObject *)value) & NPY_ARRAY_OWNDATA))
        clear_slot(slot);
}

/* Return whether memmove can copy `value` to array[0]: whether both have one dtype
   without Python objects, equal shapes, and contiguous elements. */
static int has_same_layout(PyArrayObject *array, PyArrayObject *value) {
    npy_intp stride = PyArray_ITEMSIZE(array);
    int axis;
    if (PyArray_DESCR(array) != PyArray_DESCR(value) ||
        PyDataType_REFCHK(PyArray_DESCR(array)) ||
        PyArray_NDIM(array) != PyArray_NDIM(value) + 1 || !PyArray_ISWRITEABLE(array) ||
        !PyArray_IS_C_CONTIGUOUS(value))
        return 0;
    for (axis = PyArray_NDIM(array) - 1; axis > 0; --axis) {
        if (PyArray_DIM(array, axis) != PyArray_DIM(value, axis - 1) ||
            PyArray_STRIDE(array, axis) != stride)
            return 0;
        stride *= PyArray_DIM(array, axis);
    }
    return 1;
}

/* Assign array[index] = value. Return 0, or -1 with an exception set. */
static int assign_element(PyObject *array, Py_ssize_t index, PyObject *value) {
    PyArrayObject *whole = (PyArrayObject *)array;
    PyObject *key;
    int status;
    if (PyArray_Check(array) && PyArray_Check(value) && 0 <= index &&
        PyArray_NDIM(whole) > 0 && index < PyArray_DIM(whole, 0) &&
        has_same_layout(whole, (PyArrayObject *)value)) {
        memmove(PyArray_BYTES(whole) + index * PyArray_STRIDE(whole, 0),
                PyArray_BYTES((PyArrayObject *)value),
                PyArray_NBYTES((PyArrayObject *)value));
        return 0;
    }
    /* PySequence_SetItem does not work: a device array implements only the mapping
       protocol. */
    key = PyLong_FromSsize_t(index);
    status = key == NULL ? -1 : PyObject_SetItem(array, key, value);
    Py_XDECREF(key);
    return status;
}

/* Converter for the format O& of PyArg_Parse: set the pointer at `address` to a
   contiguous array of intp and return 1; for other objects, set TypeError and return
   0. */
static int convert_intp_array(PyObject *object, void *address) {
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_TYPE(array) != NPY_INTP ||
        !PyArray_IS_C_CONTIGUOUS(array)) {
        PyErr_SetString(PyExc_TypeError, "a contiguous array of intp is needed");
        return 0;
    }
    *(PyArrayObject **)address = array;
    return 1;
}

static void free_slots(Slot *slots, Py_ssize_t length) {
    Py_ssize_t i;
    for (i = 0; slots && i < length; ++i) {
        Py_XDECREF(slots[i].element);
        Py_XDECREF(slots[i].address);
    }
    PyMem_Free(slots);
}

/* Return slots without elements for a list of cells, or NULL with an exception set. */
static Slot *make_slots(PyObject *cells) {
    Py_ssize_t i, length = PyList_GET_SIZE(cells);
    Slot *slots = PyMem_Calloc(length + 1, sizeof(Slot));
    if (slots == NULL)
        PyErr_NoMemory();
    for (i = 0; slots && i < length; ++i)
        slots[i].cell = PyList_GET_ITEM(cells, i);
    return slots;
}

/* Replace the current exception by the ValueError for an output that changed its shape.
   The current exception becomes its __cause__. */
static void set_shape_error(void) {
    PyObject *type, *cause, *value, *traceback;
    PyErr_Fetch(&type, &cause, &traceback);
    PyErr_NormalizeException(&type, &cause, &traceback);
    Py_XDECREF(type);
    Py_XDECREF(traceback);
    PyErr_SetString(PyExc_ValueError,
                    "An output of the scan has changed shape. "
                    "This may be caused by a pushout optimization. Try adding "
                    "'optimizer_excluding=scanOp_pushout_output' "
                    "to your Theano flags.");
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    PyException_SetCause(value, cause);
    PyErr_Restore(type, value, traceback);
}

static const char run_doc[] =
    "run(call, repeating, inputs, results, n_seqs, n_mit_mot, n_outs, n_shared,\n"
    "    as_while, taps, written, vectors, args, outs, position, length, n_steps,\n"
    "    allocate)\n"
    "--\n\n"
    "Run the steps of a Scan. Return the number of steps that ran, which an until\n"
    "condition can reduce.\n"
    "\n"
    "call: a function without arguments that calls the inner function.\n"
    "repeating: the virtual machine of the inner function, or None. After the first\n"
    "    step, its attribute `repeated` is set to True.\n"
    "inputs, results: the storages of the inner function's inputs and outputs: lists\n"
    "    of lists of one object.\n"
    "n_seqs, n_mit_mot, n_outs, n_shared: the numbers of sequences, of mit_mot\n"
    "    outputs, of outputs with an initial state, and of shared outputs.\n"
    "as_while: whether the inner function returns an until condition.\n"
    "taps: rows (output, tap), one for each input that follows the sequences.\n"
    "written: rows (output, tap, input), one for each result of a mit_mot output.\n"
    "    `input` is the number of the input that the inner function updates in-place,\n"
    "    or -1.\n"
    "vectors: for each output except the shared outputs, whether it is a vector.\n"
    "args, outs: the arguments of Scan.execute.\n"
    "position: for each output except the shared outputs, the index at which the next\n"
    "    step stores its value. The steps update this array.\n"
    "length: for each output except the shared outputs, the number of stored values.\n"
    "n_steps: the maximum number of steps.\n"
    "allocate: called as allocate(j, value) with the first value of an output without\n"
    "    an initial state; sets outs[j] to an array for such values.\n";

static PyObject *run(PyObject *Py_UNUSED(module), PyObject *arguments,
                     PyObject *keywords) {
    static char *names[] = {"call",     "repeating", "inputs",   "results",
                            "n_seqs",   "n_mit_mot", "n_outs",   "n_shared",
                            "as_while", "taps",      "written",  "vectors",
                            "args",     "outs",      "position", "length",
                            "n_steps",  "allocate",  NULL};
    PyObject *call, *repeating, *input_cells, *result_cells, *args, *outs, *allocate,
        *outcome = NULL, *zero = NULL;
    PyArrayObject *taps, *written, *vectors, *positions, *lengths;
    Py_ssize_t n_seqs, n_mit_mot, n_outs, n_shared, n_steps, n_stored, n_taps,
        n_written, step = 0, i, j;
    npy_intp *tap, *write, *position, *length, *vector;
    Slot *inputs = NULL, *results = NULL, *input, *result;
    int as_while, continues = 1, done;

    if (!PyArg_ParseTupleAndKeywords(
            arguments, keywords, "OOO!O!nnnnpO&O&O&O!O!O&O&nO", names, &call,
            &repeating, &PyList_Type, &input_cells, &PyList_Type, &result_cells,
            &n_seqs, &n_mit_mot, &n_outs, &n_shared, &as_while, convert_intp_array,
            &taps, convert_intp_array, &written, convert_intp_array, &vectors,
            &PyList_Type, &args, &PyList_Type, &outs, convert_intp_array, &positions,
            convert_intp_array, &lengths, &n_steps, &allocate))
        return NULL;
    tap = PyArray_DATA(taps);
    write = PyArray_DATA(written);
    vector = PyArray_DATA(vectors);
    position = PyArray_DATA(positions);
    length = PyArray_DATA(lengths);
    n_taps = PyArray_SIZE(taps) / 2;
    n_written = PyArray_SIZE(written) / 3;
    n_stored = PyArray_SIZE(positions);

#define ARGUMENT(index) PyList_GET_ITEM(args, index)
#define OUTPUT(index) PyList_GET_ITEM(PyList_GET_ITEM(outs, index), 0)
/* Whether the inner function may write result j directly into output j. In the first
   step, the output may not exist yet. With a length of 1, the step reads the element
   that it would overwrite. Values of vectors are scalars, which are copied. */
#define DIRECT(j) (step > 0 && length[j] != 1 && !vector[j])

    zero = PyLong_FromLong(0);
    inputs = make_slots(input_cells);
    results = make_slots(result_cells);
    if (!zero || !inputs || !results)
        goto end;

    for (; step < n_steps && continues; ++step) {
        /* Set the inputs of the inner function. */
        input = inputs;
        for (i = 0; i < n_seqs; ++i, ++input)
            if (!put_next_element(input) && put_element(input, ARGUMENT(1 + i), step))
                goto end;
        for (i = 0; i < n_taps; ++i, ++input) {
            j = tap[2 * i];
            Py_ssize_t index = (position[j] + tap[2 * i + 1]) % length[j];
            if (put_element(input, OUTPUT(j), index < 0 ? index + length[j] : index))
                goto end;
        }
        for (i = 0; i < n_shared; ++i, ++input)
            set_cell(input->cell, step == 0 ? ARGUMENT(1 + n_seqs + n_outs + i)
                                            : OUTPUT(n_stored + i));

        /* Prepare the storages of the results. */
        result = results;
        for (i = 0; i < n_written; ++i)
            if (write[3 * i + 2] < 0)
                (step ? keep_or_clear : clear_slot)(result++);
        for (j = n_mit_mot; j < n_stored; ++j, ++result)
            if (!DIRECT(j))
                (step ? keep_or_clear : clear_slot)(result);
            else if (put_element(result, OUTPUT(j), position[j]))
                goto end;
        for (i = 0; i < n_shared; ++i)
            clear_slot(result++);
        if (as_while)
            (step ? keep_or_clear : clear_slot)(result++);

        outcome = PyObject_CallObject(call, NULL);
        if (outcome == NULL)
            goto end;
        Py_CLEAR(outcome);
        if (step == 0 && repeating != Py_None &&
            PyObject_SetAttrString(repeating, "repeated", Py_True))
            goto end;
        if (as_while) {
            continues =
                PyObject_RichCompareBool(get_cell(result[-1].cell), zero, Py_EQ);
            if (continues < 0)
                goto end;
        }

        /* Copy the results that the inner function did not write into the outputs. */
        result = results;
        for (i = 0; i < n_written; ++i, write += 3) {
            PyObject *cell;
            if (write[2] < 0)
                cell = (result++)->cell;
            else {
                Slot *updated = &inputs[write[2]];
                cell = updated->cell;
                done = has_kept_element(updated);
                if (done < 0)
                    goto end;
                if (done)
                    continue;
            }
            j = write[0];
            if (assign_element(OUTPUT(j), write[1] + position[j], get_cell(cell)))
                goto end;
        }
        write -= 3 * n_written;
        for (j = n_mit_mot; j < n_stored; ++j, ++result) {
            if (step == 0 && j >= n_outs) {
                outcome =
                    PyObject_CallFunction(allocate, "nO", j, get_cell(result->cell));
                if (outcome == NULL)
                    goto end;
                Py_CLEAR(outcome);
            }
            done = DIRECT(j) ? has_kept_element(result) : 0;
            if (done < 0)
                goto end;
            if (!done &&
                assign_element(OUTPUT(j), position[j], get_cell(result->cell))) {
                if (step > 0 && PyErr_ExceptionMatches(PyExc_ValueError))
                    set_shape_error();
                goto end;
            }
        }
        for (i = 0; i < n_shared; ++i, ++result)
            set_cell(PyList_GET_ITEM(outs, n_stored + i), get_cell(result->cell));
        /* The last results are the inputs that the step updated in-place. Remove these
           references, so that the next step can change the addresses of the inputs. */
        for (result += as_while; result < results + PyList_GET_SIZE(result_cells);
             ++result)
            clear_slot(result);

        for (j = 0; j < n_stored; ++j)
            position[j] = (position[j] + 1) % length[j];
    }
    outcome = PyLong_FromSsize_t(step);

end:
    if (inputs)
        free_slots(inputs, PyList_GET_SIZE(input_cells));
    if (results)
        free_slots(results, PyList_GET_SIZE(result_cells));
    Py_XDECREF(zero);
    return outcome;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))run, METH_VARARGS | METH_KEYWORDS, run_doc},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "scan_steps", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_scan_steps(void) {
    import_array();
    return PyModule_Create(&definition);
}
