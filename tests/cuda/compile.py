"""Compile each op of the graphs in graphs.py for the device that stubs.c imitates.

Prints JSON: the classes of the compiled ops, the classes that were not compiled, and the failures.
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


def capsule(pointer):
    """Return a value of a CDataType."""
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p] * 3
    return make(pointer, None, None)


def dropout_descriptor(dropout, seed, context_name):
    """Return a descriptor as cuDNN makes it, without the random states that a device fills."""
    descriptor = ctypes.c_void_p()
    assert dnn._dnn_lib().cudnnCreateDropoutDescriptor(ctypes.byref(descriptor)) == 0
    return capsule(descriptor), pygpu.zeros(1, "uint8", context=get_context(context_name))


def start(name="cuda0"):
    """Use the device. cuDNN's handle is empty memory: its descriptors need no more."""
    handle = ctypes.create_string_buffer(1 << 20)
    dnn._make_handle = lambda context: ctypes.c_void_p(ctypes.addressof(handle))
    dnn._make_dropout_desc = dropout_descriptor
    theano.gpuarray.use(name)


def compile_each(outputs):
    """Compile each output without optimizations; return the classes of ops, and the failures."""
    ops, failures = set(), []
    mode = theano.Mode(linker="vm", optimizer=None)
    for output in outputs:
        own = gof.Constant, theano.compile.SharedVariable
        inputs = [v for v in gof.graph.inputs([output]) if not isinstance(v, own)]
        try:
            function = theano.function(inputs, output, mode=mode, on_unused_input="ignore")
        except Exception as error:
            failures.append(f"{output.owner.op}: {type(error).__name__}: {error}")
        else:
            for node in filter(in_c, function.maker.fgraph.toposort()):
                ops |= {type(node.op), type(getattr(node.op, "scalar_op", node.op))}
    return ops, failures


def in_c(node):
    """Return whether Theano compiles a node; float16 needs an op that supports it."""
    float16 = any(getattr(v.type, "dtype", None) == "float16" for v in node.inputs + node.outputs)
    return not float16 or getattr(node.op, "_f16_ok", False)


def list_ops(cls=gof.Op):
    """Return the classes of the back end's ops."""
    for subclass in cls.__subclasses__():
        if subclass.__module__.startswith("theano.gpuarray"):
            yield subclass
        yield from list_ops(subclass)


def names(ops):
    """Return the sorted names of classes."""
    return sorted(op.__name__ for op in ops)


if __name__ == "__main__":
    start()
    compiled, failed = compile_each([output for graph in graphs.ALL for output in graph()])
    own_ops = set(list_ops())
    print(
        json.dumps(
            {
                "compiled": names(compiled & own_ops),
                "missing": names(own_ops - compiled),
                "failures": failed,
            }
        )
    )
