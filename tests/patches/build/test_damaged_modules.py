"""build/damaged-modules.patch compiles damaged modules again, and works on a full disk.

Without the patch, an empty library raises ImportError in every process until somebody removes it. A
truncated library kills the process. A changed key file can select a wrong module.
"""

import json
import os
import pickle
import random
import shutil
import subprocess
import sys
import time

import pytest
from recording import COMPILED

# Prints the number of compiled modules and the results.
PROGRAM = (
    COMPILED
    + """
import json
x = tt.dvector()
y = tt.dmatrix()
outputs = [tt.exp(x) + 1, tt.cos(x).sum(), tt.dot(y, y), tt.nnet.softmax(y){more}]
results = theano.function([x, y], outputs)([0.0], [[1.0]])
print(json.dumps([len(compiled), [result.tolist() for result in results]]))
"""
)
RESULTS = [[2.0], 1.0, [[1.0]], [[1.0]]]


@pytest.fixture
def compiled(tmp_path):
    """Return the compiledir of this test's processes; the first process creates it."""
    return tmp_path / "compiled"


@pytest.fixture
def run(run_python, compiled):
    """Return a function that runs PROGRAM and checks its results.

    It returns the number of compiled modules and the log.
    """

    def run(more="", results=RESULTS, flags=""):
        # Use a new interpreter, because a truncated library kills it.
        completed = run_python(PROGRAM.format(more=more), flags=f"compiledir={compiled},{flags}")
        assert completed.returncode == 0, completed.stderr
        count, actual = json.loads(completed.stdout)
        assert actual == results
        return count, completed.stderr

    return run


def remove(file):
    file.unlink()


def make_empty(file):
    file.write_bytes(b"")


def halve(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def drop_last_byte(file):
    file.write_bytes(file.read_bytes()[:-1])


def flip_bit(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def fill_with_noise(file):
    file.write_bytes(random.Random(file.name).randbytes(file.stat().st_size))


def replace_by_other_pickle(file):
    file.write_bytes(pickle.dumps(["other"]))


def replace_by_directory(file):
    file.unlink()
    file.mkdir()


DAMAGES = [
    remove,
    make_empty,
    halve,
    drop_last_byte,
    flip_bit,
    fill_with_noise,
    replace_by_other_pickle,
    replace_by_directory,
]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("pattern", ["*.so", "key.pkl"])
def test_damaged_modules_are_compiled_again(run, compiled, pattern, damage):
    count, _ = run()
    assert count > 2
    for file in compiled.glob(f"tmp*/{pattern}"):
        # Damage a copy: modules of one batch are hard links to the same file.
        content = file.read_bytes()
        file.unlink()
        file.write_bytes(content)
        damage(file)
    # Remove the cached optimized graphs: this test covers modules only.
    shutil.rmtree(compiled / "optimized_graphs")
    assert run() == (count, "")
    assert run() == (0, "")


def test_other_files_in_a_modules_directory_are_not_executed(run, compiled):
    run()
    for file in compiled.glob("tmp*/__init__.py"):
        file.write_text("raise SystemExit(1)")
    assert run() == (0, "")


def test_a_damaged_module_is_logged_at_debug_level(run_python, compiled):
    code = """
import logging
import theano, theano.tensor as tt
logging.getLogger("theano").setLevel(logging.DEBUG)
x = tt.dvector()
theano.function([x], tt.exp(x) + 1)
"""
    flags = f"compiledir={compiled}"
    assert run_python(code, flags=flags).returncode == 0
    (library,) = compiled.glob("tmp*/*.so")
    content = library.read_bytes()
    library.unlink()
    library.write_bytes(content[:100])
    completed = run_python(code, flags=flags)
    assert completed.returncode == 0, completed.stderr
    messages = [
        line
        for line in completed.stderr.splitlines()
        if str(library) in line and "is ignored" in line
    ]
    assert len(messages) == 1
    assert messages[0].startswith("DEBUG")


def test_modules_without_a_checksum_are_used(run, run_python, compiled):
    """Modules whose key file has no checksum, as without the patch, are used.

    If the library of such a module is empty, the module is compiled again.
    """
    run()
    code = """
import pathlib, pickle, sys
import theano.tensor
for file in map(pathlib.Path, sys.argv[1:]):
    key_data = pickle.loads(file.read_bytes())
    del key_data.checksum
    file.write_bytes(pickle.dumps(key_data, protocol=pickle.HIGHEST_PROTOCOL))
"""
    keys = list(map(str, compiled.glob("tmp*/key.pkl")))
    code = code.replace("sys.argv[1:]", repr(keys))
    assert run_python(code).returncode == 0
    assert run() == (0, "")
    for file in compiled.glob("tmp*/*.so"):
        file.unlink()
        make_empty(file)
    count, log = run()
    assert (count, log) == (len(keys), "")
    assert run() == (0, "")


def test_a_moved_compiledir_serves_its_modules(run, compiled):
    run()
    moved = compiled.rename(compiled.with_name("moved"))
    count, log = run(flags=f"compiledir={moved}")
    assert (count, log) == (0, "")
    assert not compiled.exists()


# Copies the compile cache ($2) to a new file system ($1), fills the file system, and runs two
# programs ($4, $5).
FULL = """
mount -t tmpfs -o size=32m none "$1" && cp -a "$2"/. "$1" &&
{ cat /dev/zero > "$1/filling" || true; } 2> /dev/null && "$3" -c "$4" && "$3" -c "$5"
"""
MORE = ", tt.sin(x) + 2, tt.tan(y) - 2"


def test_a_full_disk_serves_existing_modules(run, compiled, base_environ, tmp_path):
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    probe = [*unshare, "mount", "-t", "tmpfs", "none", "/tmp"]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("this user may not mount a file system")
    run()
    full = tmp_path / "full"
    full.mkdir()
    parameters = full, compiled, sys.executable, *(PROGRAM.format(more=more) for more in ("", MORE))
    completed = subprocess.run(
        [*unshare, "sh", "-c", FULL, "sh", *parameters],
        env={**base_environ, "THEANO_FLAGS": f"compiledir={full},cmodule.shipped="},
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stderr
    first, second = map(json.loads, completed.stdout.splitlines())
    assert first == [0, RESULTS]
    assert second[0] > 0
    assert second[1][:-1] == [*RESULTS, [2.0]]
    assert completed.stderr.count("takes no more modules") == 1
    assert completed.stderr.count("WARNING") == 1


# Makes each compilation into the compiledir raise an error.
FAIL = """
import errno
import theano
from theano.gof.cc import CLinker
compile_elsewhere = CLinker.compile_cmodule
def fail(self, location):
    if location.startswith(theano.config.compiledir):
        raise {error}
    return compile_elsewhere(self, location)
CLinker.compile_cmodule = fail
"""


def test_modules_go_elsewhere_if_the_disk_is_full_while_compiling(run_python, compiled):
    fail = FAIL.format(error="OSError(errno.EDQUOT, 'Quota exceeded')")
    completed = run_python(fail + PROGRAM.format(more=""), flags=f"compiledir={compiled}")
    assert completed.returncode == 0, completed.stderr
    assert json.loads(completed.stdout)[1] == RESULTS
    assert completed.stderr.count("WARNING") == 1
    assert f"{compiled} takes no more modules" in completed.stderr
    assert list(compiled.glob("tmp*")) == []


def test_compiler_errors_are_raised_if_the_disk_has_space(run_python, compiled):
    fail = FAIL.format(error="RuntimeError('no such header')")
    completed = run_python(fail + PROGRAM.format(more=""), flags=f"compiledir={compiled}")
    assert completed.returncode == 1
    assert "no such header" in completed.stderr
    assert "takes no more modules" not in completed.stderr


# The number of processes to kill.
KILLS = int(os.environ.get("THEANO_FAST_KILLS", "12"))


def test_a_process_killed_at_any_moment_leaves_a_valid_cache(run, compiled, base_environ):
    environ = {
        **base_environ,
        "TMPDIR": str(compiled.parent),
        "THEANO_FLAGS": f"compiledir={compiled},cmodule.shipped=",
    }
    generator = random.Random(1)
    # The kill comes at a random time within the duration of the program, in seconds. The key is
    # True for an empty cache, and False for a half-filled cache.
    durations = {True: 10.0, False: 10.0}
    tries = killed = 0
    while killed < KILLS:
        tries += 1
        is_empty = bool(tries % 2)
        entries = [*compiled.glob("optimized_graphs/*"), *compiled.glob("tmp*")]
        for entry in entries[:: 2 - is_empty]:
            shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        start = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(more="")],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.wait(generator.uniform(0, durations[is_empty])) == 0
            durations[is_empty] = 1.2 * (time.monotonic() - start)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            # The next process computes correct results, and the process after it compiles nothing.
            assert run()[1] == ""
            assert run() == (0, "")
