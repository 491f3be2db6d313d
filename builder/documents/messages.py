"""Generate the page of all error messages from the code that raises or prints them."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from builder.common import errors, paths
from builder.common.errors import TheanoFastError
from builder.documents.reference import escape_markdown

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

KINDS: list[type[TheanoFastError]] = sorted(
    (
        kind
        for kind in vars(errors).values()
        if inspect.isclass(kind) and issubclass(kind, TheanoFastError)
    ),
    key=lambda kind: kind.exit_code,
)
# Search the script ./invoke for exit codes and messages.
SCRIPT_MESSAGES = re.compile(
    r"""\b(?:fail|run_logged) (\d+) (?:'([^'\n]+)'|"((?:\$\([^)]*\)|[^"\n])+)")"""
)
# The code in environments, and the calls that report problems there.
FOLDERS = {
    "theano-fast": paths.ROOT / "runtime" / "theano_fast",
    "theano": paths.RECIPES / "theano" / "src" / "theano",
}
SAID = re.compile(r"\w+Error|warn_once|say|warning|append|SystemExit")
# A message has at least three words. Shorter texts are identifiers or compiler flags.
SENTENCE = re.compile(r"^[^-].*[a-z]{2,}.*[a-z]{2,}.*[a-z]{2,}")
# The placeholder of a value without a name.
VALUE = "\N{HORIZONTAL ELLIPSIS}"
INTRODUCTION = f"""# Messages

The messages of errors and warnings, generated from the code. {VALUE} and words in capitals stand
for names, numbers and paths. Search this page for the other words of your message.
"""


def format_page() -> str:
    """Return the page as Markdown."""
    remedies = read_remedies()
    lines = [INTRODUCTION, "## ./invoke, by exit code", ""]
    rows = find_builder_messages()
    for kind in KINDS:
        if messages := rows.get(kind.exit_code):
            lines += [f"### {kind.exit_code}: {describe_kind(kind)}", ""]
            lines += [remedies["exit-codes"].get(str(kind.exit_code), ""), ""]
            lines += [*(_format_item(*row) for row in sorted(messages)), ""]
    lines += ["### 130: interrupted", "", "Run the task again: most tasks continue.", ""]
    for name, folder in FOLDERS.items():
        lines += [f"## {name}", ""]
        for file, messages_of_file in find_environment_messages(folder).items():
            lines += [f"### {file}", "", remedies[name].get(file, ""), ""]
            lines += [*map(_format_item, messages_of_file), ""]
    return "\n".join(lines)


def read_remedies() -> dict[str, dict[str, str]]:
    """Read the remedies of ``mends.toml``, by exit code and by file."""
    return tomllib.loads((Path(__file__).parent / "mends.toml").read_text(encoding="utf-8"))


def find_builder_messages() -> dict[int, set[tuple[str, str]]]:
    """Find the messages and hints of ``./invoke``, by exit code."""
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
        named = re.sub(r"\$(\w+)", lambda word: word[1].upper(), "".join(texts))
        message, _, hint = re.sub(r"\$\([^)]*\)", VALUE, named).partition("; ")
        if re.search("[a-z]", message):
            rows[int(code)].add((message, hint))
    return dict(rows)


def describe_kind(kind: type[TheanoFastError]) -> str:
    """Describe the errors of a kind."""
    return "other errors" if kind is TheanoFastError else (kind.__doc__ or "").strip(".")


def find_environment_messages(folder: Path) -> dict[str, list[str]]:
    """Find the messages in the files below a folder, by file."""
    messages = {}
    for file in sorted(folder.rglob("*.py")):
        texts = [
            make_template(call.args[:1])
            for call in find_calls(file)
            if SAID.fullmatch(get_called_name(call))
        ]
        if sentences := list(dict.fromkeys(filter(SENTENCE.search, texts))):
            messages[str(file.relative_to(folder))] = sentences
    return messages


def _format_item(message: str, hint: str = "") -> str:
    """Format a message, which may have backquotes, and its hint as an item of a list."""
    return f"- `` {message} ``" + (f"\\\n  {escape_markdown(hint)}" if hint else "")


def find_calls(file: Path) -> Iterator[ast.Call]:
    """Yield all calls in a Python file, in order."""
    nodes = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    yield from sorted(
        (node for node in nodes if isinstance(node, ast.Call)), key=lambda call: call.lineno
    )


def get_called_name(call: ast.Call) -> str:
    """Return the name of the called function without its module; "" if it has no name."""
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def make_template(arguments: Iterable[ast.expr]) -> str:
    """Format a message of the code with a word for each value; "" if it has only values."""
    message = " ".join(" ".join(_format_template(argument).split()) for argument in arguments)
    return message if re.search("[a-z]", message) else ""


def _format_template(node: ast.expr) -> str:
    text = VALUE
    match node:
        case ast.Constant(value=str(text)):
            text = re.sub(r"%[srd]", VALUE, text)
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
