"""Compile each op of the graphs in graphs.py for the device that stubs.c imitates.

The program prints JSON: the names of the classes of compiled ops, the names of the back end's other
classes, and the errors. Other programs of this folder import ``start``.
"""

import ctypes
import json

import graphs
import pygpu
import theano
import theano.gpuarray
from theano import gof
from theano.gpuarray import dnn
from theano.gpuarray.type import get_context


def make_capsule(pointer):
    """Return a PyCapsule, the value of a variable of the type CDataType."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(pointer, None, None)


def make_dropout_descriptor(dropout, seed, context_name):
    """Replace ``dnn._make_dropout_desc``: return a new descriptor of cuDNN, and one zero byte.

    The byte replaces the random states, which only a device can compute.
    """
    descriptor = ctypes.c_void_p()
    assert dnn._dnn_lib().cudnnCreateDropoutDescriptor(ctypes.byref(descriptor)) == 0
    return make_capsule(descriptor), pygpu.zeros(1, "uint8", context=get_context(context_name))


def start(name="cuda0"):
    """Make Theano use a device of stubs.c.

    cuDNN cannot create a handle without a GPU. Zeroed memory replaces the handle, because cuDNN's
    functions for descriptors accept it.
    """
    handle = ctypes.create_string_buffer(1 << 20)
    dnn._make_handle = lambda context: ctypes.c_void_p(ctypes.addressof(handle))
    dnn._make_dropout_desc = make_dropout_descriptor
    theano.gpuarray.use(name)


def compile_outputs(outputs):
    """Compile one function for each output, without optimizations.

    Return the set of the classes of compiled ops and scalar ops, and a list of error messages.
    """
    ops, failures = set(), []
    mode = theano.Mode(linker="vm", optimizer=None)
    for output in outputs:
        with_value = gof.Constant, theano.compile.SharedVariable
        inputs = [v for v in gof.graph.inputs([output]) if not isinstance(v, with_value)]
        try:
            function = theano.function(inputs, output, mode=mode, on_unused_input="ignore")
        except Exception as error:
            failures.append(f"{output.owner.op}: {type(error).__name__}: {error}")
        else:
            for node in filter(is_compiled, function.maker.fgraph.toposort()):
                ops |= {type(node.op), type(getattr(node.op, "scalar_op", node.op))}
    return ops, failures


def is_compiled(node):
    """Return whether Theano compiles a node: it compiles float16 only if the op supports it."""
    float16 = any(getattr(v.type, "dtype", None) == "float16" for v in node.inputs + node.outputs)
    return not float16 or getattr(node.op, "_f16_ok", False)


def list_ops(cls=gof.Op):
    """Yield the subclasses of ``cls``, at any depth, that are defined in theano.gpuarray."""
    for subclass in cls.__subclasses__():
        if subclass.__module__.startswith("theano.gpuarray"):
            yield subclass
        yield from list_ops(subclass)


def list_names(classes):
    """Return the sorted names of classes."""
    return sorted(cls.__name__ for cls in classes)


if __name__ == "__main__":
    start()
    compiled, failures = compile_outputs([output for graph in graphs.ALL for output in graph()])
    gpu_ops = set(list_ops())
    print(
        json.dumps(
            {
                "compiled": list_names(compiled & gpu_ops),
                "missing": list_names(gpu_ops - compiled),
                "failures": failures,
            }
        )
    )
