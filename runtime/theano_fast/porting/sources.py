"""Read Python source of any version, and convert Python 2 with lib2to3, without writing a file."""

import ast
import io
import tokenize
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

# Never use these fixers of lib2to3. `future` would remove `from __future__ import division`.
# rules.py needs this line to know that `/` was true division.
WITHOUT = ("future",)
# Do not use these fixers on files next to an __init__.py. `import` would change `import utils` to
# `from . import utils`, which fails if the file runs as a script.
WITHOUT_IN_PACKAGES = ("import",)
# Builtins, methods and functions of itertools that only Python 2 has. A Python 3 program uses these
# names only if it defines them.
BUILTINS = frozenset(
    {
        "apply",
        "basestring",
        "buffer",
        "cmp",
        "execfile",
        "file",
        "intern",
        "long",
        "raw_input",
        "reduce",
        "reload",
        "unichr",
        "unicode",
        "xrange",
    }
)
METHODS = frozenset(
    {
        "has_key",
        "iteritems",
        "iterkeys",
        "itervalues",
    }
)
ITERTOOLS = frozenset(
    {
        "ifilter",
        "ifilterfalse",
        "imap",
        "izip",
        "izip_longest",
    }
)


class SourceError(Exception):
    """A file cannot be read, is not Python of any version, or cannot be written."""


def read(file: Path) -> str:
    """Return the text of a source file with unchanged line ends; raises SourceError."""
    try:
        content = file.read_bytes()
        return decode(content)[0]
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}") from error
    except (SyntaxError, UnicodeDecodeError, LookupError) as error:
        raise SourceError(f"{file} cannot be read: {error}") from error


def decode(content: bytes) -> tuple[str, str]:
    """Decode a source file's content as PEP 263 defines; return the text and the encoding.

    Raises:
        SyntaxError: the declared encoding is unknown.
        UnicodeDecodeError: the content does not have the declared encoding.
    """
    encoding, _ = tokenize.detect_encoding(io.BytesIO(content).readline)
    return content.decode(encoding), encoding


def parse(file: Path) -> tuple[ast.Module, bool]:
    """Return a file's syntax tree, and whether the file is Python 2.

    Convert Python 2 to Python 3 first; the tree has the line numbers of the file.

    Raises:
        SourceError: the file cannot be read or parsed.
    """
    text = read(file)
    old = is_python2(text)
    try:
        return parse_text(convert(text, in_package=True) if old else text), old
    except SyntaxError as error:
        raise SourceError(f"{file}:{error.lineno}: {error.msg}") from error


def parse_text(text: str) -> ast.Module:
    """Parse the text of a Python 3 program; raises SyntaxError, also for a null byte."""
    with warnings.catch_warnings():
        # Ignore warnings about the program, such as "\d" in a string.
        warnings.simplefilter("ignore")
        try:
            return ast.parse(text.lstrip("\ufeff"))
        except ValueError as error:
            raise SyntaxError(str(error), (None, 1, 0, None)) from error


def is_python2(text: str) -> bool:
    """Return whether the text of a program runs only on Python 2."""
    try:
        tree = parse_text(text)
    except SyntaxError:
        return True
    return any(_detect_python2(tree, _find_bound_names(tree)))


def _find_bound_names(tree: ast.Module) -> set[str]:
    """Return the names that a program imports, assigns or defines."""
    bound = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.alias):
            bound.add(node.asname or node.name.partition(".")[0])
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            bound.add(node.id)
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound


def _detect_python2(tree: ast.Module, bound: set[str]) -> Iterator[bool]:
    """Yield True for each name, method call and import that only Python 2 has, else False.

    Args:
        tree: the program.
        bound: the names that the program itself defines, which do not count.
    """
    # Skip imports in try statements: programs for both Pythons try Python 2's modules there.
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.Try)]
    guarded = {id(node) for block in blocks for node in ast.walk(block)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id in BUILTINS and node.id not in bound
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr in METHODS and node.func.attr not in bound
        elif isinstance(node, ast.Import) and id(node) not in guarded:
            yield any(alias.name in _list_renamed_modules() for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and id(node) not in guarded and not node.level:
            yield node.module in _list_renamed_modules() or (
                node.module == "itertools" and any(name.name in ITERTOOLS for name in node.names)
            )


@cache
def _list_renamed_modules() -> frozenset[str]:
    """Return the old names of the modules that Python 3 renamed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fix_imports: Any = import_module("lib2to3.fixes.fix_imports")

    # Python 3 has other modules with these two names.
    return frozenset(fix_imports.MAPPING) - {"builtins", "queue"}


def convert(text: str, in_package: bool) -> str:
    """Convert Python 2 to Python 3.

    Args:
        text: the text of the program.
        in_package: whether the file's directory has an __init__.py.

    Raises:
        SyntaxError: the source is not Python 2, or lib2to3's result is not Python 3.
    """
    try:
        converted = _refactor(text.rstrip("\n") + "\n", in_package)
    # lib2to3's tokenizer and parser raise errors of three unrelated types.
    except Exception as error:
        raise _make_syntax_error(error) from error
    try:
        parse_text(converted)
    except TabError:
        # Python 3 rejects indentation that mixes tabs and spaces.
        converted = expand_tabs(converted)
        parse_text(converted)
    return converted


def _refactor(text: str, in_package: bool) -> str:
    """Convert the text of a program with lib2to3; raises the errors of lib2to3's parser."""
    tool, refactor = _make_tool(in_package)
    features = refactor._detect_future_features(text)
    grammar = refactor.pygram.python_grammar
    if "print_function" in features:
        grammar = refactor.pygram.python_grammar_no_print_statement
    tool.driver.grammar = grammar
    tree = tool.driver.parse_string(text)
    tree.future_features = features
    tool.refactor_tree(tree, "source")
    return str(tree)


@cache
def _make_tool(in_package: bool) -> tuple[Any, Any]:
    """Return lib2to3's tool with the selected fixers, and the module lib2to3.refactor."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        refactor: Any = import_module("lib2to3.refactor")
    without = WITHOUT + (WITHOUT_IN_PACKAGES if in_package else ())
    names = refactor.get_fixers_from_package("lib2to3.fixes")
    # lib2to3's explicit fixers, such as set_literal and idioms, stay off: they only change style.
    tool = refactor.RefactoringTool(
        [name for name in names if name.rpartition("fix_")[2] not in without]
    )
    tool.log_message = tool.log_debug = lambda *_: None
    return tool, refactor


def _make_syntax_error(error: Exception) -> SyntaxError:
    """Convert an error of lib2to3's parser to a SyntaxError with the line's number."""
    context = getattr(error, "context", None)
    line = context[1][0] if isinstance(context, tuple) and len(context) > 1 else None
    if line is None and len(error.args) > 1 and isinstance(error.args[1], tuple):
        line = error.args[1][0]
    return SyntaxError("neither Python 2 nor Python 3", (None, line or 1, 0, None))


def expand_tabs(text: str) -> str:
    """Replace the tabs of indentation with spaces; tab stops are 8 columns apart, as in Python 2.

    Lines that begin inside a string keep their tabs.
    """
    # Like tokenize, split the text only at newlines. splitlines would also split it at form feeds.
    lines = io.StringIO(text).readlines()
    expanded = [_expand_line(line) for line in lines]
    in_strings: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO("".join(expanded)).readline):
        if token.type == tokenize.STRING:
            in_strings.update(range(token.start[0], token.end[0]))
    return "".join(
        line if index in in_strings else expanded[index] for index, line in enumerate(lines)
    )


def _expand_line(line: str) -> str:
    code = line.lstrip(" \t\f")
    # A form feed begins a new count of the columns.
    before, feed, spaces = line[: len(line) - len(code)].rpartition("\f")
    return before + feed + spaces.expandtabs(8) + code
