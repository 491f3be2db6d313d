"""A C++ compiler is there and works: Theano without one still runs, a hundred times slower."""

import shutil
import subprocess
import time

import numpy as np
import theano
import theano.tensor as T

from theano_fast import thunks
from theano_fast.checks.result import Options, Result

MISSING = (
    "no C++ compiler: theano.config.cxx is {cxx!r}, which cannot be run, so that every operation"
    " would run in Python; leave the Theano flag cxx out, which names the environment's own g++, or"
    " set it to the path of another"
)


def run(options: Options) -> Result:
    """Compile a function, check that it is C from a module made now, and its value."""
    cxx = theano.config.cxx
    if not cxx or shutil.which(cxx) is None:
        return Result(failures=(MISSING.format(cxx=cxx),))
    banner = subprocess.check_output([cxx, "--version"], text=True).splitlines()[0]

    x = T.dvector("x")
    started = time.perf_counter()
    function = theano.function([x], T.exp(x) * 2 + 1)
    seconds = time.perf_counter() - started
    made = thunks.read(function)
    values = np.linspace(-1, 1, 11)

    failures = []
    if not made or any(thunk.implementation != "C" for thunk in made):
        failures.append(f"{banner} is there, but Theano compiled to Python: {made}")
    if outside := [t.module for t in made if not t.module.startswith(theano.config.compiledir)]:
        failures.append(f"modules {outside} are not in the compiledir {theano.config.compiledir}")
    # Two roundings and libm's exp, good to a few units in the last place.
    if not np.allclose(function(values), np.exp(values) * 2 + 1, rtol=1e-14, atol=0):
        failures.append("the compiled exp(x) * 2 + 1 is wrong")
    return Result(
        summary=f"{banner}; first function in {seconds:.1f} s",
        failures=tuple(failures),
        measurements={"cxx": cxx, "version": banner, "first_function": seconds},
    )
