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

/* A growing array of owned references. */
typedef struct {
    PyObject **objects;
    Py_ssize_t size, capacity;
} Stack;

static int push(Stack *stack, PyObject *object) {
    if (stack->size == stack->capacity) {
        Py_ssize_t capacity = stack->capacity ? 2 * stack->capacity : 64;
        PyObject **objects = PyMem_Resize(stack->objects, PyObject *, capacity);
        if (!objects) {
            PyErr_NoMemory();
            return -1;
        }
        stack->objects = objects;
        stack->capacity = capacity;
    }
    stack->objects[stack->size++] = Py_NewRef(object);
    return 0;
}

static void drop(Stack *stack) {
    Py_DECREF(stack->objects[--stack->size]);
}

/* A set of objects, compared by address: a hash table with linear probing, at most half
 * full. The objects must live longer than the set. */
typedef struct {
    PyObject **slots;
    size_t size, capacity;
} AddressSet;

/* Return the slot of an object, or the free slot for it. */
static PyObject **find_slot(const AddressSet *set, PyObject *object) {
    size_t i = ((size_t)object >> 4) * 0x9E3779B97F4A7C15u >> 32;
    for (i &= set->capacity - 1; set->slots[i] && set->slots[i] != object;)
        i = (i + 1) & (set->capacity - 1);
    return set->slots + i;
}

static int contains(const AddressSet *set, PyObject *object) {
    return set->capacity && *find_slot(set, object);
}

static int add(AddressSet *set, PyObject *object) {
    if (2 * set->size >= set->capacity) {
        AddressSet larger = {NULL, set->size, set->capacity ? 4 * set->capacity : 64};
        larger.slots = PyMem_Calloc(larger.capacity, sizeof(PyObject *));
        if (!larger.slots) {
            PyErr_NoMemory();
            return -1;
        }
        for (size_t i = 0; i < set->capacity; i++)
            if (set->slots[i])
                *find_slot(&larger, set->slots[i]) = set->slots[i];
        PyMem_Free(set->slots);
        *set = larger;
    }
    *find_slot(set, object) = object;
    set->size++;
    return 0;
}

/* Push on `missing` the nodes that compute `variables`. Omit nodes in `sorted`, and
 * nodes of variables in `inputs`. owner_name is the interned string "owner". Return 0,
 * or -1 with an exception set. */
static int push_missing(PyObject *variables, PyObject *inputs, const AddressSet *sorted,
                        Stack *missing, PyObject *owner_name) {
    PyObject *items =
        PySequence_Fast(variables, "the inputs of a node are not a sequence");
    int status = items ? 0 : -1;
    for (Py_ssize_t i = 0; status == 0 && i < PySequence_Fast_GET_SIZE(items); i++) {
        PyObject *variable = PySequence_Fast_GET_ITEM(items, i);
        PyObject *node = PyObject_GetAttr(variable, owner_name);
        int done = node ? node == Py_None || contains(sorted, node) : -1;
        if (done == 0 && inputs)
            done = PySet_Contains(inputs, variable);
        if (done == 0)
            done = push(missing, node);
        status = done < 0 ? -1 : 0;
        Py_XDECREF(node);
    }
    Py_XDECREF(items);
    return status;
}

/* Process the last node of `todo`. If nodes that must run before it are not yet sorted,
 * push them on `todo`. Otherwise append the node to `order`, add it to `sorted`, and
 * drop it from `todo`. A node that is already sorted, or whose first output is an input
 * of the graph, is only dropped. `names` has the interned strings "owner", "inputs" and
 * "outputs". Return 0, or -1 with an exception set. */
static int sort_last(Stack *todo, PyObject *inputs, AddressSet *sorted, PyObject *order,
                     PyObject *const *names) {
    Py_ssize_t size = todo->size;
    PyObject *node = todo->objects[size - 1];
    PyObject *outputs = NULL, *first = NULL, *node_inputs = NULL;
    int done = contains(sorted, node);
    if (done == 0) {
        outputs = PyObject_GetAttr(node, names[2]);
        first = outputs ? PySequence_GetItem(outputs, 0) : NULL;
        done = first ? PySet_Contains(inputs, first) : -1;
    }
    if (done == 0) {
        node_inputs = PyObject_GetAttr(node, names[1]);
        done = node_inputs ? push_missing(node_inputs, inputs, sorted, todo, names[0])
                           : -1;
        /* `order` keeps the node alive, as the set requires. */
        if (done == 0 && todo->size == size)
            done = PyList_Append(order, node) || add(sorted, node) ? -1 : 1;
    }
    if (done == 1)
        drop(todo);
    Py_XDECREF(outputs);
    Py_XDECREF(first);
    Py_XDECREF(node_inputs);
    return done < 0 ? -1 : 0;
}

static PyObject *sort_nodes(PyObject *Py_UNUSED(self), PyObject *args) {
    PyObject *inputs, *outputs;
    if (!PyArg_ParseTuple(args, "O!O", &PySet_Type, &inputs, &outputs))
        return NULL;
    PyObject *names[] = {PyUnicode_InternFromString("owner"),
                         PyUnicode_InternFromString("inputs"),
                         PyUnicode_InternFromString("outputs")};
    PyObject *order = PyList_New(0);
    Stack todo = {NULL, 0, 0};
    AddressSet sorted = {NULL, 0, 0};
    int failed = !(names[0] && names[1] && names[2] && order) ||
                 push_missing(outputs, NULL, &sorted, &todo, names[0]);
    for (Py_ssize_t i = 0, j = todo.size - 1; i < j; i++, j--) {
        PyObject *node = todo.objects[i];
        todo.objects[i] = todo.objects[j];
        todo.objects[j] = node;
    }
    for (unsigned int count = 1; !failed && todo.size > 0; count++)
        failed = sort_last(&todo, inputs, &sorted, order, names) ||
                 /* If the graph has a cycle, the loop does not end: handle Ctrl-C. */
                 (count % 65536 == 0 && PyErr_CheckSignals());
    while (todo.size > 0)
        drop(&todo);
    PyMem_Free(todo.objects);
    PyMem_Free(sorted.slots);
    for (int i = 0; i < 3; i++)
        Py_XDECREF(names[i]);
    if (failed)
        Py_CLEAR(order);
    return order;
}

/* Remove a client, a pair of a node and an index, from a list of clients. Compare nodes
 * by address: list.remove compares each pair by ==, which takes longer. */
static PyObject *remove_client(PyObject *Py_UNUSED(self), PyObject *args) {
    PyObject *clients, *client, *node, *index;
    if (!PyArg_ParseTuple(args, "O!O!", &PyList_Type, &clients, &PyTuple_Type,
                          &client) ||
        !PyArg_ParseTuple(client, "OO", &node, &index))
        return NULL;
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(clients); i++) {
        PyObject *pair = PyList_GET_ITEM(clients, i);
        if (PyTuple_Check(pair) && PyTuple_GET_SIZE(pair) == 2 &&
            PyTuple_GET_ITEM(pair, 0) == node) {
            int equal =
                PyObject_RichCompareBool(PyTuple_GET_ITEM(pair, 1), index, Py_EQ);
            if (equal < 0 || (equal && PyList_SetSlice(clients, i, i + 1, NULL)))
                return NULL;
            if (equal)
                Py_RETURN_NONE;
        }
    }
    return PyObject_CallMethod(clients, "remove", "(O)", client);
}

static PyMethodDef methods[] = {
    {"sort_nodes", sort_nodes, METH_VARARGS,
     "Return the nodes between a set of input variables and a list of output "
     "variables. Each node follows the nodes that compute its inputs."},
    {"remove_client", remove_client, METH_VARARGS,
     "Remove a pair of a node and an index from a list of such pairs."},
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
