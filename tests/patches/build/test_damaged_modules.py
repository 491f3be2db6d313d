"""build/damaged-modules.patch compiles damaged modules again, and works on a full disk.

Without the patch, an empty library raises ImportError in every process until somebody removes it,
half a library ends the process, and a changed key can load a wrong module.
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
    """Return a compiledir that contains the program's modules."""
    return tmp_path / "compiled"


@pytest.fixture
def run(run_python, compiled):
    """Run the program; return the number of compiled modules, and the log."""

    def run(more="", results=RESULTS, flags=""):
        # Half a library ends an interpreter that loads it.
        done = run_python(PROGRAM.format(more=more), flags=f"compiledir={compiled},{flags}")
        assert done.returncode == 0, done.stderr
        count, messages = json.loads(done.stdout)
        assert messages == results
        return count, done.stderr

    return run


def remove(file):
    file.unlink()


def empty(file):
    file.write_bytes(b"")


def halve(file):
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def cut(file):
    file.write_bytes(file.read_bytes()[:-1])


def flip(file):
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 1
    file.write_bytes(content)


def noise(file):
    file.write_bytes(random.Random(file.name).randbytes(file.stat().st_size))


def other(file):
    file.write_bytes(pickle.dumps(["other"]))


def directory(file):
    file.unlink()
    file.mkdir()


@pytest.mark.parametrize("damage", [remove, empty, halve, cut, flip, noise, other, directory])
@pytest.mark.parametrize("pattern", ["*.so", "key.pkl"])
def test_damaged_modules_are_compiled_again(run, compiled, pattern, damage):
    count, _ = run()
    assert count > 2
    for file in compiled.glob(f"tmp*/{pattern}"):
        # A process that has loaded the library keeps it.
        whole = file.read_bytes()
        file.unlink()
        file.write_bytes(whole)
        damage(file)
    # Remove the cached optimized graphs: this test covers modules only.
    shutil.rmtree(compiled / "optimized_graphs")
    assert run() == (count, "")
    assert run() == (0, "")


def test_other_files_in_a_modules_directory_are_ignored(run, compiled):
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
    whole = library.read_bytes()
    library.unlink()
    library.write_bytes(whole[:100])
    done = run_python(code, flags=flags)
    assert done.returncode == 0, done.stderr
    warnings = [
        line for line in done.stderr.splitlines() if str(library) in line and "is ignored" in line
    ]
    assert len(warnings) == 1
    assert warnings[0].startswith("DEBUG")


def test_modules_of_before_have_no_checksum(run, run_python, compiled):
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
        empty(file)
    count, log = run()
    assert (count, log) == (len(keys), "")
    assert run() == (0, "")


def test_a_compiledir_that_is_moved(run, compiled):
    run()
    moved = compiled.rename(compiled.with_name("moved"))
    count, log = run(flags=f"compiledir={moved}")
    assert (count, log) == (0, "")
    assert not compiled.exists()


# Copies the compile cache to a separate file system, fills it, and runs two programs.
FULL = """
mount -t tmpfs -o size=32m none "$1" && cp -a "$2"/. "$1" &&
{ cat /dev/zero > "$1/filling" || true; } 2> /dev/null && "$3" -c "$4" && "$3" -c "$5"
"""
MORE = ", tt.sin(x) + 2, tt.tan(y) - 2"


def test_a_full_disk_serves_existing_modules(run, compiled, variables, tmp_path):
    unshare = ["unshare", "--mount", *([] if os.geteuid() == 0 else ["--user", "--map-root-user"])]
    probe = [*unshare, "mount", "-t", "tmpfs", "none", "/tmp"]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        pytest.skip("nothing can be mounted here")
    run()
    full = tmp_path / "full"
    full.mkdir()
    parameters = full, compiled, sys.executable, *(PROGRAM.format(more=more) for more in ("", MORE))
    done = subprocess.run(
        [*unshare, "sh", "-c", FULL, "sh", *parameters],
        env={**variables, "THEANO_FLAGS": f"compiledir={full},cmodule.shipped="},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    first, second = map(json.loads, done.stdout.splitlines())
    assert first == [0, RESULTS]
    assert second[0] > 0
    assert second[1][:-1] == [*RESULTS, [2.0]]
    assert done.stderr.count("takes no more modules") == 1
    assert done.stderr.count("WARNING") == 1


FAIL = """
import errno
import theano
from theano.gof.cc import CLinker
compile_there = CLinker.compile_cmodule
def full(self, location):
    if location.startswith(theano.config.compiledir):
        raise {error}
    return compile_there(self, location)
CLinker.compile_cmodule = full
"""


def test_a_disk_that_is_full_while_compiling(run_python, compiled):
    fail = FAIL.format(error="OSError(errno.EDQUOT, 'Quota exceeded')")
    done = run_python(fail + PROGRAM.format(more=""), flags=f"compiledir={compiled}")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)[1] == RESULTS
    assert done.stderr.count("WARNING") == 1
    assert f"{compiled} takes no more modules" in done.stderr
    assert list(compiled.glob("tmp*")) == []


def test_compiler_errors_are_raised_if_the_disk_has_space(run_python, compiled):
    fail = FAIL.format(error="RuntimeError('no such header')")
    done = run_python(fail + PROGRAM.format(more=""), flags=f"compiledir={compiled}")
    assert done.returncode == 1
    assert "no such header" in done.stderr
    assert "takes no more modules" not in done.stderr


# The number of processes to kill.
KILLS = int(os.environ.get("THEANO_FAST_KILLS", "12"))


def test_a_process_killed_at_any_moment_leaves_a_valid_cache(run, compiled, variables):
    environ = {
        **variables,
        "TMPDIR": str(compiled.parent),
        "THEANO_FLAGS": f"compiledir={compiled},cmodule.shipped=",
    }
    chance = random.Random(1)
    # The duration with an empty and with a half-filled cache limits the time until the kill.
    takes = {True: 10.0, False: 10.0}
    tries = killed = 0
    while killed < KILLS:
        tries += 1
        empty = bool(tries % 2)
        for kept in [*compiled.glob("optimized_graphs/*"), *compiled.glob("tmp*")][:: 2 - empty]:
            shutil.rmtree(kept) if kept.is_dir() else kept.unlink()
        begun = time.monotonic()
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM.format(more="")],
            env=environ,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert process.wait(chance.uniform(0, takes[empty])) == 0
            takes[empty] = 1.2 * (time.monotonic() - begun)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            killed += 1
            # The next process has the right results, and the process after it compiles nothing.
            assert run()[1] == ""
            assert run() == (0, "")
