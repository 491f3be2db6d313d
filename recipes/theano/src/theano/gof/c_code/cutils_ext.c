#include <Python.h>

static PyObject *run_cthunk(PyObject *Py_UNUSED(self), PyObject *thunk) {
    int (*function)(void *) = (int (*)(void *))PyCapsule_GetPointer(thunk, NULL);
    if (!function)
        return NULL;
    return PyLong_FromLong(function(PyCapsule_GetContext(thunk)));
}

static PyObject *return_none(PyObject *Py_UNUSED(self), PyObject *Py_UNUSED(argument)) {
    Py_RETURN_NONE;
}

/* Append to `missing` the nodes that compute `variables`. Omit nodes in `sorted`, and
 * nodes of variables in `inputs`. owner_name is the interned string "owner". Return 0,
 * or -1 with an exception set. */
static int append_missing(PyObject *variables, PyObject *inputs, PyObject *sorted,
                          PyObject *missing, PyObject *owner_name) {
    PyObject *items =
        PySequence_Fast(variables, "the inputs of a node are no sequence");
    int status = items ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *variable = PySequence_Fast_GET_ITEM(items, i);
        PyObject *node = PyObject_GetAttr(variable, owner_name);
        int done = node ? node == Py_None : -1;
        if (done == 0)
            done = PySet_Contains(sorted, node);
        if (done == 0)
            done = PySet_Contains(inputs, variable);
        if (done == 0)
            done = PyList_Append(missing, node);
        status = done < 0 ? -1 : 0;
        Py_XDECREF(node);
    }
    Py_XDECREF(items);
    return status;
}

/* Process the last node of the list `todo`. If nodes that must run before it are not
 * yet sorted, append them to `todo`. Otherwise append the node to `order`, add it to
 * the set `sorted`, and remove it from `todo`. A node that is already sorted, or whose
 * first output is an input of the graph, is only removed. `names` has the interned
 * strings "owner", "inputs" and "outputs". Return 0, or -1 with an exception set. */
static int sort_last(PyObject *todo, PyObject *inputs, PyObject *sorted,
                     PyObject *order, PyObject *const *names) {
    Py_ssize_t last = PyList_GET_SIZE(todo) - 1;
    PyObject *node = Py_NewRef(PyList_GET_ITEM(todo, last));
    PyObject *outputs = NULL, *first = NULL, *node_inputs = NULL;
    int done = PySet_Contains(sorted, node);
    if (done == 0) {
        outputs = PyObject_GetAttr(node, names[2]);
        first = outputs ? PySequence_GetItem(outputs, 0) : NULL;
        done = first ? PySet_Contains(inputs, first) : -1;
    }
    if (done == 0) {
        node_inputs = PyObject_GetAttr(node, names[1]);
        done = node_inputs ? append_missing(node_inputs, inputs, sorted, todo, names[0])
                           : -1;
        if (done == 0 && PyList_GET_SIZE(todo) == last + 1) {
            done = PySet_Add(sorted, node) || PyList_Append(order, node) ? -1 : 1;
        }
    }
    if (done == 1)
        done = PyList_SetSlice(todo, last, last + 1, NULL);
    Py_DECREF(node);
    Py_XDECREF(outputs);
    Py_XDECREF(first);
    Py_XDECREF(node_inputs);
    return done;
}

static PyObject *sort_nodes(PyObject *Py_UNUSED(self), PyObject *args) {
    PyObject *inputs, *outputs;
    if (!PyArg_ParseTuple(args, "O!O", &PySet_Type, &inputs, &outputs))
        return NULL;
    PyObject *names[] = {PyUnicode_InternFromString("owner"),
                         PyUnicode_InternFromString("inputs"),
                         PyUnicode_InternFromString("outputs")};
    PyObject *todo = PyList_New(0), *order = PyList_New(0), *sorted = PySet_New(NULL);
    PyObject *none = PySet_New(NULL);
    int failed =
        !(names[0] && names[1] && names[2] && todo && order && sorted && none) ||
        append_missing(outputs, none, none, todo, names[0]) || PyList_Reverse(todo);
    for (unsigned int count = 1; !failed && PyList_GET_SIZE(todo) > 0; count++)
        failed = sort_last(todo, inputs, sorted, order, names) ||
                 /* If the graph has a cycle, the loop does not end: handle Ctrl-C. */
                 (count % 65536 == 0 && PyErr_CheckSignals());
    for (int i = 0; i < 3; i++)
        Py_XDECREF(names[i]);
    Py_XDECREF(todo);
    Py_XDECREF(sorted);
    Py_XDECREF(none);
    if (failed)
        Py_CLEAR(order);
    return order;
}

static PyMethodDef methods[] = {
    {"sort_nodes", sort_nodes, METH_VARARGS,
     "Return the nodes between a set of input variables and a list of output "
     "variables. Each node follows the nodes that compute its inputs."},
    {"return_none", return_none, METH_O,
     "Return None: the property `owner` of constants calls this function."},
    {"run_cthunk", run_cthunk, METH_O,
     "Call a C thunk, a capsule; return 0, or the number of the block that failed."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "cutils_ext", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_cutils_ext(void) {
    return PyModule_Create(&module);
}
