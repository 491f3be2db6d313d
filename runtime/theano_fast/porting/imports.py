"""Find the names that a program imports and this environment lacks, with their replacements.

This module parses the program and its own modules, but does not run them. Another process, ``-m
theano_fast.porting.imports``, imports the names from Theano, NumPy, SciPy, scikit-learn and
Python's standard library. For other packages, it only checks whether they are installed.
"""

import ast
import importlib
import importlib.util
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from theano_fast import old_names
from theano_fast.porting import sources
from theano_fast.porting.replacements import find_replacement

# Check each name that a program imports from these packages or from Python's standard library.
EXAMINED = ("theano", "numpy", "scipy", "sklearn")
# Maps an imported name to the name under which pip installs the package.
PROVIDED_BY = {"PIL": "pillow", "cv2": "opencv-python", "skimage": "scikit-image"}
PROVIDED_BY |= {"sklearn": "scikit-learn", "yaml": "pyyaml"}
# The timeout of the process that imports names, in seconds.
SECONDS = 120


@dataclass(frozen=True)
class Use:
    """A dotted name that a program imports, or reads from a module, at ``FILE:LINE``.

    ``imported`` is whether the name is in an import statement. ``required`` is whether the program
    cannot start without the name.
    """

    name: str
    location: str
    imported: bool
    required: bool


@dataclass(frozen=True)
class Missing:
    """A missing name, the FILE:LINE of its first use, the number of uses, and the fix.

    ``required`` is whether the program needs the name.
    """

    name: str
    location: str
    count: int
    fix: str
    required: bool

    def to_json(self) -> dict[str, Any]:
        """Return the name as a JSON object."""
        return {
            "name": self.name,
            "location": self.location,
            "count": self.count,
            "fix": self.fix,
            "required": self.required,
        }


@dataclass
class Program:
    """The names that a program and its own modules use, and the files written for Python 2."""

    uses: list[Use] = field(default_factory=list)
    python2: list[Path] = field(default_factory=list)


def examine(file: Path) -> tuple[Missing, ...]:
    """Return the names that a program uses and this environment lacks.

    Raises:
        sources.SourceError: the program or one of its modules cannot be read.
    """
    program = read(file)
    python2 = [
        Missing("Python 2", str(path), 1, f"theano-fast port {path}", required=True)
        for path in program.python2
    ]
    return (*python2, *find_missing(program.uses))


def read(file: Path) -> Program:
    """Parse each file of a program once: the program, and its own modules that it imports."""
    program, waiting, seen = Program(), [file], set()
    roots = (file.parent, *find_package_root(file))
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        tree, python2 = sources.parse(path)
        if python2:
            program.python2.append(path)
        roots += find_added_paths(tree, path)
        for use, level in find_uses(tree, path):
            own_files = list(find_own_files(use.name, path, level, roots))
            waiting += own_files
            if not own_files and not level:
                program.uses.append(use)
    return program


def find_added_paths(tree: ast.Module, file: Path) -> tuple[Path, ...]:
    """Return the directories that a program appends to or inserts into sys.path as literals."""
    return tuple(
        file.parent / word.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("sys.path.append", "sys.path.insert")
        for word in node.args
        if isinstance(word, ast.Constant) and isinstance(word.value, str)
    )


def find_package_root(file: Path) -> tuple[Path, ...]:
    """Return (the directory that contains a file's outermost package,), or () without a package."""
    folder = file.parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return () if folder == file.parent else (folder,)


def find_own_files(name: str, file: Path, level: int, roots: Iterable[Path]) -> Iterator[Path]:
    """Yield the program's own files that the import of a name runs.

    These are the ``__init__.py`` of each package in the name, and the module.

    Args:
        name: the imported dotted name.
        file: the importing file.
        level: the number of dots before the name; 0 for an absolute import.
        roots: the directories from which the program imports.
    """
    parts = name.split(".")
    folder = file.parent
    for _ in range(level - 1):
        folder = folder.parent
    # Search the file's own directory first, like Python 2.
    for root in (folder,) if level else (folder, *roots):
        within = root
        for part in parts:
            if (within / part / "__init__.py").is_file():
                yield within / part / "__init__.py"
                within = within / part
            elif (within / f"{part}.py").is_file():
                yield within / f"{part}.py"
                return
            elif within == root and (root / part).is_dir() and any((root / part).glob("*.py")):
                within = root / part
            else:
                break
        if within != root:
            return


def find_imported_names(tree: ast.Module) -> dict[str, str]:
    """Return the full dotted name for each name that a module's import statements bind.

    For example, ``import numpy as np`` gives {"np": "numpy"}.
    """
    names: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                own = alias.asname or alias.name.partition(".")[0]
                names[own] = alias.name if alias.asname else own
        elif isinstance(node, ast.ImportFrom) and not node.level:
            for alias in node.names:
                names[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return names


def find_uses(tree: ast.Module, file: Path) -> Iterator[tuple[Use, int]]:
    """Yield each name that a module imports or reads from an imported module.

    Yields:
        the use, and the number of dots before the name; 0 for an absolute import.
    """
    optional = {id(node) for block in _find_optional(tree) for node in ast.walk(block)}
    names = find_imported_names(tree)
    for node in ast.walk(tree):
        location = f"{file}:{getattr(node, 'lineno', 0)}"
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            for name, level in _list_names(node):
                yield Use(name, location, imported=True, required=id(node) not in optional), level
        elif isinstance(node, ast.Attribute) and (name := get_full_name(node, names)):
            yield Use(name, location, imported=False, required=False), 0


def _list_names(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, int]]:
    """Yield (dotted name, number of dots before the name) for each name of an import statement."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, 0) for alias in node.names)
        return
    module = node.module or ""
    for alias in node.names if module != "__future__" else ():
        name = module if alias.name == "*" else f"{module}.{alias.name}".strip(".")
        if name:
            yield name, node.level


def _find_optional(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements whose imports are optional: they may fail, or may never run."""
    kinds = (ast.Try, ast.If, ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
    return (node for node in ast.walk(tree) if isinstance(node, kinds))


def get_full_name(node: ast.expr, aliases: Mapping[str, str]) -> str:
    """Return the full name of an attribute of an imported module, "" for other expressions.

    Args:
        node: the expression.
        aliases: the result of find_imported_names.
    """
    if isinstance(node, ast.Attribute):
        module = get_full_name(node.value, aliases)
        return module and f"{module}.{node.attr}"
    return aliases.get(node.id, "") if isinstance(node, ast.Name) else ""


def find_missing(uses: Iterable[Use]) -> tuple[Missing, ...]:
    """Return the names that this environment lacks, each name once with the number of its uses."""
    restored = old_names.list_names()
    by_name: dict[str, list[Use]] = {}
    for use in uses:
        if use.imported or use.name in restored or find_replacement(use.name):
            top = use.name.partition(".")[0]
            # If a package is not examined, check only whether it is installed.
            name = use.name if is_examined(top) or find_replacement(use.name) else top
            by_name.setdefault(name, []).append(use)
    imports = [name for name, group in by_name.items() if any(use.imported for use in group)]
    errors = import_names(imports)
    imported = {name.partition(".")[0] for name in by_name if name not in errors}
    missing = []
    for name, group in by_name.items():
        if name in errors:
            fix = find_fix(name, errors[name], restored)
        elif group[0].imported:
            continue
        elif name in restored and not old_names.is_active():
            fix = "export THEANO_FAST_OLD_NAMES=1"
        elif (replacement := find_replacement(name)) and name.partition(".")[0] in imported:
            fix = f"write {replacement}"
        else:
            continue
        required = name in restored or any(use.required for use in group)
        missing.append(Missing(name, group[0].location, len(group), fix, required))
    return tuple(missing)


def is_examined(top: str) -> bool:
    """Return whether each name that a program imports from a top-level package is checked."""
    return top in EXAMINED or top in sys.stdlib_module_names


def find_fix(name: str, error: str, restored: Iterable[str]) -> str:
    """Return the fix for a name that cannot be imported.

    Args:
        name: the dotted name.
        error: the error of its import.
        restored: the names that THEANO_FAST_OLD_NAMES restores.
    """
    top = name.partition(".")[0]
    if any(name == old or name.startswith(f"{old}.") for old in restored):
        return "export THEANO_FAST_OLD_NAMES=1"
    if replacement := find_replacement(name):
        return f"write {replacement}"
    if is_examined(top) and top != "sklearn":
        return error
    return f"install it, for example with pip install {PROVIDED_BY.get(top, top)}"


def import_names(names: list[str]) -> dict[str, str]:
    """Import names in another process; return the error of each failed import, by name."""
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-W", "ignore", "-m", "theano_fast.porting.imports"],
            input=json.dumps(names),
            env={**os.environ, "THEANO_FLAGS": "device=cpu", "THEANORC": os.devnull},
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return {}
    # If a package crashes the process, there is no output, and all names count as present.
    errors: dict[str, str] = json.loads(done.stdout.splitlines()[-1]) if done.stdout else {}
    return errors


def find_error(name: str) -> str:
    """Return the error of the import of a dotted name, "" if there is none.

    If the package is not examined, check only whether it is installed.
    """
    top, *attributes = name.split(".")
    try:
        if not attributes or not is_examined(top):
            return "" if importlib.util.find_spec(top) else f"No module named {top!r}"
        return _import_parts(name)
    except ValueError:
        # find_spec raises ValueError for an existing module without a spec, such as __main__.
        return ""


def _import_parts(name: str) -> str:
    """Import a dotted name; return the error, "" if there is none.

    Read each part of the name as an attribute of the part before it. If there is no such attribute,
    import the name up to this part as a module.
    """
    parts = name.split(".")
    module: object = None
    for count in range(1, len(parts) + 1):
        if module is not None and hasattr(module, parts[count - 1]):
            module = getattr(module, parts[count - 1])
            continue
        try:
            module = importlib.import_module(".".join(parts[:count]))
        # The import of a package may raise any exception, and raises it in the program too.
        except Exception as raised:
            return str(raised).partition("\n")[0] or type(raised).__name__
    return ""


def main() -> None:
    """Read names as JSON from stdin, import them, and print the errors of failed imports."""
    warnings.simplefilter("ignore")
    errors = {name: error for name in json.load(sys.stdin) if (error := _catch_error(name))}
    print(json.dumps(errors))


def _catch_error(name: str) -> str:
    try:
        return find_error(name)
    # A module's __getattr__ may raise any exception, and hasattr catches only AttributeError.
    except Exception as raised:
        return str(raised).partition("\n")[0] or type(raised).__name__


if __name__ == "__main__":
    main()
