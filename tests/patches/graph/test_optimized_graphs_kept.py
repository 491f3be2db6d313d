"""graph/optimized-graphs-kept.patch caches optimized graphs for this and other processes.

Without the patch, the flag cache_optimizations is off by default, and its cache is unfinished.
"""

import fcntl
import io
import json
import os
import pickle
import re
import select
import shutil
import threading
import time
import types
import zlib
from pathlib import Path

import numpy as np
import pytest
from theano import scalar
from theano import tensor as tt
from theano.gof import graph_cache, lock_files
from theano.gof.graph_cache import claims, keys, pickling
from theano.gof.graph_cache.describing import Describer

# Defines report(function, *values), which prints a line of JSON: the number of optimizations since
# the last line, the optimized graph, and the results for the values.
PREPARE = """
import json, re, sys
import numpy as np, theano, theano.tensor as tt
from theano.gof import opt
optimized = []
apply = opt.SeqOptimizer.apply
def counting(self, fgraph, *args):
    optimized.append(self)
    return apply(self, fgraph, *args)
opt.SeqOptimizer.apply = counting
def report(function, *values):
    graph = theano.printing.debugprint(function, file="str", ids="int")
    # The order of independent nodes may differ.
    graph = re.sub(r"'[^']*'   \\d+", "", graph)
    results = [np.asarray(result).tolist() for result in function(*values)]
    print(json.dumps([len(optimized), graph, results]))
    optimized.clear()
"""
# theano.scan optimizes the graph of the steps, to find shared variables. This graph is not cached.
UNCACHED = 1
TRAINING = """
x = tt.matrix("x")
w = theano.shared(np.linspace(-1, 1, 9).reshape(3, 3), name="w")
def step(row, state):
    state = tt.tanh(tt.dot(state, w) + row)
    return state, state.sum()
(states, sums), _ = theano.scan(step, x, [tt.zeros(3), None], name="loop")
loss = (states[-1] ** 2).sum() + theano.ifelse.ifelse(sums[-1] > 0, sums.mean(), sums.max())
train = theano.function(
    [theano.In(x, borrow=True)], [loss, x * 2, x.T], updates=[(w, w - 0.1 * tt.grad(loss, w))])
report(train, np.ones((4, 3)))
report(train, np.ones((4, 3)))
"""


@pytest.fixture
def run_program(run_python, tmp_path):
    """Return a function that runs code after PREPARE, which defines ``report`` for the code.

    The function returns the parsed lines of the output, and the number of cached graphs.
    """

    def run(code, *, flags="cxx=", **environ):
        flags = f"floatX=float64,compiledir={tmp_path}/compiled,{flags}"
        completed = run_python(PREPARE + code, flags=flags, **environ)
        assert completed.returncode == 0, completed.stderr
        kept = tmp_path / "compiled" / "optimized_graphs"
        documents = [json.loads(line) for line in completed.stdout.splitlines()]
        return documents, len(list(kept.iterdir())) if kept.exists() else 0

    return run


def test_another_process_finds_the_graph(run_program):
    (first, again), kept = run_program(TRAINING, flags="", PYTHONHASHSEED="1")
    assert first[0] > UNCACHED
    (other, other_again), still_kept = run_program(TRAINING, flags="", PYTHONHASHSEED="2")
    assert other[0] == UNCACHED
    assert other[1:] == first[1:]
    assert other_again[1:] == again[1:]
    assert first[2] != again[2]
    assert still_kept == kept


def test_the_same_process_finds_the_graph(run_program):
    compile_twice = """
    for value in (1.0, 2.0):
        x, w = tt.dvector(), theano.shared(value)
        report(theano.function([x], [tt.exp(x) * w + 1]), [0.0])
    """
    (first, second), kept = run_program(compile_twice.replace("\n    ", "\n"))
    assert first[0] > second[0] == 0
    assert (first[2], second[2], kept) == ([[2.0]], [[3.0]], 1)


NAMED = """
for names in (("first", "second", "weights"), ("one", "other", "factors"), ("one", "one", "one")):
    x, y, w = tt.dvector(names[0]), tt.dvector(names[1]), theano.shared(np.ones(3), names[2])
    states, _ = theano.scan(lambda row, state: tt.tanh(state * w + row), tt.outer(y, y), x)
    report(theano.function([x, y], [states, x * y, w * w]), [0.1, 0.2, 0.3], [1.0, 2.0, 3.0])
"""


def test_a_graph_is_found_under_other_names_of_variables(run_program):
    (first, second, third), kept = run_program(NAMED)
    assert first[0] > UNCACHED
    assert second[0] == UNCACHED
    renamed = {"first": "one", "second": "other", "weights": "factors"}
    graph = re.sub("|".join(renamed), lambda match: renamed[match[0]], first[1])
    assert graph != first[1]
    assert (second[1], second[2]) == (graph, first[2])
    # The three equal names make another graph. The third file is the inner graph of the scan, which
    # has its own names.
    assert third[0] > UNCACHED
    assert third[2] == first[2]
    assert kept == 3


FUNCTION = """
x, y = tt.dvectors("x", "y")
c = tt.constant(np.arange(3.0) + {constant})
report(theano.function(
    [theano.In(x, borrow={borrow}), y], [{output}], mode={mode}), [1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
"""
USUAL = {"constant": 0, "borrow": False, "output": "x.sum() * c", "mode": None}


@pytest.mark.parametrize(
    ("change", "flags"),
    [
        ({"constant": 1}, ""),
        ({"borrow": True}, ""),
        ({"output": "y.sum() * c"}, ""),
        ({"output": "x.max() * c"}, ""),
        ({"output": "x.sum(dtype='float32') * c"}, ""),
        ({"output": "theano.Out(x.sum() * c, borrow=True)"}, ""),
        ({"output": "x.sum() * c + x.sum() * c"}, ""),
        ({"mode": "'FAST_COMPILE'"}, ""),
        ({"mode": "theano.compile.get_default_mode().excluding('fusion')"}, ""),
        ({"output": "x.sum() * tt.constant([-0.0, 1.0, 2.0])"}, ""),
        ({"constant": "np.arange(3.0)[::-1]"}, ""),
        ({"output": "x.sum() * c.astype('float32')"}, ""),
        ({"output": "x.sum() * tt.constant(c.data.astype('>f8').astype('float64')[::-1])"}, ""),
        ({"output": "x[:1].sum() * c"}, ""),
        ({"output": "x[:np.int8(1)].sum() * c"}, ""),
        ({"output": "theano.gradient.disconnected_grad(x.sum()) * c"}, ""),
        ({"output": "x.sum() * theano.shared(np.arange(3.0), borrow=True)"}, ""),
        ({}, "optimizer_excluding=inplace"),
        ({}, "openmp=True"),
    ],
)
def test_different_graphs_are_distinguished(run_program, change, flags):
    usual = "cxx=,on_unused_input=ignore,"
    _, kept = run_program(FUNCTION.format(**USUAL), flags=usual)
    assert kept == 1
    ((optimized, *_),), kept = run_program(
        FUNCTION.format(**{**USUAL, **change}), flags=usual + flags
    )
    assert optimized > 0
    assert kept == 2


OWN_OP = """
class Twice(theano.Op):
    __props__ = ()
    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])
    def perform(self, node, inputs, outputs):
        outputs[0][0] = 2 * inputs[0]
output = Twice()(x)
"""
NO_STATE = """
class Twice(theano.Op):
    def make_node(self, x):
        return theano.Apply(self, [x], [x.type()])
    def perform(self, node, inputs, outputs):
        outputs[0][0] = 2 * inputs[0]
    def __getstate__(self):
        raise RuntimeError("not to be pickled")
output = Twice()(x)
"""
AS_OP = """
@theano.compile.ops.as_op(itypes=[tt.dvector], otypes=[tt.dvector])
def twice(x):
    return 2 * x
output = twice(x)
"""
OWN_OPTIMIZER = """
@theano.gof.local_optimizer([tt.Elemwise])
def local_nothing(node):
    return False
theano.compile.optdb["{database}"].register("local_nothing", local_nothing, "fast_run")
output = 2 * x
"""
OWN_TAG = """
theano.compile.optdb.remove_tags("elemwise_fusion", "fast_run")
output = 2 * x
"""
OWN_FEATURE = """
class Watching(theano.gof.toolbox.Feature):
    pass
optimizer = theano.compile.mode.AddFeatureOptimizer(Watching())
theano.config.mode = "FAST_RUN"
mode = theano.compile.get_default_mode().register((optimizer, 10))
output = 2 * x
"""
LOGGED = """
@theano.gof.local_optimizer([tt.Elemwise])
def careless(node):
    raise ValueError("careless")
theano.tensor.opt.local_fill_to_alloc.transform = lambda node: careless.transform(node)
output = 2 * tt.zeros_like(x) + 2 * x
"""
LARGE = """
output = 2 * x + tt.constant(np.zeros(2**21 + 1))[:2]
"""
PRINTING = """
output = theano.printing.Print("x", global_fn=lambda op, x: None)(2 * x)
"""


@pytest.mark.parametrize(
    "code",
    [
        OWN_OP,
        NO_STATE,
        AS_OP,
        OWN_OPTIMIZER.format(database="canonicalize"),
        OWN_TAG,
        OWN_FEATURE,
        LOGGED,
        LARGE,
        PRINTING,
    ],
    ids=["op", "no state", "as_op", "optimizer", "tags", "feature", "logged", "large", "function"],
)
def test_some_graphs_are_not_cached(run_program, code):
    program = (
        "x, mode = tt.dvector(), None\n"
        + code
        + """
report(theano.function([x], [output], mode=mode), [1.0, 2.0])
"""
    )
    for _ in range(2):
        ((optimized, _, results),), kept = run_program(program)
        assert optimized > 0
        assert kept == 0
        assert results == [[2.0, 4.0]]


@pytest.mark.parametrize(
    "flags",
    [
        "cache_optimizations=False",
        "optimizer_verbose=True",
        "compute_test_value=warn",
        "profile=True,profile_optimizer=True",
    ],
)
def test_flags_that_observe_optimization_disable_the_cache(run_program, flags):
    program = """
x = tt.dvector()
x.tag.test_value = np.ones(2)
theano.printing.stdout = sys.stderr
sys.stdout, stdout = sys.stderr, sys.stdout
function = theano.function([x], [2 * x])
sys.stdout = stdout
report(function, [1.0])
"""
    for _ in range(2):
        ((optimized, *_),), kept = run_program(program, flags="cxx=," + flags)
        assert (optimized > 0, kept) == (True, 0)


def test_errors_name_the_lines_of_this_program(run_python, tmp_path):
    program = tmp_path / "program.py"
    code = """import theano, theano.tensor as tt
x, y = tt.dvectors("x", "y")
z = x + y
function = theano.function([x, y], z)
function([1.0, 2.0], [1.0, 2.0, 3.0])
"""
    for first in ("", "\n\n"):
        program.write_text(first + code)
        completed = run_python(
            f"import runpy; runpy.run_path({str(program)!r})",
            flags=f"cxx=,compiledir={tmp_path}/compiled",
        )
        line = 3 + first.count("\n")
        assert f'File "{program}", line {line}, in <module>\n    z = x + y' in completed.stderr
    assert len(list((tmp_path / "compiled" / "optimized_graphs").iterdir())) == 1


def add_checksum(content):
    """Return the content of a cache file: a valid checksum, and then `content`."""
    return graph_cache.files.make_checksum(content) + content


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-100],
        lambda content: b"",
        lambda content: content[:10],
        lambda content: bytes([content[0] ^ 1]) + content[1:],
        # These files have valid checksums.
        lambda content: add_checksum(b"no zlib"),
        lambda content: add_checksum(zlib.compress(b"no pickle")),
        lambda content: add_checksum(zlib.compress(pickle.dumps(None))),
        lambda content: add_checksum(zlib.compress(pickle.dumps((False, {}, ([], [], [99]))))),
        lambda content: add_checksum(zlib.compress(b"cmissing\nthing\n.")),
    ],
)
def test_a_damaged_file_is_replaced(run_program, tmp_path, damage):
    (first, _), _ = run_program(TRAINING)
    for file in (tmp_path / "compiled" / "optimized_graphs").iterdir():
        file.write_bytes(damage(file.read_bytes()))
    (second, _), _ = run_program(TRAINING)
    assert second == first
    (third, _), _ = run_program(TRAINING)
    assert third[0] == UNCACHED


SIMPLE = "x = tt.dvector(); report(theano.function([x], [2 * x]), [1.0])"


def test_a_damaged_file_is_logged_once_at_debug_level(run_python, tmp_path):
    code = """
import logging
import theano, theano.tensor as tt
logging.getLogger("theano").setLevel(logging.DEBUG)
x = tt.dvector()
print(theano.function([x], 2 * x)([1.0]))
"""
    flags = f"cxx=,compiledir={tmp_path}/compiled"
    assert run_python(code, flags=flags).returncode == 0
    (file,) = (tmp_path / "compiled" / "optimized_graphs").iterdir()
    file.write_bytes(add_checksum(b"no zlib"))
    completed = run_python(code, flags=flags)
    assert (completed.returncode, completed.stdout) == (0, "[2.]\n"), completed.stderr
    (line,) = [line for line in completed.stderr.splitlines() if file.name in line]
    assert line.startswith("DEBUG")


def test_a_moved_compiledir_keeps_graphs(run_program, tmp_path):
    run_program(SIMPLE, flags="")
    (tmp_path / "compiled").rename(tmp_path / "moved")
    ((optimized, _, results),), _ = run_program(SIMPLE, flags=f"compiledir={tmp_path}/moved")
    assert (optimized, results) == (0, [[2.0]])
    assert not (tmp_path / "compiled").exists()


def test_graphs_that_others_could_have_written_are_not_loaded(run_program, tmp_path):
    run_program(SIMPLE)
    (file,) = (tmp_path / "compiled" / "optimized_graphs").iterdir()
    file.chmod(0o666)
    ((optimized, _, results),), _ = run_program(SIMPLE)
    assert (optimized > 0, results) == (True, [[2.0]])
    assert file.stat().st_mode & 0o777 == 0o644
    ((optimized, *_),), _ = run_program(SIMPLE)
    assert optimized == 0


def test_an_unwritable_access_time_is_ignored(run_program):
    run_program(SIMPLE)
    fail = """
import os
def utime(*_):
    raise PermissionError("read only")
os.utime = utime
"""
    ((optimized, _, results),), _ = run_program(fail + SIMPLE)
    assert (optimized, results) == (0, [[2.0]])


def test_an_unwritable_cache_is_ignored(run_program, tmp_path):
    (tmp_path / "compiled").mkdir()
    (tmp_path / "compiled" / "optimized_graphs").symlink_to("/proc")
    ((optimized, _, results),), _ = run_program(SIMPLE)
    assert (optimized > 0, results) == (True, [[2.0]])


def test_old_graphs_are_removed(run_program, tmp_path):
    code = "x = tt.dvector(); report(theano.function([x], [{number} * x]), [1.0])"
    run_program(code.format(number=2), flags="")
    (old,) = (tmp_path / "compiled" / "optimized_graphs").iterdir()
    os.utime(old, (0, time.time() - 32 * 24 * 3600))
    _, kept = run_program(code.format(number=3), flags="")
    assert not old.exists()
    assert kept == 1


def test_the_total_size_is_bounded(tmp_path, monkeypatch):
    graphs = tmp_path / "optimized_graphs"
    graphs.mkdir()
    for number, name in enumerate(["oldest", "old", "new"]):
        (graphs / name).write_bytes(bytes(10))
        os.utime(graphs / name, (0, time.time() - 100 + number))
    monkeypatch.setattr(graph_cache.files, "MAX_TOTAL", 25)
    graph_cache.remove_old(tmp_path, 1000)
    assert {file.name for file in graphs.iterdir()} == {"new", "old"}
    graph_cache.remove_old(tmp_path, 99)
    assert {file.name for file in graphs.iterdir()} == {"new"}
    graph_cache.remove_old(tmp_path / "missing", 0)


@pytest.mark.parametrize(("command", "remaining"), [("clear", 0), ("cleanup", 1)])
def test_theano_cache_removes_graphs(run_program, run_python, tmp_path, command, remaining):
    run_program("x = tt.dvector(); report(theano.function([x], [2 * x]), [1.0])")
    completed = run_python(
        f"import sys; sys.argv[1:] = [{command!r}]\n"
        "from theano.bin.theano_cache import main; main()",
        flags=f"compiledir={tmp_path}/compiled",
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    assert len(list((tmp_path / "compiled" / "optimized_graphs").iterdir())) == remaining


LOADING = """
import os
path = os.path.join(theano.config.compiledir, "..", "array.npy")
np.save(path, np.full(2, {value}))
function = theano.function([], [tt.sqr(tt.load(path, "float64", (False,)))])
report(function)
np.save(path, np.full(2, {value} + 1))
report(function)
"""


def test_a_file_is_read_in_each_call(run_program):
    """A cached graph with tensor.load reads the file in each call.

    If the optimizer folded the file's content, all calls would return the first content.
    """
    for value in (1.0, 5.0):
        output, kept = run_program(LOADING.format(value=value))
        assert [results for *_, results in output] == [[[value**2] * 2], [[(value + 1) ** 2] * 2]]
        assert kept == 1


UPDATES = """
x, y = tt.dvectors("x", "y")
a, b = theano.shared(np.zeros(2)), theano.shared(np.ones(2))
updates = {updates}
function = theano.function(
    [theano.In(x, mutable={mutable}), y], [x + y, y * a], updates=updates, on_unused_input="ignore")
for _ in range(2):
    report(function, [1.0, 2.0], [3.0, 4.0])
print(json.dumps([0, "", [a.get_value().tolist(), b.get_value().tolist()]]))
"""


@pytest.mark.parametrize("mutable", [False, True])
def test_updates_of_equal_variables_are_not_exchanged(run_program, mutable):
    """Cached functions update equal shared variables in the same way as uncached functions."""
    choices = (
        "[(a, a + x), (b, b * 2)]",
        "[(a, b * 2), (b, a + x)]",
        "[(b, b * 2), (a, a + x)]",
        "[(a, b), (b, a)]",
        "[(a, x), (b, x)]",
        "[(b, y)]",
    )
    for updates in choices:
        program = UPDATES.format(updates=updates, mutable=mutable)
        uncached, _ = run_program(program, flags="cxx=,cache_optimizations=False")
        for _ in range(2):
            output, _ = run_program(program)
            assert [results for *_, results in output] == [results for *_, results in uncached]


# Makes a function. With an argument, the program prints "making" while it holds the claim, and
# waits for a line of input.
MAKING = """
import sys
import theano, theano.tensor as tt
from theano.compile.function_module import FunctionMaker
from theano.gof.compilation import CompilationPool
compiled = []
compile = CompilationPool.start
create = FunctionMaker.create
def recorded(self, modules):
    compiled.extend(modules)
    return compile(self, modules)
def waited_for(*args, **kwargs):
    if len(sys.argv) > 1:
        print("making", flush=True)
        sys.stdin.readline()
    return create(*args, **kwargs)
FunctionMaker.create = waited_for
x = tt.dvector()
{first}
CompilationPool.start = recorded
print(theano.function([x], {function})([0.0]), len(compiled))
"""
WAITING = "Waiting for another process that makes the same function"


@pytest.fixture
def start(start_python, tmp_path):
    """Return a function that starts MAKING in a new interpreter."""
    flags = f"base_compiledir={tmp_path}/compiled,cmodule.shipped="

    def start(*arguments, function="tt.exp(x) * x.sum()", before="", first=""):
        code = before + MAKING.format(function=function, first=first)
        return start_python(code, *arguments, flags=flags)

    return start


@pytest.fixture
def holder(start):
    """Start a process that holds the claim of a function until it reads a line."""
    process = start("slowly")
    assert process.stdout.readline() == "making\n"
    return process


def test_other_processes_wait_for_the_holder_of_the_claim(start, holder):
    first = "theano.function([x], tt.sin(x))"
    waiting = [start(first=first) for _ in range(3)]
    for process in waiting:
        while WAITING not in process.stderr.readline():
            assert process.poll() is None
    assert holder.communicate("\n")[0] == "[0.] 2\n"
    for process in waiting:
        assert process.communicate(timeout=100)[0] == "[0.] 0\n"


def test_a_function_made_by_another_process_is_found(start):
    late = start(first='theano.function([x], tt.sin(x)); print("making", flush=True); input()')
    assert late.stdout.readline() == "making\n"
    assert start().communicate(timeout=100)[0] == "[0.] 2\n"
    assert late.communicate("\n", timeout=100) == ("[0.] 0\n", "")


def test_nobody_waits_for_another_function(start, holder):
    other = start(function="tt.exp(x) * x.sum() + 1")
    assert other.communicate(timeout=100) == ("[1.] 2\n", "")
    assert holder.poll() is None


def test_one_process_replaces_a_killed_process(start, holder):
    waiting = [start() for _ in range(3)]
    for process in waiting:
        assert WAITING in process.stderr.readline()
    holder.kill()
    outputs = sorted(process.communicate(timeout=100)[0] for process in waiting)
    assert outputs == ["[0.] 0\n"] * 2 + ["[0.] 2\n"]


def test_processes_wait_only_once_if_the_graph_is_not_cached(start):
    # Graphs whose optimization logs a warning are not cached either.
    before = "from theano.gof.graph_cache.files import Entry\nEntry.store = lambda *_: None\n"
    holder = start("slowly", before=before)
    assert holder.stdout.readline() == "making\n"
    waiting = [start("slowly", before=before) for _ in range(2)]
    for process in waiting:
        assert WAITING in process.stderr.readline()
    holder.communicate("\n")
    # Neither process may wait for the other: this would be a deadlock.
    assert all(select.select([process.stdout], [], [], 100)[0] for process in waiting)
    modules = [process.communicate("\n", timeout=100)[0] for process in waiting]
    assert [line.split()[-2:] for line in modules] == [["[0.]", "0"]] * 2


def test_without_locks_each_process_makes_its_function(start, holder):
    refuse = "import fcntl\ndef refuse(*_): raise OSError(37, 'No locks')\nfcntl.lockf = refuse\n"
    output, log = start(before=refuse).communicate(timeout=100)
    assert output == "[0.] 2\n", log
    assert WAITING not in log


def test_a_fork_has_no_claim(start):
    before = (
        "import os\nfrom theano.gof.graph_cache.claims import claims\n"
        "from theano.compile.function_module import FunctionMaker\nmade = FunctionMaker.create\n"
        "def fork(*args, **kwargs):\n"
        "    assert claims.path\n"
        "    child = os.fork()\n"
        "    if not child: os._exit(claims.path is not None or claims.depth)\n"
        "    assert os.waitpid(child, 0)[1] == 0\n"
        "    return made(*args, **kwargs)\n"
        "FunctionMaker.create = fork\n"
    )
    output, log = start(before=before).communicate(timeout=100)
    assert output == "[0.] 2\n", log


LOCK = """
import fcntl, sys
file = open(sys.argv[1], "w")
fcntl.lockf(file, fcntl.LOCK_EX, 1, int(sys.argv[2]))
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def wait(start_python, tmp_path, monkeypatch):
    """Return a function that waits for a claim that another process holds.

    Its arguments are the seconds until that process ends, and the seconds until a wait is logged.
    """
    claims.log_wait.cache_clear()
    graph, path = Path("0000a.graph"), tmp_path / "functions"

    def wait(seconds, patience):
        monkeypatch.setattr(lock_files, "PATIENCE", patience)
        other = start_python(LOCK, str(path), str(claims.compute_byte_offset(graph)), flags="")
        assert other.stdout.readline() == "locked\n"
        free = threading.Timer(seconds, other.kill)
        free.start()
        with path.open("r+") as file:
            assert claims.lock_byte(file.fileno(), graph, fcntl.LOCK_EX)
        free.join()

    yield wait
    claims.log_wait.cache_clear()


def test_a_short_wait_is_silent(wait, caplog):
    assert lock_files.PATIENCE == 5
    wait(0.3, lock_files.PATIENCE)
    assert caplog.records == []


def test_a_long_wait_is_reported_once(wait, caplog):
    for _ in range(2):
        wait(1, 0.1)
    assert [record.getMessage() for record in caplog.records] == [WAITING]


def test_equal_types_are_described_once(monkeypatch):
    described = []
    describe = Describer.describe_object
    monkeypatch.setattr(
        Describer,
        "describe_object",
        lambda self, value: described.append(value) or describe(self, value),
    )
    describer = Describer()

    def describe_types():
        """Describe types that differ, and return their descriptions."""
        types = [
            tt.TensorType("float64", (False, True)),
            tt.TensorType("float64", (True, False)),
            tt.TensorType("float32", (False, True)),
            tt.TensorType("float64", (False, True), name="named"),
        ]
        extended = tt.TensorType("float64", (False, True))
        extended.attribute = [1]
        return [describer.describe(type_) for type_ in [*types, extended]]

    first = describe_types()
    assert len(set(first)) == len(first)
    types = [value for value in described if isinstance(value, tt.TensorType)]
    assert len(types) == len(first)
    # The attribute of the last type has no hash, so the type is described again.
    assert describe_types() == first
    types = [value for value in described if isinstance(value, tt.TensorType)]
    assert len(types) == len(first) + 1
    # Another Describer gives the same descriptions.
    describer = Describer()
    assert describe_types() == first


def test_long_texts_are_distinguished():
    texts = ["a" * 200, "b" * 200, "a" * 201]
    values = [*texts, *([text] for text in texts), *({text: 1} for text in texts)]
    descriptions = [Describer().describe(value) for value in values]
    assert len(set(descriptions)) == len(values)
    assert max(map(len, descriptions)) < 100
    # An equal text at another address has the same description.
    assert descriptions == [
        Describer().describe(value) for value in pickle.loads(pickle.dumps(values))
    ]


def test_a_text_without_utf_8_is_described():
    """A path with undecodable bytes has surrogates."""
    text = "\udc80" * 200
    assert Describer().describe(text) != Describer().describe(text + text)


@pytest.fixture
def code(tmp_path, monkeypatch):
    """Make a copy of a package that replaces Theano in the cache key; return its directory."""
    package = tmp_path / "package"
    for name in ("__init__.py", "gof/op.py", "gof/tests/test_op.py", "gof/data.txt"):
        path = package / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(name)
    monkeypatch.setattr(keys, "theano", types.SimpleNamespace(__file__=package / "__init__.py"))
    compiledir = tmp_path / "compiledir"
    compiledir.mkdir()
    monkeypatch.setattr(keys, "config", types.SimpleNamespace(compiledir=compiledir))
    return package


def test_the_hash_of_the_code_covers_all_files_except_tests(code):
    hashes = [keys.find_code_hash()]
    for name in ("gof/op.py", "gof/new.py"):
        (code / name).write_text("changed")
        hashes.append(keys.find_code_hash())
    (code / "gof/new.py").rename(code / "gof/renamed.py")
    hashes.append(keys.find_code_hash())
    assert len(set(hashes)) == 4
    for name in ("gof/tests/test_op.py", "gof/data.txt"):
        (code / name).write_text("changed")
        assert keys.find_code_hash() == hashes[-1]


def test_the_code_is_read_only_if_a_file_has_changed(code, tmp_path):
    code_hash = keys.find_code_hash()
    record = tmp_path / "compiledir" / keys.CODE_HASH
    identity, recorded = record.read_text().split()
    assert recorded == code_hash
    record.write_text(f"{identity} recorded")
    assert keys.find_code_hash() == "recorded"
    (code / "gof/op.py").touch()
    assert keys.find_code_hash() == code_hash


def test_a_replaced_file_of_the_same_size_and_time_is_read(code):
    """The package's files have the same modification time in each build."""
    file = code / "gof/op.py"
    code_hash = keys.find_code_hash()
    status = file.stat()
    file.write_text(file.read_text()[::-1])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert keys.find_code_hash() != code_hash


def test_another_build_in_a_read_only_image_is_read(code, monkeypatch):
    """The files of two images can have the same sizes, times and inodes."""
    monkeypatch.setattr(keys, "describe_file", str)
    code_hash = keys.find_code_hash()
    (code / "gof/op.py").write_text("changed")
    assert keys.find_code_hash() == code_hash
    (code / "package_digest").write_text("another")
    assert keys.find_code_hash() != code_hash


def test_without_readable_code_no_graph_is_cached(run_program):
    ((*_, result),), kept = run_program(
        """
from theano.gof.graph_cache import keys
def fail():
    raise OSError("unreadable")
keys.describe_versions = fail
x = tt.dscalar()
report(theano.function([x], [2 * x]), 3.0)
"""
    )
    assert (result, kept) == ([6.0], 0)


@pytest.mark.parametrize("content", [b"", b"one", b"one two three", b"\xff \xff"])
def test_a_damaged_record_of_the_code_is_replaced(code, tmp_path, content):
    code_hash = keys.find_code_hash()
    record = tmp_path / "compiledir" / keys.CODE_HASH
    before = record.read_bytes()
    record.write_bytes(content)
    assert keys.find_code_hash() == code_hash
    assert record.read_bytes() == before


def test_without_a_compiledir_the_code_is_read(code, tmp_path):
    code_hash = keys.find_code_hash()
    shutil.rmtree(tmp_path / "compiledir")
    assert keys.find_code_hash() == code_hash


def test_items_of_lists_are_distinguished():
    """The items of a list are described by their classes, nesting and values."""
    values = [
        *([1, 2], (1, 2), [1.0, 2.0], [True, 2], ["1", "2"], [12], ["1, 2"], [[1], 2], [[1, 2]]),
        *([None, 2], [1, 2, None], [b"1", 2], [np.float64(1), 2], [1, np.int8(2)], [{1: 2}], []),
    ]
    descriptions = [Describer().describe(value) for value in values]
    assert len(set(descriptions)) == len(values)
    assert descriptions == [Describer().describe(value) for value in values]


def test_a_name_that_looks_encoded_is_not_pickled():
    x = tt.dvector()
    x.name = (0, "x")
    pickler = pickling.Pickler(io.BytesIO(), Describer())
    with pytest.raises(pickle.PicklingError, match="is a tuple"):
        pickler.split_variable(x)


def test_only_the_unpickler_restores_ops_with_inner_graphs():
    x = scalar.float64("x")
    op = scalar.Composite([x], [x + x * 2])
    stream = io.BytesIO()
    pickling.Pickler(stream, Describer()).dump(op)
    restored = pickling.Unpickler(io.BytesIO(stream.getvalue()), Describer()).load()
    assert restored == op
    assert restored is not op
    with pytest.raises(pickle.UnpicklingError, match="only Unpickler"):
        pickle.loads(stream.getvalue())
