/*
  The loop over a Scan's steps, which Scan.execute runs after its preparations,
  without Python's overhead for each slice.

  Slices of sequences and outputs are ndarrays in the storage of the inner
  function. If nothing else refers to a slice, the next step moves it to the
  next position instead of making another object.
*/
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <numpy/arrayobject.h>
#include <string.h>

/* An element of an array along its first axis, in a cell: a list of one object. */
typedef struct {
    PyObject *cell;
    PyObject *element; /* the element in the cell: an owned reference */
    PyObject *array;   /* the array of the element: a borrowed reference */
    void *data;        /* the element's address, if it is an ndarray */
    PyObject *address; /* its address as a number, if it is not */
} Slot;

static void put(PyObject *cell, PyObject *value) {
    PyObject *old = PyList_GET_ITEM(cell, 0);
    Py_INCREF(value);
    PyList_SET_ITEM(cell, 0, value);
    Py_XDECREF(old);
}

static PyObject *get(PyObject *cell) {
    return PyList_GET_ITEM(cell, 0);
}

/* Return the address of a device array as a number. OpenCL has no addresses: there,
   the address of the memory object plus the offset identifies the memory. */
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

/* Return whether a cell still has the slot's element at the same address; -1 on
   error. */
static int untouched(Slot *slot) {
    PyObject *now = get(slot->cell), *address;
    int same;
    if (slot->element == NULL || now != slot->element)
        return 0;
    if (PyArray_Check(now))
        return PyArray_DATA((PyArrayObject *)now) == slot->data;
    address = address_of(now);
    if (address == NULL)
        return -1;
    same = PyObject_RichCompareBool(address, slot->address, Py_EQ);
    Py_DECREF(address);
    return same;
}

/* Put array[index] into a slot; an element of a vector is a 0-d ndarray. */
static int show(Slot *slot, PyObject *array, Py_ssize_t index) {
    PyArrayObject *whole = (PyArrayObject *)array;
    PyObject *element;
    if (PyArray_Check(array) && PyArray_NDIM(whole) > 0 && 0 <= index &&
        index < PyArray_DIM(whole, 0)) {
        char *data = PyArray_BYTES(whole) + index * PyArray_STRIDE(whole, 0);
        /* Only the storage and this slot refer to the element, so the move is
           invisible and no view depends on it. */
        if (slot->array == array && PyArray_ISALIGNED(whole) &&
            get(slot->cell) == slot->element && Py_REFCNT(slot->element) == 2) {
            ((PyArrayObject_fields *)slot->element)->data = data;
            slot->data = data;
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
    }
    Py_XSETREF(slot->element, element);
    put(slot->cell, element);
    return 0;
}

/* Clear a slot and put None into its cell. */
static void blank(Slot *slot) {
    Py_CLEAR(slot->element);
    slot->array = NULL;
    put(slot->cell, Py_None);
}

/* Let the inner function write its next result into the memory of the last one, which
   was copied, if nothing else refers to it. Otherwise, blank the slot. */
static void reuse(Slot *slot) {
    PyObject *value = get(slot->cell);
    if (slot->element || Py_TYPE(value) != &PyArray_Type || Py_REFCNT(value) != 1 ||
        !(PyArray_FLAGS((PyArrayObject *)value) & NPY_ARRAY_OWNDATA))
        blank(slot);
}

/* Return whether memcpy can copy the value to array[0]. */
static int same_layout(PyArrayObject *array, PyArrayObject *value) {
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

/* array[index] = value */
static int store(PyObject *array, Py_ssize_t index, PyObject *value) {
    PyArrayObject *whole = (PyArrayObject *)array;
    PyObject *key;
    int status;
    if (PyArray_Check(array) && PyArray_Check(value) && 0 <= index &&
        PyArray_NDIM(whole) > 0 && index < PyArray_DIM(whole, 0) &&
        same_layout(whole, (PyArrayObject *)value)) {
        memmove(PyArray_BYTES(whole) + index * PyArray_STRIDE(whole, 0),
                PyArray_BYTES((PyArrayObject *)value),
                PyArray_NBYTES((PyArrayObject *)value));
        return 0;
    }
    /* PySequence_SetItem rejects a device array, which is only a mapping. */
    key = PyLong_FromSsize_t(index);
    status = key == NULL ? -1 : PyObject_SetItem(array, key, value);
    Py_XDECREF(key);
    return status;
}

/* Convert an argument, for PyArg_Parse: return 1 if the object is a contiguous array of
   intp, otherwise set an exception and return 0. */
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

static Slot *make_slots(PyObject *cells) {
    Py_ssize_t i, length = PyList_GET_SIZE(cells);
    Slot *slots = PyMem_Calloc(length + 1, sizeof(Slot));
    if (slots == NULL)
        PyErr_NoMemory();
    for (i = 0; slots && i < length; ++i)
        slots[i].cell = PyList_GET_ITEM(cells, i);
    return slots;
}

/* Replace the present exception by the error for a changed shape; keep it as cause. */
static void shape_error(void) {
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
    "Run the steps of a Scan; return their number.\n"
    "\n"
    "call(): the inner function.\n"
    "repeating: its virtual machine, whose attribute `repeated` becomes true after\n"
    "    the first step, or None.\n"
    "inputs, results: its storage, lists of lists of one object.\n"
    "taps: rows (output, tap) for the inputs after the sequences.\n"
    "written: rows (output, tap, input) for the mit_mot outputs; input is the\n"
    "    index of the input that the inner function updates in-place, or -1.\n"
    "vectors: for each output before the shared ones, whether it is a vector.\n"
    "args, outs: the arguments of Scan.execute.\n"
    "position, length: for each output before the shared ones; position is\n"
    "    changed.\n"
    "allocate(j, value): make outs[j] for values like the first one.\n";

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
    int as_while, going = 1, done;

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
/* Whether a step writes a result directly into the output. Not in the first step,
   before the output exists, and not if a step reads what it overwrites. */
#define DIRECT(j) (step > 0 && length[j] != 1 && !vector[j])

    zero = PyLong_FromLong(0);
    inputs = make_slots(input_cells);
    results = make_slots(result_cells);
    if (!zero || !inputs || !results)
        goto end;

    for (; step < n_steps && going; ++step) {
        /* The inputs of the inner function. */
        input = inputs;
        for (i = 0; i < n_seqs; ++i, ++input)
            if (show(input, ARGUMENT(1 + i), step))
                goto end;
        for (i = 0; i < n_taps; ++i, ++input) {
            j = tap[2 * i];
            Py_ssize_t index = (position[j] + tap[2 * i + 1]) % length[j];
            if (show(input, OUTPUT(j), index < 0 ? index + length[j] : index))
                goto end;
        }
        for (i = 0; i < n_shared; ++i, ++input)
            put(input->cell,
                step == 0 ? ARGUMENT(1 + n_seqs + n_outs + i) : OUTPUT(n_stored + i));

        /* The storage for the results. */
        result = results;
        for (i = 0; i < n_written; ++i)
            if (write[3 * i + 2] < 0)
                (step ? reuse : blank)(result++);
        for (j = n_mit_mot; j < n_stored; ++j, ++result)
            if (!DIRECT(j))
                (step ? reuse : blank)(result);
            else if (show(result, OUTPUT(j), position[j]))
                goto end;
        for (i = 0; i < n_shared; ++i)
            blank(result++);
        if (as_while)
            (step ? reuse : blank)(result++);

        outcome = PyObject_CallObject(call, NULL);
        if (outcome == NULL)
            goto end;
        Py_CLEAR(outcome);
        if (step == 0 && repeating != Py_None &&
            PyObject_SetAttrString(repeating, "repeated", Py_True))
            goto end;
        if (as_while) {
            going = PyObject_RichCompareBool(get(result[-1].cell), zero, Py_EQ);
            if (going < 0)
                goto end;
        }

        /* Copy the results that it did not write directly. */
        result = results;
        for (i = 0; i < n_written; ++i, write += 3) {
            PyObject *cell;
            if (write[2] < 0)
                cell = (result++)->cell;
            else {
                Slot *updated = &inputs[write[2]];
                cell = updated->cell;
                done = untouched(updated);
                if (done < 0)
                    goto end;
                if (done)
                    continue;
            }
            j = write[0];
            if (store(OUTPUT(j), write[1] + position[j], get(cell)))
                goto end;
        }
        write -= 3 * n_written;
        for (j = n_mit_mot; j < n_stored; ++j, ++result) {
            if (step == 0 && j >= n_outs) {
                outcome = PyObject_CallFunction(allocate, "nO", j, get(result->cell));
                if (outcome == NULL)
                    goto end;
                Py_CLEAR(outcome);
            }
            done = DIRECT(j) ? untouched(result) : 0;
            if (done < 0)
                goto end;
            if (!done && store(OUTPUT(j), position[j], get(result->cell))) {
                if (step > 0 && PyErr_ExceptionMatches(PyExc_ValueError))
                    shape_error();
                goto end;
            }
        }
        for (i = 0; i < n_shared; ++i, ++result)
            put(PyList_GET_ITEM(outs, n_stored + i), get(result->cell));
        /* The last results are the inputs that the step updated in-place. Without these
           references, the next step can move them. */
        for (result += as_while; result < results + PyList_GET_SIZE(result_cells);
             ++result)
            blank(result);

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
