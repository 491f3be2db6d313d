"""Check that the patches that make Theano fast do not change results.

Compare the stack's Theano with a Theano without these patches, on the same interpreter, NumPy and
BLAS, with random graphs and the bench's graphs. Values and gradients must be equal to the last bit,
every Scan must make the same steps, and the optimized graphs must have the same nodes.

THEANO_FAST_EXAMPLES is the number of random graphs of each kind; a few of them are compiled to C.
Without it, the graphs are the same in each run, and graphs that take minutes are omitted.
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
# The patches that change the compilation, optimization and execution of a graph, without patches
# that change the optimized graph or that files of src import.
SPEED = ("build/", "graph/", "run/")
OTHER_GRAPH = (
    "build/modules-are-cached.patch",
    "graph/clone-in-one-pass.patch",
    "graph/cycles-depth-first.patch",
    "graph/push-out-in-one-pass.patch",
    "graph/known-order.patch",
    "run/shallow-composites.patch",
    "run/updates-in-one-loop.patch",
)
CHOSEN = os.environ.get("THEANO_FAST_EXAMPLES")
EXAMPLES = int(CHOSEN or 25)
# Theano's flags. Without a compiler, Theano fuses nothing and leaves BLAS to NumPy. The second
# linker runs the graphs that are optimized for C without compiling them.
NO_COMPILER = "cxx="
MEANT_FOR_C = "mode=Mode,linker=py,optimizer=fast_run"
# Both sides call the C library, because theano_functions.h rounds differently, and use the same
# instructions, because a patch chooses the flags for the processor.
IN_C = "gcc.cxxflags=-DTHEANO_LIBM -march=x86-64"


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack Theano's sources and apply all patches except SPEED."""
    recipe = next(
        recipe
        for recipe in Build.of_stack("openblas", Options()).plan.recipes
        if recipe.name == "theano"
    )
    directory = tmp_path_factory.mktemp("without")
    (archive,) = fetch(recipe.sources)
    run(["tar", "-xf", archive, "-C", directory])
    (tree,) = directory.iterdir()
    for name in patches.list_patches(recipe.path):
        if name in OTHER_GRAPH or not name.startswith(SPEED):
            patch = recipe.path / "patches" / name
            command = ["patch", "--strip=1", "--silent", f"--input={patch}"]
            subprocess.run(command, cwd=tree, check=True)
    shutil.copytree(recipe.path / patches.OWN_FILES, tree, dirs_exist_ok=True)
    return tree


def make_environ(home: Path, *path: Path) -> dict[str, str]:
    """Return the variables of a process that imports Theano from ``path``."""
    home.mkdir()
    return {
        **clean_environ(),
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(map(str, [*path, paths.BENCH])),
    }


def test_two_different_theanos_are_compared(prefix: Path, without: Path, tmp_path: Path) -> None:
    program = "import theano; print(theano.__file__)"
    python = [prefix / "bin" / "python", "-c", program]
    outcomes = [
        run(python, env=make_environ(tmp_path / name, *path)).output
        for name, path in (("stack", []), ("other", [without]))
    ]
    assert outcomes[0].startswith(str(prefix))
    assert outcomes[1].startswith(str(without))


@dataclass(frozen=True)
class Two:
    """The stack's Theano, and Theano without the patches."""

    stack: Conversation
    other: Conversation

    def ask(self, question: Any) -> list[dict[str, Any]]:
        """Return the stack's and the other answer, and the stack's again, from its graph cache."""
        line = json.dumps(question)
        return [json.loads(talk.ask(line)) for talk in (self.stack, self.other, self.stack)]


@contextlib.contextmanager
def start_two(prefix: Path, without: Path, home: Path, flags: str) -> Iterator[Two]:
    """Start the stack's Theano and the other Theano with ``flags``."""
    python = prefix / "bin" / "python"
    with contextlib.ExitStack() as started:
        talks = []
        for name, path in (("stack", []), ("other", [without])):
            settled = make_environ(home / name, *path) | {"THEANO_FLAGS": f"profile=True,{flags}"}
            talk = Conversation([python, PROGRAM], env=settled, cwd=home / name)
            talks.append(started.enter_context(talk))
        yield Two(*talks)


@pytest.mark.parametrize(
    ("flags", "examples"),
    [(NO_COMPILER, EXAMPLES), (MEANT_FOR_C, EXAMPLES), (IN_C, EXAMPLES // 12)],
    ids=["no compiler", "meant for C", "in C"],
)
def test_random_graphs(
    prefix: Path, without: Path, tmp_path: Path, flags: str, examples: int
) -> None:
    refused = []

    @settings(
        max_examples=examples,
        derandomize=CHOSEN is None,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(graphs())
    def check(graph: dict[str, Any]) -> None:
        stack, other, again = both.ask(graph)
        if "error" in other:
            refused.append(graph)
        # One of the two processes may reach its time limit.
        if not any("not done" in outcome.get("error", "") for outcome in (stack, other, again)):
            assert stack == other == again

    with start_two(prefix, without, tmp_path, flags) as both:
        check()
    # Graphs of the linker py are not cached.
    kept = list(tmp_path.glob("stack/.theano/*/*/optimized_graphs/*"))
    assert bool(kept) == (flags != MEANT_FOR_C)
    # Theano 1.0.5 cannot compute some graphs because of errors in Scan.
    assert len(refused) <= examples / 4


# Without the patches, g++ runs for minutes.
THOROUGH = pytest.mark.skipif(CHOSEN is None, reason="THEANO_FAST_EXAMPLES is not set")


@pytest.mark.parametrize(
    ("graph", "flags"),
    [
        ("ntm-small", NO_COMPILER),
        ("conv", IN_C),
        pytest.param("mlp", IN_C, marks=THOROUGH),
        pytest.param("lstm", IN_C, marks=THOROUGH),
    ],
)
def test_graphs_of_the_bench(
    prefix: Path, without: Path, tmp_path: Path, graph: str, flags: str
) -> None:
    with start_two(prefix, without, tmp_path, flags) as both:
        stack, other, again = both.ask(graph)
    assert stack == other == again
    assert list(tmp_path.glob("stack/.theano/*/*/optimized_graphs/*"))
