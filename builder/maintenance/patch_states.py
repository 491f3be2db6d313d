"""Check the states of Theano's patch series: the source after the first patches, up to each one.

A state must have no undefined name, import, compile a small program in C and compute the right
numbers. It runs in the interpreter of the openblas environment, with the libraries that the
environment's Theano was compiled to: they come from files of our own, which all states share.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.common import paths, progress
from builder.common.errors import CommandFailed, UsageError
from builder.common.processes import clean_environ, run
from builder.environment import envs
from builder.maintenance import patches

STACK = "openblas"
RECIPE = "theano"
PROGRAM = paths.ROOT / "tests" / "patches" / "state_program.py"
# The theme that makes Theano run on today's Python: states before its end are not checked.
PORT = "port/"
# Syntax errors, undefined names and redefinitions.
RULES = "E9,F811,F821,F823"
# Lines of an error that the report shows.
LINES = 12


@dataclass(frozen=True)
class State:
    """The source after a patch: the patch's name, the commit and the Python files it changed."""

    patch: str
    commit: str
    changed: tuple[str, ...]


def check(selected: Sequence[str], offline: bool = False) -> None:
    """Check the states after the selected patches, or after all patches that follow the port.

    Args:
        selected: parts of patches' names; all states for none.

    Raises:
        UsageError: no patch has such a name.
        EnvironmentFailed: the openblas environment is not built.
        CommandFailed: a state is broken.
    """
    envs.require_installed(STACK)
    tree = patches.open_tree(RECIPE, offline)
    states = [state for state in read_states(tree) if is_selected(state.patch, selected)]
    if not states:
        raise UsageError(
            f"no patch is named {', '.join(selected)}",
            "recipes/theano/recipe.yaml lists the patches",
        )
    broken = []
    for number, state in enumerate(states, 1):
        started = time.monotonic()
        error = find_error(tree, state)
        verdict = f"FAILED\n{error}" if error else "passed"
        seconds = time.monotonic() - started
        progress.say(f"{number}/{len(states)} {state.patch}: {verdict} ({seconds:.0f} s)")
        broken += [state.patch] if error else []
    if broken:
        raise CommandFailed(f"broken after {', '.join(broken)}")
    progress.conclude(f"{len(states)} states of the patch series pass")


def is_selected(patch: str, selected: Sequence[str]) -> bool:
    """Whether a patch's name contains a selected part; for none, whether it follows the port."""
    if selected:
        return any(part in patch for part in selected)
    return not patch.startswith(PORT)


def read_states(tree: Path) -> Iterator[State]:
    """Read the states from the commits of a work tree, in order."""
    for commit in patches.git(tree, "rev-list", "--reverse", f"{patches.UPSTREAM}..HEAD").split():
        message = patches.git(tree, "show", "--no-patch", "--format=%B", commit)
        changed = patches.git(tree, "diff", "--name-only", f"{commit}~", commit).split()
        yield State(
            message.rstrip().rpartition(patches.TRAILER)[2],
            commit,
            tuple(file for file in changed if file.endswith(".py")),
        )


def find_error(tree: Path, state: State) -> str:
    """Return the last lines of the error of a state, or an empty string."""
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        source = directory / "source"
        write_source(tree, state.commit, source)
        ruff: list[str | Path] = [paths.VENV / "bin" / "ruff", "check", "--isolated", "--no-cache"]
        ruff += ["--quiet", f"--select={RULES}", *(source / file for file in state.changed)]
        commands: list[list[str | Path]] = [[envs.python_path(STACK), PROGRAM]]
        if state.changed:
            commands.insert(0, ruff)
        environ = {
            **clean_environ(),
            "HOME": str(directory),
            "PYTHONPATH": str(source),
            "THEANO_FLAGS": f"base_compiledir={directory},cmodule.shipped=,on_opt_error=raise",
        }
        for command in commands:
            done = run(command, env=environ, check=False)
            if done.status != 0:
                return "\n".join(done.output.strip().splitlines()[-LINES:])
    return ""


def write_source(tree: Path, commit: str, directory: Path) -> None:
    """Write the source of a commit to a directory, with our own files and compiled libraries."""
    directory.mkdir()
    archive = directory.with_suffix(".tar")
    patches.git(tree, "archive", "--output", archive, commit)
    run(["tar", "--extract", "--file", archive, "--directory", directory])
    own_files = paths.RECIPES / RECIPE / patches.OWN_FILES
    installed = envs.find_site_packages(paths.ENVIRONMENTS / STACK)
    files = [(file, own_files) for file in own_files.rglob("*.*") if file.suffix != ".pyi"]
    files += [(file, installed) for file in (installed / RECIPE).rglob("*.so")]
    for file, root in files:
        target = directory / file.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
