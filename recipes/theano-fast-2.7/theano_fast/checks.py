"""Checks of the environment. Each check runs in a separate process and returns (summary, failures).

``python -m theano_fast.checks NAME FILE [--full]`` runs a check and writes its result to FILE as JSON.
"""

from __future__ import print_function

import json
import os
import sys

import numpy as np
import theano
import theano.tensor as T

from theano_fast import libraries, ntm, rmsprop

# The loss of the last of 20 training calls. The stacks with Theano 1.0.5 compute the same losses.
REFERENCE = {"small": 0.6224275353404106, "full": 0.6911389082282239}
RATE = {"small": 1e-2, "full": 1e-4}
SIZES = {"small": ntm.SMALL, "full": ntm.FULL}
CALLS = 20
TOLERANCE = 1e-8


def packages(full):
    """Compare the versions of NumPy, SciPy and Theano with the stack's constraints."""
    import scipy  # noqa: PLC0415

    with open(os.path.join(sys.prefix, "etc", "pip-constraints.txt")) as file:
        wanted = dict(line.split(" ==") for line in file.read().splitlines() if " ==" in line)
    failures = []
    for module in (np, scipy, theano):
        name, version = module.__name__, module.__version__
        if version != wanted[name]:
            failures.append("%s is version %s, the stack's is %s" % (name, version, wanted[name]))
        if not libraries.inside(module.__file__):
            failures.append("%s is outside the environment: %s" % (name, module.__file__))
    return ", ".join("%s %s" % item for item in sorted(wanted.items())), failures


def compiler(full):
    """Compile a function with the environment's compiler, not with a compiler of the host."""
    x = T.dvector("x")
    function = theano.function([x], T.exp(x) * 2 + 1)
    values = np.linspace(-1, 1, 11)
    failures = python_ops(function)
    if not libraries.inside(theano.config.cxx):
        failures.append("the compiler is outside the environment: %s" % theano.config.cxx)
    if not np.allclose(function(values), np.exp(values) * 2 + 1, rtol=1e-14, atol=0):
        failures.append("the compiled function exp(x) * 2 + 1 returns wrong values")
    return "%s %s" % (theano.config.cxx, theano.configdefaults.gcc_version_str), failures


def blas(full):
    """Run the BLAS ops with the stack's BLAS, in C unless the axis blas is "numpy"."""
    axis = libraries.stack()["blas"]
    a, b, c = T.dmatrices("a", "b", "c")
    x, y = T.dvectors("x", "y")
    square, line = np.eye(4), np.ones(4)
    failures = []
    for name, inputs, output, values in (
        ("Gemm", [a, b, c], 0.4 * c + 0.8 * T.dot(a, b), [square] * 3),
        ("Dot22", [a, b], T.dot(a, b), [square] * 2),
        ("Gemv", [a, x, y], 0.4 * y + 0.8 * T.dot(a, x), [square, line, line]),
        ("Ger", [a, x, y], a + 0.8 * T.outer(x, y), [square, line, line]),
    ):
        function = theano.function(inputs, output)
        function(*values)
        ops = [type(node.op).__name__ for node in function.maker.fgraph.toposort()]
        if not set(ops) & set([name, "C" + name, "Scipy" + name]):
            failures.append("%s: the compiled graph contains other ops: %s" % (name, ops))
        if axis != "numpy":
            failures += ["%s runs in Python" % op for op in python_ops(function)]
    if (axis == "numpy") != (theano.config.blas.ldflags == ""):
        failures.append("blas.ldflags is %r" % theano.config.blas.ldflags)
    np.dot(square, square)

    family = "openblas" if axis == "numpy" else axis
    loaded = {name: libraries.matching(pattern) for name, pattern in libraries.BLAS.items()}
    if len(loaded[family]) != 1 or any(loaded[name] for name in loaded if name != family):
        failures.append("the process must load exactly one BLAS, %s; it loaded %s" % (family, loaded))
    runtimes = libraries.matching(libraries.OPENMP)
    if len(runtimes) > 1:
        failures.append("the process loaded several OpenMP run-time libraries: %s" % ", ".join(runtimes))
    foreign = [path for path in loaded[family] + runtimes if not libraries.inside(path)]
    failures += ["a library is outside the environment: %s" % path for path in foreign]
    return ", ".join(map(os.path.basename, loaded[family] + runtimes)), failures


def numerics(full):
    """Compare products with extended precision; the error bound is in Higham, section 3.5."""
    failures, worst, count = [], 0.0, 0
    draw = np.random.RandomState(7).uniform
    for dtype in ("float32", "float64"):
        a, b, c = (T.matrix(name, dtype) for name in "abc")
        product = theano.function([a, b], T.dot(a, b))
        alpha, beta = np.asarray(2, dtype), np.asarray(-0.5, dtype)
        gemm = theano.function([c, a, b], beta * c + alpha * T.dot(a, b))
        for i, j, k in ((1, 1, 1), (2, 3, 5), (17, 33, 8), (64, 16, 65), (0, 3, 4), (257, 129, 130)):
            left, right = draw(-1, 1, (i, j)).astype(dtype), draw(-1, 1, (j, k)).astype(dtype)
            target = draw(-1, 1, (i, k)).astype(dtype)
            wide = [value.astype(np.longdouble) for value in (left, right, target)]
            exact, size = wide[0].dot(wide[1]), abs(wide[0]).dot(abs(wide[1]))
            unit = (j + 4) * np.finfo(dtype).eps
            for got, expected, bound in (
                (product(left, right), exact, size),
                (product(left[::-1], right), exact[::-1], size[::-1]),
                (product(np.asfortranarray(left), right), exact, size),
                (gemm(target, left, right), 2 * exact - 0.5 * wide[2], 2 * size + abs(wide[2])),
            ):
                limit = np.maximum(unit * bound, np.finfo(dtype).tiny)
                error = float(np.max(abs(got - expected) / limit)) if got.size else 0.0
                worst, count = max(worst, error), count + 1
                if not error <= 1:
                    failures.append("%s %s: the error is %.3g times its bound" % (dtype, (i, j, k), error))
    return "%d products within %.2f of Higham's bound" % (count, worst), failures


def libm(full):
    """Compare functions of one argument with their values in extended precision."""
    amdlibm = libraries.stack()["libm"] == "amdlibm"
    values = np.concatenate([np.linspace(-20, 20, 4001), np.linspace(0.5, 1, 1001)])
    failures, worst = [], 0.0
    for name in ("exp", "log", "log10", "log1p", "sin", "cos", "tan", "tanh", "sqrt"):
        chosen = values[values > 0] if name in ("log", "log10", "sqrt", "log1p") else values
        for dtype in ("float32", "float64"):
            x = T.vector("x", dtype)
            arguments = chosen.astype(dtype)
            exact = getattr(np, name)(arguments.astype(np.longdouble))
            got = theano.function([x], getattr(T, name)(x))(arguments)
            error = abs(got - exact) / np.spacing(abs(exact).astype(dtype))
            worst = max(worst, float(error.max()))
            # amdlibm's error is at most 4 units in the last place. glibc's error is lower.
            if not error.max() <= 4:
                message = "%s of %s: the error is %.1f units in the last place"
                failures.append(message % (name, dtype, error.max()))
    loaded = any("libamdlibm" in path for path in libraries.mapped())
    if loaded != amdlibm:
        failures.append("amdlibm is %sloaded" % ("" if loaded else "not "))
    library = "amdlibm" if amdlibm else "the host's libm"
    return "%s, within %.1f units in the last place" % (library, worst), failures


def scan(full):
    """Train a Neural Turing Machine, and compare its last loss with the other stacks' loss."""
    summaries, failures = [], []
    for name in ["small", "full"] if full else ["small"]:
        machine = ntm.build(SIZES[name])
        parameters = list(machine.parameters.values())
        slopes = theano.grad(machine.loss, parameters)
        train = theano.function(
            [machine.inputs, machine.targets],
            machine.loss,
            updates=rmsprop.updates(parameters, slopes, RATE[name]),
        )
        sequence = ntm.copy_task(machine.size, seed=1)
        loss = float([train(*sequence) for _ in range(CALLS)][-1])
        if not abs(loss - REFERENCE[name]) <= TOLERANCE * REFERENCE[name]:
            failures.append("%s: the last loss is %r, expected %r" % (name, loss, REFERENCE[name]))
        summaries.append("%s: the loss of call %d is %.10f" % (name, CALLS, loss))
    from theano.scan_module import scan_perform_ext  # noqa: F401, PLC0415

    return "; ".join(summaries), failures


def hermetic(full):
    """Load all libraries, and require that each belongs to the environment or to glibc."""
    import scipy.linalg  # noqa: PLC0415
    import scipy.special  # noqa: F401, PLC0415
    import ssl  # noqa: F401, PLC0415

    x = T.dmatrix("x")
    theano.function([x], T.dot(T.exp(x), x))(np.eye(3))
    loaded = [path for path in libraries.mapped() if theano.config.compiledir not in path]
    foreign = [
        path
        for path in loaded
        if not libraries.inside(path) and not libraries.GLIBC.match(os.path.basename(path))
    ]
    failures = ["a library is outside the environment: %s" % path for path in foreign]
    return "%d libraries belong to the environment or to glibc" % len(loaded), failures


def python_ops(function):
    """Return the names of the ops in a compiled function that run in Python instead of C."""
    thunks = zip(function.maker.fgraph.toposort(), function.fn.thunks)
    return [type(node.op).__name__ for node, thunk in thunks if not hasattr(thunk, "cthunk")]


# The order of execution.
CHECKS = (packages, compiler, blas, numerics, libm, scan, hermetic)

if __name__ == "__main__":
    check = dict((check.__name__, check) for check in CHECKS)[sys.argv[1]]
    result = check("--full" in sys.argv)
    with open(sys.argv[2], "w") as stream:
        json.dump(result, stream)
