"""Check that the C++ compiler works; without it, Theano runs in Python, 100 times slower."""

import shutil
import subprocess
import time

import numpy as np
import theano
import theano.tensor as T

from theano_fast import thunks
from theano_fast.checks.result import Options, Result

MISSING = (
    "no C++ compiler: theano.config.cxx is {cxx!r}, which cannot be run, so all operations would"
    " run in Python; remove the Theano flag cxx to use the environment's g++, or set it to the path"
    " of another g++"
)


def run(options: Options) -> Result:
    """Compile a function; check its value, and that its C code is in a module of the compiledir."""
    cxx = theano.config.cxx
    if not cxx or shutil.which(cxx) is None:
        return Result(failures=(MISSING.format(cxx=cxx),))
    banner = subprocess.check_output([cxx, "--version"], text=True).splitlines()[0]

    x = T.dvector("x")
    started = time.perf_counter()
    # In the background, g++ could fail without an error.
    with theano.change_flags(**{"cmodule.background": False}):
        function = theano.function([x], T.exp(x) * 2 + 1)
    seconds = time.perf_counter() - started
    nodes = thunks.read(function)
    values = np.linspace(-1, 1, 11)

    failures = []
    if not nodes or any(thunk.implementation != "C" for thunk in nodes):
        failures.append(f"{banner} works, but not all nodes run in C: {nodes}")
    if outside := [t.module for t in nodes if not t.module.startswith(theano.config.compiledir)]:
        failures.append(f"modules {outside} are not in the compiledir {theano.config.compiledir}")
    # The tolerance allows two roundings, and an error of a few ulp in libm's exp.
    if not np.allclose(function(values), np.exp(values) * 2 + 1, rtol=1e-14, atol=0):
        failures.append("the compiled exp(x) * 2 + 1 is wrong")
    return Result(
        summary=f"{banner}; first function in {seconds:.1f} s",
        failures=tuple(failures),
        measurements={"cxx": cxx, "version": banner, "first_function": seconds},
    )
