"""build/shipped-modules.patch: shipped loops compute an Elemwise until g++ has compiled its loops.

Without the patch, a function waits until g++ has compiled its loops.
"""

import json
import textwrap

import pytest
from theano import config
from theano.gof import shipped
from theano.tensor.linkers.shipped_loops import LIBRARY

pytestmark = pytest.mark.skipif(
    shipped.find_level_file(LIBRARY) is None,
    reason="the environment has no shipped loops for this processor",
)
# Defines make_functions, which makes functions of x and y.
FUNCTIONS = """
import json, os, time
import numpy as np
import theano
from theano import config, tensor as T
from theano.gof import background_compilation, cc

def make_functions(dtype, pattern):
    x, y = T.TensorType(dtype, [False] * len(pattern))(), T.TensorType(dtype, pattern)()
    z = T.tanh(x * y + 1) * T.nnet.sigmoid(x - 2 * y) + T.switch(x > y, x, y ** 2)
    return [
        theano.function([x, y], output)
        for output in [
            z,
            [z, T.exp(-z) * x + T.log1p(abs(y)) / (1 + T.sqrt(abs(x)))],
            x * y + x * x + y * y + 1,
            T.clip(x * y, -1, 1) - T.maximum(x, y) * T.minimum(x, 0.5),
            T.nnet.softplus(x) - T.nnet.softplus(-y) * T.floor(x),
            T.cast(x * y + x, "float64") * y - T.cast(T.cast(x * 3, "int32"), "float32") + y,
        ]
    ]

compiler = background_compilation.compiler
"""
# Computes the functions by chains and by compiled loops. Prints the number of requested modules,
# the number of modules that are not installed, whether all bits are equal, and the number of
# compiled modules.
COMPARE = """
start = background_compilation.BackgroundCompiler.start
background_compilation.BackgroundCompiler.start = lambda self: None
dtype, pattern, shapes = {arguments}
functions = make_functions(dtype, pattern)
requested = len(compiler.requests)
random = np.random.RandomState(1)
results = []
values = []
for shape in shapes:
    x = np.asarray(random.uniform(-3, 3, shape), dtype)
    y_shape = [1 if is_broadcast else n for n, is_broadcast in zip(shape, pattern)]
    y = np.asarray(random.uniform(-3, 3, y_shape), dtype)
    values += [[x, y]]
    if x.ndim == 2:
        row_step, column_step = (1 if is_broadcast else 2 for is_broadcast in pattern)
        values += [[x[::2, ::2], y[::row_step, ::column_step]]]
        values += [[np.asfortranarray(x), y], [x[::-1], y]]

def compute():
    return [result for pair in values for f in functions for result in np.atleast_1d(f(*pair))]

chained = [np.array(result) for result in compute()]
background_compilation.BackgroundCompiler.start = start
compiler.start()
compiler.finish()
compiled = compute()
same = all(a.dtype == b.dtype and a.tobytes() == b.tobytes() for a, b in zip(chained, compiled))
print(json.dumps([requested, len(compiler.requests), same, cc.get_module_cache().stats[2]]))
"""


@pytest.fixture
def compute(run_python, tmp_path):
    """Return a function that runs a program with an empty compile cache and parses its output."""

    def run(program, flags=""):
        completed = run_python(
            FUNCTIONS + textwrap.dedent(program),
            flags=f"base_compiledir={tmp_path}/compiled,cmodule.shipped={config.cmodule.shipped},"
            + flags,
        )
        assert completed.returncode == 0, completed.stderr
        assert not completed.stderr
        return json.loads(completed.stdout)

    return run


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("pattern", "shapes"),
    [
        ([], [[]]),
        ([False], [[1], [7], [1000], [20011]]),
        ([True], [[1000]]),
        ([False, False], [[5, 3], [3, 700], [300, 40]]),
        ([False, True], [[5, 3], [70, 513]]),
        ([True, False], [[5, 3], [70, 513]]),
    ],
    ids=["scalar", "vector", "broadcast vector", "matrix", "column", "row"],
)
def test_chains_compute_the_bits_of_compiled_loops(compute, dtype, pattern, shapes):
    program = COMPARE.format(arguments=(dtype, pattern, shapes))
    requested, not_installed, are_equal, compiled = compute(program)
    assert are_equal
    assert requested == compiled >= 6
    assert not_installed == 0


def test_a_thread_installs_the_modules(compute):
    compiled = compute("""
        make_functions("float32", [False])
        while compiler.requests:
            time.sleep(0.01)
        print(json.dumps(cc.get_module_cache().stats[2]))
    """)
    assert compiled >= 6


def test_the_next_process_uses_the_modules(compute):
    """The first process ends only after the modules are in the cache."""
    program = """
        make_functions("float32", [False])
        print(json.dumps([len(compiler.requests), cc.get_module_cache().stats[2]]))
    """
    compute(program)
    assert compute(program) == [0, 0]


def test_a_forked_process_has_the_modules(compute):
    not_installed, status = compute("""
        make_functions("float32", [False])
        child = os.fork()
        if not child:
            os._exit(len(compiler.requests))
        print(json.dumps([len(compiler.requests), os.waitpid(child, 0)[1]]))
    """)
    assert not_installed == status == 0


def test_one_process_compiles_at_a_time(compute, tmp_path):
    """The other processes use the modules when they are in the cache."""
    program = """
        background_compilation.RETRY = 0.01
        path = os.path.join(config.compiledir, background_compilation.LOCK)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        child = os.fork()
        if not child:
            import fcntl
            with open(path, "w") as file:
                fcntl.lockf(file, fcntl.LOCK_EX)
                open("locked", "w").close()
                while not os.path.exists("requested"):
                    time.sleep(0.01)
                make_functions("float32", [False])
                compiler.finish()
            os._exit(0)
        while not os.path.exists("locked"):
            time.sleep(0.01)
        make_functions("float32", [False])
        pool = compiler.pool is not None
        open("requested", "w").close()
        status = os.waitpid(child, 0)[1]
        while compiler.requests:
            time.sleep(0.01)
        print(json.dumps([pool, status, cc.get_module_cache().stats[2]]))
    """
    program = f"import os; os.chdir({str(tmp_path)!r})\n{textwrap.dedent(program)}"
    assert compute(program) == [False, 0, 0]


def test_a_function_works_if_a_module_cannot_be_compiled(run_python, tmp_path):
    completed = run_python(
        FUNCTIONS
        + """
make_request = background_compilation.Request
background_compilation.Request = lambda module, arguments, install: make_request(
    module, {**arguments, "src_code": "error"}, install
)
background_compilation.CompilationPool.compile = lambda self, modules: None
(*_, last) = make_functions("float32", [False])
compiler.finish()
print(json.dumps(last([0, 1], [2, 3]).tolist()))
""",
        flags=f"base_compiledir={tmp_path}/compiled,cmodule.shipped={config.cmodule.shipped}",
    )
    assert json.loads(completed.stdout.splitlines()[-1]) == [2, 12]
    assert "A module could not be compiled in the background" in completed.stderr


def test_the_flag_disables_background_compilation(compute):
    requested, compiled = compute(
        """
        make_functions("float32", [False])
        print(json.dumps([len(compiler.requests), cc.get_module_cache().stats[2]]))
        """,
        "cmodule.background=False",
    )
    assert requested == 0 < compiled


def test_a_change_of_flags_in_a_process_disables_chains(compute):
    """The shipped loops were compiled with other flags, so the results could differ."""
    requested, with_other_flags = compute("""
        background_compilation.BackgroundCompiler.start = lambda self: None
        make_functions("float32", [False])
        requested = len(compiler.requests)
        with theano.change_flags(**{"gcc.cxxflags": "-DTHEANO_LIBM"}):
            make_functions("float32", [False])
        print(json.dumps([requested, len(compiler.requests)]))
    """)
    assert requested == with_other_flags
