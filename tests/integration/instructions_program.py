"""Compile a graph of ``bench/``, call it, and print its costs in JSON.

    instructions_program.py GRAPH instructions|counts

With ``instructions``, the program runs under Cachegrind, which writes one report per process. At
the end of each phase, the program forks a process that exits at once. The report of this process
counts the instructions from the start of the program to the end of the phase. The program prints
the number of calls in the last phase, and the process ID of each phase.

With ``counts``, the program prints the number of modules in the compiledir and the number of arrays
that NumPy allocates per call.
"""

from __future__ import annotations

import ctypes
import json
import os
import sys
import warnings
from pathlib import Path

import models
import theano
import theano_step
from numpy.core import _multiarray_umath

CALLS = 5
# The index of PyDataMem_SetEventHook in NumPy's table of functions (numpy/__multiarray_api.h).
SET_EVENT_HOOK = 291
EventHook = ctypes.CFUNCTYPE(
    None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_void_p
)

# For each phase, the ID of the process that was forked at its end.
phases = {}


def end_phase(name):
    """Fork a process that exits immediately; record its ID in ``phases``."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitpid(child, 0)
    phases[name] = child


def compile_function(*args, **kwargs):
    """Call theano.function in its own phase."""
    end_phase("built")
    compiled = theano.function(*args, **kwargs)
    end_phase("compiled")
    return compiled


def count_allocations(function):
    """Return the number of arrays that NumPy allocates during a call."""
    sizes = []
    hook = EventHook(lambda old, new, size, data: sizes.append(size) if new else None)
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype = ctypes.c_void_p
    table = get_pointer(ctypes.py_object(_multiarray_umath._ARRAY_API), None)
    address = ctypes.cast(table, ctypes.POINTER(ctypes.c_void_p))[SET_EVENT_HOOK]
    set_hook = ctypes.PYFUNCTYPE(*[ctypes.c_void_p] * 4)(address)
    previous = ctypes.c_void_p()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        set_hook(ctypes.cast(hook, ctypes.c_void_p), None, ctypes.byref(previous))
        function()
        set_hook(None, None, ctypes.byref(previous))
    return len(sizes)


def call_step():
    """Call the training step ``CALLS`` times."""
    for _ in range(CALLS):
        step()


step = theano_step.compile_training(models.select_size(sys.argv[1]), compile_function)
call_step()
if sys.argv[2] == "instructions":
    end_phase("warm")
    call_step()
    end_phase("called")
    print(json.dumps({"calls": CALLS, "phases": phases}))
else:
    counts = {
        "modules": len([*Path(theano.config.compiledir).glob("*/*.so")]),
        "allocations": count_allocations(call_step) / CALLS,
    }
    print(json.dumps(counts))
