"""Generate the site's page of all error messages from the code that raises or prints them."""

from __future__ import annotations

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from builder.common import errors, paths
from builder.common.errors import TheanoFastError
from builder.common.files import read_toml
from builder.documents.reference import escape_markdown

KINDS: list[type[TheanoFastError]] = sorted(
    (
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, TheanoFastError)
    ),
    key=lambda kind: kind.exit_code,
)
# Calls of the functions `fail` and `run_logged` in the shell script ./invoke: the exit code, and
# the message in single or double quotes.
SCRIPT_MESSAGES = re.compile(
    r"""\b(?:fail|run_logged) (\d+) (?:'([^'\n]+)'|"((?:\$\([^)]*\)|[^"\n])+)")"""
)
# The directories of the code that runs in environments, by the name of their section on the page.
FOLDERS = {
    "theano-fast": paths.ROOT / "runtime" / "theano_fast",
    "theano": paths.RECIPES / "theano" / "src" / "theano",
}
# In the code of FOLDERS, the first argument of these functions and exceptions is a message.
REPORTING_CALL = re.compile(r"\w+Error|warn_once|say|warning|append|SystemExit")
# A message has at least three words. Shorter strings are identifiers or compiler flags.
SENTENCE = re.compile(r"^[^-].*[a-z]{2,}.*[a-z]{2,}.*[a-z]{2,}")
# A text with one of these signs is source code that the program generates.
SOURCE_CODE = re.compile(r"[{}]|==|__")
# The placeholder for a value that is not a variable, such as the result of a call.
PLACEHOLDER = "\N{HORIZONTAL ELLIPSIS}"
INTRODUCTION = f"""# Messages

This page lists all error messages and warnings. It is generated from the code. {PLACEHOLDER} and
words in capitals stand for names, numbers and paths. Search this page for the other words of your
message.
"""


def format_page() -> str:
    """Return the page in Markdown."""
    advice = read_advice()
    lines = [INTRODUCTION, "## ./invoke, by exit code", ""]
    rows = find_builder_messages()
    for kind in KINDS:
        if messages := rows.get(kind.exit_code):
            lines += [f"### {kind.exit_code}: {describe_kind(kind)}", ""]
            lines += [advice["exit-codes"].get(str(kind.exit_code), ""), ""]
            lines += [*(_format_item(*row) for row in sorted(messages)), ""]
    lines += ["### 130: interrupted", "", "Run the task again: most tasks continue.", ""]
    for name, folder in FOLDERS.items():
        lines += [f"## {name}", ""]
        for file, messages_of_file in find_environment_messages(folder).items():
            lines += [f"### {file}", "", advice[name].get(file, ""), ""]
            lines += [*map(_format_item, messages_of_file), ""]
    return "\n".join(lines)


def read_advice() -> dict[str, dict[str, str]]:
    """Read ``advice.toml``: advice by section, then by exit code or file."""
    return read_toml(Path(__file__).parent / "advice.toml")


def find_builder_messages() -> dict[int, set[tuple[str, str]]]:
    """Find the messages of ``./invoke`` with their hints; return them by exit code."""
    rows = defaultdict(set)
    codes = {kind.__name__: kind.exit_code for kind in KINDS}
    for file in [paths.ROOT / "tasks.py", *sorted((paths.ROOT / "builder").rglob("*.py"))]:
        for call in find_calls(file):
            if get_called_name(call) in codes and (message := make_template(call.args[:1])):
                hints = call.args[1:2] or [word.value for word in call.keywords]
                rows[codes[get_called_name(call)]].add((message, make_template(hints)))
    for code, *texts in SCRIPT_MESSAGES.findall(
        (paths.ROOT / "invoke").read_text(encoding="utf-8")
    ):
        capitalized = re.sub(r"\$(\w+)", lambda word: word[1].upper(), "".join(texts))
        message, _, hint = re.sub(r"\$\([^)]*\)", PLACEHOLDER, capitalized).partition("; ")
        if re.search("[a-z]", message):
            rows[int(code)].add((message, hint))
    return dict(rows)


def describe_kind(kind: type[TheanoFastError]) -> str:
    """Return the heading of a kind of error: its docstring without the full stop."""
    return "other errors" if kind is TheanoFastError else (kind.__doc__ or "").strip(".")


def find_environment_messages(folder: Path) -> dict[str, list[str]]:
    """Find the messages in the Python files below a folder; return them by the file's path."""
    messages = {}
    for file in sorted(folder.rglob("*.py")):
        texts = [
            make_template(call.args[:1])
            for call in find_calls(file)
            if REPORTING_CALL.fullmatch(get_called_name(call))
        ]
        sentences = [
            text for text in texts if SENTENCE.search(text) and not SOURCE_CODE.search(text)
        ]
        if sentences:
            messages[str(file.relative_to(folder))] = list(dict.fromkeys(sentences))
    return messages


def _format_item(message: str, hint: str = "") -> str:
    """Format a message and its hint as an item of a list. The message may contain backquotes."""
    return f"- `` {message} ``" + (f"\\\n  {escape_markdown(hint)}" if hint else "")


def find_calls(file: Path) -> Iterator[ast.Call]:
    """Yield all calls in a Python file, in the order of their lines."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    yield from sorted(
        (node for node in nodes if isinstance(node, ast.Call)), key=lambda call: call.lineno
    )


def get_called_name(call: ast.Call) -> str:
    """Return the name of the called function without its module; "" if it has no name."""
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def make_template(arguments: Iterable[ast.expr]) -> str:
    """Format the expression of a message as text in which a placeholder stands for each value.

    Return "" if the text contains no lower-case letter, because it then consists of placeholders.
    """
    message = " ".join(" ".join(_format_template(argument).split()) for argument in arguments)
    return message if re.search("[a-z]", message) else ""


def _format_template(node: ast.expr) -> str:
    """Format one expression: ``f"{file} is not in {f()}"`` becomes "FILE is not in …"."""
    text = PLACEHOLDER
    match node:
        case ast.Constant(value=str(text)):
            text = re.sub(r"%[srd]", PLACEHOLDER, text)
        case ast.JoinedStr(values=parts):
            text = "".join(map(_format_template, parts))
        case ast.BinOp(left=first, op=ast.Add(), right=second):
            text = _format_template(first) + _format_template(second)
        case ast.IfExp(body=body, orelse=other):
            text = " / ".join(filter(None, map(_format_template, (body, other))))
        case ast.FormattedValue(value=ast.IfExp() | ast.Constant() as value):
            text = _format_template(value)
        case ast.FormattedValue(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            text = name.strip("_").upper()
    return text
