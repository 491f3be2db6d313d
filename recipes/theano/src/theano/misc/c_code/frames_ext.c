/* Look up the frames of a stack trace in caches. Python code would create a frame
 * object for each frame, and would read its attributes. */

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
        const char *object =
            (const char *)frame - offsetof(PyFrameObject, _f_frame_data);
        const PyFrameObject *caller = ((const PyFrameObject *)object)->f_back;
        return caller ? caller->f_frame : NULL;
    }
    _PyInterpreterFrame *caller = frame->previous;
    while (caller && _PyFrame_IsIncomplete(caller))
        caller = caller->previous;
    return caller;
}

/* Return a borrowed reference to the cached description of a frame, or NULL. There is
 * none if the file's entry in `lines` (linecache.cache) has changed. An exception may
 * be set. */
static PyObject *find_frame(const _PyInterpreterFrame *frame, PyObject *known,
                            PyObject *lines) {
    PyCodeObject *code = frame->f_code;
    /* The instruction is within the code object, so no other code object has this key.
     */
    PyObject *key = PyLong_FromSize_t((size_t)code + _PyInterpreterFrame_LASTI(frame) *
                                                         sizeof(_Py_CODEUNIT));
    /* A tuple of the description, the file's entry in `lines`, and the code object. */
    PyObject *cached = key ? PyDict_GetItemWithError(known, key) : NULL;
    Py_XDECREF(key);
    if (!cached)
        return NULL;
    PyObject *entry = PyDict_GetItemWithError(lines, code->co_filename);
    return PyTuple_GET_ITEM(cached, 1) == (entry ? entry : Py_None)
               ? PyTuple_GET_ITEM(cached, 0)
               : NULL;
}

static PyObject *find_frames(PyObject *Py_UNUSED(self), PyObject *args) {
    PyFrameObject *innermost;
    Py_ssize_t limit;
    PyObject *skipped, *known, *lines;
    if (!PyArg_ParseTuple(args, "O!nO!O!O!", &PyFrame_Type, &innermost, &limit,
                          &PyDict_Type, &skipped, &PyDict_Type, &known, &PyDict_Type,
                          &lines))
        return NULL;
    /* A new list can start a garbage collection, which can run Python code. The code
     * below runs none, so all frames stay as they are. */
    PyObject *frames = PyList_New(0);
    if (!frames)
        return NULL;
    const _PyInterpreterFrame *frame = innermost->f_frame;
    PyObject *is_skipped = Py_True;
    while (frame && (is_skipped = PyDict_GetItemWithError(
                         skipped, frame->f_code->co_filename)) == Py_True)
        frame = get_caller(frame);
    int status = is_skipped ? 0 : -1;
    for (; frame && status == 0 && PyList_GET_SIZE(frames) < limit;
         frame = get_caller(frame)) {
        PyObject *description = find_frame(frame, known, lines);
        status = description ? PyList_Append(frames, description) : -1;
    }
    if (status == 0 && PyList_Reverse(frames) == 0)
        return frames;
    Py_DECREF(frames);
    return PyErr_Occurred() ? NULL : Py_NewRef(Py_None);
}

static PyMethodDef methods[] = {
    {"find_frames", find_frames, METH_VARARGS,
     "Return the cached descriptions of a frame and of its callers, outermost first. "
     "Return None if a cache lacks a frame or a file."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "frames_ext", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_frames_ext(void) {
    return PyModule_Create(&module);
}
