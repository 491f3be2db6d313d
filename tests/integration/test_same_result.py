"""What makes Theano faster changes nothing that it computes.

The stack's Theano is held against one without those patches, on the same interpreter, NumPy and
BLAS: on random graphs, and on those of the bench. Values and gradients must be the same to the
last bit, every Scan must make the same steps, and the optimized graphs must have the same nodes.

THEANO_FAST_EXAMPLES is how many random graphs there are of each kind, of which a few are compiled
to C. Unless it is set, they are the same in each run, and graphs that take minutes are left out.
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
from descriptions import graphs
from hypothesis import HealthCheck, given, settings

from builder import pipeline
from builder.common import paths
from builder.common.processes import Conversation, clean_environ, run
from builder.maintenance import patches
from builder.source.sources import fetch

PROGRAM = Path(__file__).with_name("graph_program.py")
# The patches that change how a graph is compiled, optimized and run, but for those after which
# another graph is computed, or without which files of ours cannot be imported.
SPEED = ("build/", "graph/", "run/")
OTHER_GRAPH = (
    "build/modules-are-cached.patch",
    "graph/clone-in-one-pass.patch",
    "graph/cycles-depth-first.patch",
    "graph/gradients-of-scan.patch",
    "graph/known-order.patch",
    "graph/push-out-in-one-pass.patch",
    "run/shallow-composites.patch",
    "run/updates-in-one-loop.patch",
)
CHOSEN = os.environ.get("THEANO_FAST_EXAMPLES")
EXAMPLES = int(CHOSEN or 25)
# Each as Theano's flags. Without a compiler Theano fuses nothing and leaves BLAS to NumPy; the
# linker of the second runs the graphs that are meant for C, without compiling them.
NO_COMPILER = "cxx="
MEANT_FOR_C = "mode=Mode,linker=py,optimizer=fast_run"
# Without the functions of theano_functions.h, which round otherwise than the C library's.
IN_C = "gcc.cxxflags=-DTHEANO_LIBM"


@pytest.fixture(scope="module")
def without(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sources of Theano with all patches but SPEED."""
    recipe = next(
        each
        for each in pipeline.plan("openblas", pipeline.Options()).plan.recipes
        if each.name == "theano"
    )
    directory = tmp_path_factory.mktemp("without")
    (archive,) = fetch(recipe.sources)
    run(["tar", "-xf", archive, "-C", directory])
    (tree,) = directory.iterdir()
    for name in patches.listed(recipe.path):
        if name in OTHER_GRAPH or not name.startswith(SPEED):
            patch = recipe.path / "patches" / name
            command = ["patch", "--strip=1", "--silent", f"--input={patch}"]
            subprocess.run(command, cwd=tree, check=True)
    shutil.copytree(recipe.path / patches.OURS, tree, dirs_exist_ok=True)
    return tree


def environ(home: Path, *path: Path) -> dict[str, str]:
    """The variables of a process that looks into ``path`` for Theano first."""
    home.mkdir()
    return {
        **clean_environ(),
        "HOME": str(home),
        "PYTHONPATH": os.pathsep.join(map(str, [*path, paths.BENCH])),
    }


def test_the_other_theano_is_another(prefix: Path, without: Path, tmp_path: Path) -> None:
    program = "import theano; print(theano.__file__)"
    python = [prefix / "bin" / "python", "-c", program]
    found = [
        run(python, env=environ(tmp_path / name, *path)).output
        for name, path in (("stack", []), ("other", [without]))
    ]
    assert found[0].startswith(str(prefix))
    assert found[1].startswith(str(without))


@dataclass(frozen=True)
class Two:
    """The stack's Theano, and the one without the patches."""

    stack: Conversation
    other: Conversation

    def ask(self, question: Any) -> list[dict[str, Any]]:
        """What both answer, the first one again when it has kept the optimized graph."""
        line = json.dumps(question)
        return [json.loads(talk.ask(line)) for talk in (self.stack, self.other, self.stack)]


@contextlib.contextmanager
def two(prefix: Path, without: Path, home: Path, flags: str) -> Iterator[Two]:
    """Start both, with flags."""
    python = prefix / "bin" / "python"
    with contextlib.ExitStack() as started:
        talks = []
        for name, path in (("stack", []), ("other", [without])):
            settled = environ(home / name, *path) | {"THEANO_FLAGS": f"profile=True,{flags}"}
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
        # One of them may be done just in time.
        if not any("not done" in each.get("error", "") for each in (stack, other, again)):
            assert stack == other == again

    with two(prefix, without, tmp_path, flags) as both:
        check()
    # Those of the linker py are not kept.
    kept = list(tmp_path.glob("stack/.theano/*/*/optimized_graphs/*"))
    assert bool(kept) == (flags != MEANT_FOR_C)
    # By errors of its own in Scan, there are graphs that Theano 1.0.5 cannot compute.
    assert len(refused) <= examples / 4


# Minutes of g++ without the patches.
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
    with two(prefix, without, tmp_path, flags) as both:
        stack, other, again = both.ask(graph)
    assert stack == other == again
    assert list(tmp_path.glob("stack/.theano/*/*/optimized_graphs/*"))
