"""Check each state of Theano's patch series: the source after a patch and all patches before it.

`check_statically` takes seconds. It finds syntax errors, undefined names and functions without a
return statement. `check` runs a small program in each state. The program imports Theano, compiles C
code and compares results. It runs in the interpreter of the openblas environment, with extension
modules that are compiled from the state's source.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import json
import math
import os
import re
import shutil
import tempfile
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from builder.common import paths, progress
from builder.common.errors import CommandFailed, UsageError
from builder.common.processes import clean_environ, run
from builder.environment import envs
from builder.maintenance import compilers, patches, theano_changes
from builder.proof.linked_packages import PYTEST, link_packages
from builder.proof.pytest_runs import PLUGIN

STACK = "openblas"
RECIPE = "theano"
PROGRAM = paths.ROOT / "tests" / "patches" / "state_program.py"
# The theme whose patches make Theano run on current Python. Its states are not checked, because
# Theano does not run before the theme's last patch.
PORT = "port/"
# ruff's rules for syntax errors and undefined names.
RULES = "E9,F821,F823"
# The number of last output lines that the report of an error contains.
ERROR_LINES = 12
# --turn checks the states of changed patches and about STATES_PER_TURN other states, but at most
# MOST_STATES_PER_TURN states. A state takes 5 s on two CPUs, or 30 s before the patches of build/,
# which shorten compilation.
STATES_PER_TURN = 6
MOST_STATES_PER_TURN = 20
# A program that prints the directories of Python's and NumPy's headers and of libraries, and the
# suffix of extension modules.
PRINT_DIRECTORIES = """
import json, sysconfig, numpy
print(json.dumps([sysconfig.get_paths()["include"], numpy.get_include(),
                  sysconfig.get_config_var("LIBDIR"), sysconfig.get_config_var("EXT_SUFFIX")]))
"""
# An entry of EXTENSIONS in Theano's setup.py: the module and its source.
EXTENSION = re.compile(r"\('(theano\.[\w.]+)',\s+'([\w/]+\.c(?:pp)?)'")


def check(selected: Sequence[str], turn: int = 0, offline: bool = False) -> None:
    """Run PROGRAM in the states of the patch series, and print whether each state passes.

    Args:
        selected: run the states of the patches whose names contain one of these strings; if empty,
            run the states of all patches after ``port/``.
        turn: 0 to run all selected states. Any other number, such as the day of the year: run the
            states of patches that the last commit or the work tree changes, and a few other states,
            which the number determines.
        offline: download nothing.

    Raises:
        UsageError: no patch's name contains one of the strings.
        EnvironmentFailed: the openblas environment is not built.
        CommandFailed: a state is broken.
    """
    envs.require_installed(STACK)
    names = [name for name in patches.list_patches(get_recipe()) if is_selected(name, selected)]
    if not names:
        raise UsageError(
            f"no patch's name contains {' or '.join(selected)}",
            "recipes/theano/recipe.yaml lists the patches",
        )
    if turn:
        names = select_turn(names, find_changed_patches(), turn)
    broken = []
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as directory:
        source = Path(directory, "source")
        for name in apply_patches(source, offline):
            if name in names:
                error = find_error(source)
                verdict = f"FAILED\n{error}" if error else "passed"
                seconds = time.monotonic() - started
                number = f"{names.index(name) + 1}/{len(names)}"
                progress.say(f"{number} {name}: {verdict} ({seconds:.0f} s)")
                broken += [name] if error else []
    if broken:
        raise CommandFailed(f"the source is broken after the patches {', '.join(broken)}")
    progress.conclude(f"{len(names)} states of the patch series pass")


def get_recipe() -> Path:
    """Return the directory of Theano's recipe."""
    return paths.RECIPES / RECIPE


def apply_patches(source: Path, offline: bool, without: str = "") -> Iterator[str]:
    """Unpack Theano's source, add the files of ``recipes/theano/src``, and apply all patches.

    Args:
        source: the directory to create.
        offline: download nothing.
        without: the name of a patch that is not applied; "" to apply all patches.

    Yields:
        After each patch, its name.

    Raises:
        CommandFailed: a patch does not apply.
    """
    archive = patches.fetch_source_archive(get_recipe(), None, offline)
    source.mkdir()
    # Create a repository: if the directory is inside another repository, git apply skips its files.
    patches.run_git(source, "init", "--quiet")
    run(["tar", "--extract", "--strip-components=1", "--file", archive, "--directory", source])
    copy_own_files(source)
    for name in patches.list_patches(get_recipe()):
        if name == without:
            continue
        try:
            patches.run_git(source, "apply", "--whitespace=nowarn", get_recipe() / "patches" / name)
        except CommandFailed as error:
            reason = f" without {without}, because it changes the same lines" if without else ""
            raise CommandFailed(f"{name} does not apply{reason}") from error
        yield name


def is_selected(patch: str, selected: Sequence[str]) -> bool:
    """Return whether the name of a patch contains one of the strings ``selected``.

    If ``selected`` is empty, return whether the patch comes after the theme ``port/``.
    """
    if selected:
        return any(part in patch for part in selected)
    return not patch.startswith(PORT)


def select_turn(names: Sequence[str], changed: Collection[str], turn: int) -> list[str]:
    """Select the states of changed patches, and about STATES_PER_TURN other states.

    The other states are every n-th state; ``turn`` determines the first. If the result has more
    than MOST_STATES_PER_TURN states, return only every n-th of them.

    Args:
        names: the names of all patches.
        changed: the names of changed patches.
        turn: any number. Consecutive numbers select different states.
    """
    step = math.ceil(len(names) / STATES_PER_TURN)
    others = names[turn % step :: step]
    selected = [name for name in names if name in changed or name in others]
    step = math.ceil(len(selected) / MOST_STATES_PER_TURN)
    return selected[turn % step :: step]


def find_changed_patches() -> set[str]:
    """Return the names of the patches that the last commit or the work tree changes.

    Return an empty set if git has no earlier commit.
    """
    directory = get_recipe() / "patches"
    root = directory.relative_to(paths.ROOT)
    try:
        changed = patches.run_git(paths.ROOT, "diff", "--name-only", "HEAD~1", "--", root).split()
    except CommandFailed:
        return set()
    return {name.removeprefix(f"{root}/") for name in changed}


def find_error(source: Path) -> str:
    """Run PROGRAM with Theano's source; return the last lines of its error, or "" if it passes."""
    try:
        compile_extensions(source)
    except CommandFailed as error:
        return str(error)
    with tempfile.TemporaryDirectory() as home:
        environ = {
            **clean_environ(),
            "HOME": home,
            "PYTHONPATH": str(source),
            "THEANO_FLAGS": f"base_compiledir={home},on_opt_error=raise,gcc.cxxflags=-O1",
        }
        finished = run([envs.get_python_path(STACK), PROGRAM], env=environ, check=False)
    return "\n".join(finished.output.strip().splitlines()[-ERROR_LINES:]) if finished.status else ""


def test_without(patch: str, selected: str = "", offline: bool = False) -> None:
    """Run ``tests/patches`` on Theano's source without one patch, and print the failed tests.

    Ignore tests that also fail on the source with all patches. They fail because the source is not
    installed.

    Args:
        patch: the name of the patch, or a part of the name.
        selected: pytest's -k expression; "" to run all tests.
        offline: download nothing.

    Raises:
        UsageError: no patch's name contains ``patch``, or several names do.
        EnvironmentFailed: the openblas environment is not built.
        CommandFailed: a later patch changes the same lines, or none of the patch's own tests fails.
    """
    envs.require_installed(STACK)
    names = [name for name in patches.list_patches(get_recipe()) if patch in name]
    if len(names) != 1:
        raise UsageError(
            f"{len(names)} patches have {patch} in their names",
            ", ".join(names) or "recipes/theano/recipe.yaml lists the patches",
        )
    (name,) = names
    own_files = {str(file.relative_to(paths.ROOT)) for file in theano_changes.find_tests(name)}
    with tempfile.TemporaryDirectory() as directory:
        source, complete = Path(directory, "without"), Path(directory, "complete")
        list(apply_patches(source, offline, name))
        failed = run_tests(source, ["tests/patches"], selected)
        if failed:
            list(apply_patches(complete, offline))
            failed -= run_tests(complete, sorted(failed), "")
    own_failures = sorted(test for test in failed if test.partition("::")[0] in own_files)
    other_failures = sorted(failed.difference(own_failures))
    for title, tests in (("of its own tests", own_failures), ("other tests", other_failures)):
        progress.say("\n  ".join([f"without {name}, {len(tests)} {title} fail", *tests]))
    if not own_failures:
        raise CommandFailed(f"no test of {name} fails without it")


def run_tests(source: Path, tests: Sequence[str], selected: str) -> set[str]:
    """Run tests on Theano's source in the environment's interpreter; return the failed tests.

    Args:
        tests: pytest's arguments: files, directories or tests.
        selected: pytest's -k expression; "" to run all tests.
    """
    compile_extensions(source)
    with tempfile.TemporaryDirectory() as home:
        packages = Path(home, "packages")
        packages.mkdir()
        link_packages(packages, *PYTEST)
        environ = {
            **clean_environ(),
            "HOME": home,
            "PATH": f"{os.environ['PATH']}:{compilers.install()}",
            "PYTHONPATH": f"{source}:{packages}",
        }
        options = ["-q", "-rfE", "--tb=no", "--color=no", "-p", "no:cacheprovider"]
        options += ["-o", f"pythonpath={PLUGIN.parent}", *(("-k", selected) if selected else ())]
        command: list[str | Path] = [envs.get_python_path(STACK), "-m", "pytest", *tests, *options]
        output = run(command, env=environ, cwd=paths.ROOT, check=False).output
    return set(re.findall(r"^(?:FAILED|ERROR) (\S+)", output, re.MULTILINE))


def copy_own_files(directory: Path) -> None:
    """Copy the files of ``recipes/theano/src`` into a source directory, except stubs (``.pyi``)."""
    own_files = get_recipe() / patches.OWN_FILES
    for file in own_files.rglob("*.*"):
        if file.is_file() and file.suffix not in (".pyi", ".pyc"):
            target = directory / file.relative_to(own_files)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, target)


def compile_extensions(source: Path) -> None:
    """Compile the extension modules of Theano's source.

    Cache them in ``build/patches/extensions``, by a hash of their code and headers.

    Raises:
        CommandFailed: a module does not compile.
    """
    text = (source / "setup.py").read_text(encoding="utf-8")
    # Before the patch that adds EXTENSIONS to setup.py, the source has only one module.
    extensions = EXTENSION.findall(text) or [
        ("theano.scan_module.scan_steps", "theano/scan_module/c_code/scan_steps.c")
    ]
    output = run([envs.get_python_path(STACK), "-c", PRINT_DIRECTORIES], env=clean_environ()).output
    python, numpy, libraries, suffix = json.loads(output.splitlines()[-1])
    programs = compilers.install()
    headers = sorted([*source.rglob("theano*.h"), *source.rglob("thunks/*.h")])
    cache = paths.BUILD / "patches" / "extensions"
    cache.mkdir(parents=True, exist_ok=True)
    for module, file in extensions:
        content = b"".join(path.read_bytes() for path in [*headers, source / file])
        cached = cache / hashlib.blake2b(output.encode() + content, digest_size=20).hexdigest()
        if not cached.exists():
            program = programs / ("gcc" if file.endswith(".c") else "g++")
            include = [f"-I{path}" for path in (python, numpy, source / "theano/gof/c_code")]
            compiled = cache / "new"
            run(
                [
                    *(program, "-O1", "-w", "-shared", "-fPIC", source / file, *include),
                    # thunks_ext calls functions of the environment's libtheano_functions.
                    *("-Wl,--as-needed", f"-L{libraries}", f"-Wl,-rpath,{libraries}"),
                    *("-ltheano_functions", "-o", compiled),
                ]
            )
            compiled.rename(cached)
        shutil.copyfile(cached, source / (module.replace(".", "/") + suffix))


def check_statically(offline: bool = False) -> None:
    """Find syntax errors, undefined names and functions without a return, in all states.

    Ignore errors that the first state after ``port/`` has too: Theano 1.0.5 contains them.

    Raises:
        CommandFailed: a state has such an error.
    """
    header = re.compile(r"^\+\+\+ b/(.+\.py)$", re.MULTILINE)
    changed = {
        name: header.findall(patches.read_patch(get_recipe(), name).diff)
        for name in patches.list_patches(get_recipe())
    }
    with tempfile.TemporaryDirectory() as directory:
        source, states = Path(directory, "source"), Path(directory, "states")
        first = ""
        for name in apply_patches(source, offline):
            if not name.startswith(PORT):
                first = first or name
                files = changed[name] if name != first else itertools.chain(*changed.values())
                for file in files:
                    (states / name / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(source / file, states / name / file)
        errors = find_static_errors(states)
    old_errors = {
        (path.rpartition(".patch/")[2], message)
        for path, message in errors
        if path.startswith(f"{first}/")
    }
    new_errors = [
        f"{path}:{line}: {message}"
        for (path, message), line in errors.items()
        if (path.rpartition(".patch/")[2], message) not in old_errors
    ]
    if new_errors:
        raise CommandFailed("the patch series has broken states:\n" + "\n".join(new_errors))


def find_static_errors(root: Path) -> dict[tuple[str, str], int]:
    """Find syntax errors, undefined names and missing returns in Python files below ``root``.

    Returns:
        The line number of each error, by relative path and message.
    """
    options = ["--isolated", "--no-cache", "--quiet", "--exit-zero", "--output-format=concise"]
    ruff: list[str | Path] = [paths.VENV / "bin" / "ruff", "check", f"--select={RULES}", *options]
    output = run([*ruff, "."], cwd=root).output
    matches = re.findall(r"^(.+?):(\d+):\d+: (.+)$", output, re.MULTILINE)
    errors = {(path, message): int(line) for path, line, message in matches}
    for file in root.rglob("*.py"):
        for function in find_missing_returns(file.read_text(encoding="utf-8")):
            key = str(file.relative_to(root)), f"{function.name} returns nothing"
            errors[key] = function.lineno
    return errors


def find_missing_returns(code: str) -> Iterator[ast.FunctionDef]:
    """Yield the functions that return no value, although their docstrings begin with "Return".

    Such a function appears if a patch adds a function and a later patch adds the function's last
    lines. Code with a syntax error yields no function.
    """
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            words = (ast.get_docstring(node) or "").split()[:1]
            if words in (["Return"], ["Returns"]) and not any(
                isinstance(child, ast.Raise | ast.Yield)
                or (isinstance(child, ast.Return) and child.value is not None)
                for child in ast.walk(node)
            ):
                yield node
