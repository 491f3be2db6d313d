/* Walk over the frames of a stack trace. Python code would create a frame object for
 * each frame, and would read its attributes. */

/* CPython 3.11's internal frames. */
#define Py_BUILD_CORE
#include <Python.h>
#include <internal/pycore_frame.h>

#if PY_VERSION_HEX < 0x030B0000 || PY_VERSION_HEX >= 0x030C0000
#error "adapt the internal frames to this version of Python"
#endif

/* Return the caller of a frame, as frame.f_back does, or NULL. */
static _PyInterpreterFrame *get_caller(const _PyInterpreterFrame *frame) {
    if (frame->owner == FRAME_OWNED_BY_FRAME_OBJECT) {
        /* The function has returned: the frame is a part of its frame object. */
        const PyFrameObject *object =
            (const PyFrameObject *)((const char *)frame -
                                    offsetof(PyFrameObject, _f_frame_data));
        return object->f_back ? object->f_back->f_frame : NULL;
    }
    _PyInterpreterFrame *caller = frame->previous;
    while (caller && _PyFrame_IsIncomplete(caller))
        caller = caller->previous;
    return caller;
}

/* Return whether the innermost frames omit a frame: skipped[file name]. Return -1 with
 * an exception set if the lookup fails. */
static int is_skipped(const _PyInterpreterFrame *frame, PyObject *skipped) {
    PyObject *value = PyObject_GetItem(skipped, frame->f_code->co_filename);
    int result = value ? PyObject_IsTrue(value) : -1;
    Py_XDECREF(value);
    return result;
}

/* Return a new reference to the description of a frame. If it is not in the dictionary
 * `known`, or if the file's entry in `lines` (linecache.cache) has changed, call
 * describe(key, code object, line number, globals). */
static PyObject *describe_frame(const _PyInterpreterFrame *frame, PyObject *known,
                                PyObject *lines, PyObject *describe) {
    PyCodeObject *code = frame->f_code;
    int instruction = _PyInterpreterFrame_LASTI(frame);
    /* The address is below 2**48 and divisible by 16, so the key is unique if the code
     * object has less than 2**20 instructions. */
    PyObject *key =
        PyLong_FromUnsignedLongLong(((unsigned long long)code << 16) + instruction);
    if (!key)
        return NULL;
    PyObject *result = NULL;
    /* A tuple of the description, the entry in `lines`, and the code object. */
    PyObject *entry = PyDict_GetItemWithError(known, key);
    if (entry && instruction < 1 << 20) {
        PyObject *file = PyDict_GetItemWithError(lines, code->co_filename);
        if (PyTuple_GET_ITEM(entry, 1) == (file ? file : Py_None))
            result = Py_NewRef(PyTuple_GET_ITEM(entry, 0));
    }
    if (!result && !PyErr_Occurred()) {
        int line = PyCode_Addr2Line(code, instruction * (int)sizeof(_Py_CODEUNIT));
        result =
            PyObject_CallFunction(describe, "OOiO", key, code, line, frame->f_globals);
    }
    Py_DECREF(key);
    return result;
}

static PyObject *describe_frames(PyObject *Py_UNUSED(self), PyObject *args) {
    PyFrameObject *innermost;
    Py_ssize_t limit;
    PyObject *skipped, *known, *lines, *describe;
    if (!PyArg_ParseTuple(args, "O!nOO!O!O", &PyFrame_Type, &innermost, &limit,
                          &skipped, &PyDict_Type, &known, &PyDict_Type, &lines,
                          &describe))
        return NULL;
    const _PyInterpreterFrame *frame = innermost->f_frame;
    int skip = 1;
    while (frame && (skip = is_skipped(frame, skipped)) > 0)
        frame = get_caller(frame);
    PyObject *frames = skip < 0 ? NULL : PyList_New(0);
    for (; frames && frame && PyList_GET_SIZE(frames) < limit;
         frame = get_caller(frame)) {
        PyObject *description = describe_frame(frame, known, lines, describe);
        if (!description || PyList_Append(frames, description))
            Py_CLEAR(frames);
        Py_XDECREF(description);
    }
    if (frames && PyList_Reverse(frames))
        Py_CLEAR(frames);
    return frames;
}

static PyMethodDef methods[] = {
    {"describe_frames", describe_frames, METH_VARARGS,
     "Return the descriptions of a frame and of its callers, outermost first."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "frames_ext", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_frames_ext(void) {
    return PyModule_Create(&module);
}
