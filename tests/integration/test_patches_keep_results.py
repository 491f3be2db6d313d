"""Check that the patches that speed up Theano do not change results.

The tests compare the stack's Theano with Theano without these patches. Both run on the same
interpreter, NumPy and BLAS, and compute random graphs and graphs of ``bench/``. Values and
gradients must be equal to the last bit, each Scan must take the same number of steps, and the
optimized graphs must have the same nodes.

The variable THEANO_FAST_EXAMPLES is the number of random graphs for each setting of Theano; the
setting that compiles C computes a twelfth of them. Without the variable, the number is 25, the
random graphs are the same in each run, and graphs that take minutes are omitted.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from random_graphs import graphs

from builder.common import paths
from builder.common.processes import Conversation, clean_environ, run
from builder.maintenance import patches
from builder.options import Options
from builder.pipeline import Build
from builder.source.sources import fetch

PROGRAM = Path(__file__).with_name("graph_program.py")
# The themes of the patches that speed up the compilation, optimization and execution of a graph.
SPEED_THEMES = ("build/", "graph/", "run/")
# Patches of these themes that both sides have: they change the optimized graph, or files of src
# import names that they define.
SHARED_PATCHES = (
    "build/modules-are-cached.patch",
    "graph/clone-in-one-pass.patch",
    "graph/cycles-depth-first.patch",
    "graph/push-out-in-one-pass.patch",
    "graph/known-order.patch",
    "run/shallow-composites.patch",
    "run/updates-in-one-loop.patch",
)
REQUESTED = os.environ.get("THEANO_FAST_EXAMPLES")
EXAMPLES = int(REQUESTED or 25)
# Flags for Theano without a compiler. Theano then fuses nothing and leaves BLAS to NumPy.
NO_COMPILER = "cxx="
# Flags that optimize graphs for C, but run them in Python without compiling them.
OPTIMIZED_FOR_C = "mode=Mode,linker=py,optimizer=fast_run"
# Flags that compile graphs to C. Both sides call the C library and the BLAS, because
# theano_functions.h and the kernels for products round differently. Both sides use the same
# instructions; otherwise a patch would select g++'s flags for the processor.
IN_C = "gcc.cxxflags=-DTHEANO_LIBM -march=x86-64,blas.kernels=False"


@pytest.fixture(scope="module")
def slow_theano(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack Theano's source and apply all patches except patches that only speed it up."""
    recipe = next(
        recipe
        for recipe in Build.create("openblas", Options()).plan.recipes
        if recipe.name == "theano"
    )
    directory = tmp_path_factory.mktemp("slow_theano")
    (archive,) = fetch(recipe.sources)
    run(["tar", "-xf", archive, "-C", directory])
    (tree,) = directory.iterdir()
    for name in patches.list_patches(recipe.path):
        if name in SHARED_PATCHES or not name.startswith(SPEED_THEMES):
            patch = recipe.path / "patches" / name
            command = ["patch", "--strip=1", "--silent", f"--input={patch}"]
            subprocess.run(command, cwd=tree, check=True)
    shutil.copytree(recipe.path / patches.OWN_FILES, tree, dirs_exist_ok=True)
    return tree


def make_environ(home: Path, *path: Path) -> dict[str, str]:
    """Make a home directory; return the variables of a process that uses it.

    If ``path`` names a directory, the process imports Theano from this directory; otherwise, from
    the environment.
    """
    home.mkdir()
    return {
        **clean_environ(),
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(map(str, [*path, paths.BENCH])),
    }


def test_two_different_theanos_are_compared(
    prefix: Path, slow_theano: Path, tmp_path: Path
) -> None:
    """One process imports Theano from the environment, the other from the patched source."""
    program = "import theano; print(theano.__file__)"
    python = [prefix / "bin" / "python", "-c", program]
    files = [
        run(python, env=make_environ(tmp_path / name, *path)).output
        for name, path in (("fast", []), ("slow", [slow_theano]))
    ]
    assert files[0].startswith(str(prefix))
    assert files[1].startswith(str(slow_theano))


@dataclass(frozen=True)
class Pair:
    """Conversations with the stack's Theano, and with Theano without the patches."""

    fast: Conversation
    slow: Conversation

    def ask(self, question: Any) -> list[dict[str, Any]]:
        """Return the answers of ``fast``, of ``slow``, and of ``fast`` again.

        The last answer comes from the stack's cache of optimized graphs, if the flags permit.
        """
        line = json.dumps(question)
        return [json.loads(theano.ask(line)) for theano in (self.fast, self.slow, self.fast)]


@contextlib.contextmanager
def start_pair(prefix: Path, slow_theano: Path, home: Path, flags: str) -> Iterator[Pair]:
    """Start graph_program.py with both Theanos and with Theano's ``flags``."""
    python = prefix / "bin" / "python"
    with contextlib.ExitStack() as stack:
        conversations = []
        for name, path in (("fast", []), ("slow", [slow_theano])):
            environ = make_environ(home / name, *path) | {"THEANO_FLAGS": f"profile=True,{flags}"}
            conversation = Conversation([python, PROGRAM], env=environ, cwd=home / name)
            conversations.append(stack.enter_context(conversation))
        yield Pair(*conversations)


@pytest.mark.parametrize(
    ("flags", "examples"),
    [(NO_COMPILER, EXAMPLES), (OPTIMIZED_FOR_C, EXAMPLES), (IN_C, EXAMPLES // 12)],
    ids=["no compiler", "optimized for C", "in C"],
)
def test_random_graphs_have_equal_results(
    prefix: Path, slow_theano: Path, tmp_path: Path, flags: str, examples: int
) -> None:
    failures = []

    @settings(
        max_examples=examples,
        derandomize=REQUESTED is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(graphs())
    def check(graph: dict[str, Any]) -> None:
        fast, slow, cached = pair.ask(graph)
        if "error" in slow:
            failures.append(graph)
        # Ignore a graph if an answer is missing because of the time limit.
        if not any("not done" in answer.get("error", "") for answer in (fast, slow, cached)):
            assert fast == slow == cached

    with start_pair(prefix, slow_theano, tmp_path, flags) as pair:
        check()
    # Theano does not cache graphs for the linker py.
    cached_graphs = list(tmp_path.glob("fast/.theano/*/*/optimized_graphs/*"))
    assert bool(cached_graphs) == (flags != OPTIMIZED_FOR_C)
    # Theano 1.0.5 cannot compute some graphs because of errors in Scan.
    assert len(failures) <= examples / 4


# Without the patches, g++ compiles the modules of these graphs for minutes.
THOROUGH = pytest.mark.skipif(REQUESTED is None, reason="THEANO_FAST_EXAMPLES is not set")


@pytest.mark.parametrize(
    ("graph", "flags"),
    [
        ("ntm-small", NO_COMPILER),
        ("conv", IN_C),
        pytest.param("mlp", IN_C, marks=THOROUGH),
        pytest.param("lstm", IN_C, marks=THOROUGH),
    ],
)
def test_graphs_of_the_bench_have_equal_results(
    prefix: Path, slow_theano: Path, tmp_path: Path, graph: str, flags: str
) -> None:
    with start_pair(prefix, slow_theano, tmp_path, flags) as pair:
        fast, slow, cached = pair.ask(graph)
    assert fast == slow == cached
    assert list(tmp_path.glob("fast/.theano/*/*/optimized_graphs/*"))
