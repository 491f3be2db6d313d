"""A page on every error message, from the code that says it."""

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
from builder.documents.reference import plain

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
# In the door's shell: the exit code, and what is said.
OF_DOOR = re.compile(r"""\b(?:fail|quietly) (\d+) (?:'([^'\n]+)'|"((?:\$\([^)]*\)|[^"\n])+)")""")
# What is in environments, and how something is said there that is not as it should be.
FOLDERS = {
    "theano-fast": paths.ROOT / "runtime" / "theano_fast",
    "theano": paths.RECIPES / "theano" / "src" / "theano",
}
SAID = re.compile(r"\w+Error|say|warning|append|SystemExit")
# A word alone is a name that is handed on, and a flag of a compiler's no sentence.
SENTENCE = re.compile(r"^[^-].*[a-z]{2,}.*[a-z]{2,}.*[a-z]{2,}")
# What stands for a value that has no name.
VALUE = "\N{HORIZONTAL ELLIPSIS}"
INTRODUCTION = f"""# Messages

What is said when something is wrong, taken from the code; {VALUE} and words in capitals stand for
names, numbers and paths. Search this page for the other words of the message that you see.
"""


def page() -> str:
    """The page, in Markdown."""
    to_do = mends()
    lines = [INTRODUCTION, "## Of ./invoke, by exit code", ""]
    rows = of_builder()
    for kind in KINDS:
        if found := rows.get(kind.exit_code):
            lines += [f"### {kind.exit_code}: {cause(kind)}", ""]
            lines += [to_do["exit-codes"].get(str(kind.exit_code), ""), ""]
            lines += [*(_item(*each) for each in sorted(found)), ""]
    lines += ["### 130: interrupted", "", "Run it again: most tasks go on from there.", ""]
    for name, folder in FOLDERS.items():
        lines += [f"## Of {name}", ""]
        for file, said in of_environments(folder).items():
            lines += [f"### {file}", "", to_do[name].get(file, ""), ""]
            lines += [*map(_item, said), ""]
    return "\n".join(lines)


def mends() -> dict[str, dict[str, str]]:
    """What to do beside what messages say, by exit code and by file, as ``mends.toml`` has it."""
    return tomllib.loads((Path(__file__).parent / "mends.toml").read_text(encoding="utf-8"))


def of_builder() -> dict[int, set[tuple[str, str]]]:
    """By exit code, what ``./invoke`` says, and what it says to do."""
    rows = defaultdict(set)
    codes = {kind.__name__: kind.exit_code for kind in KINDS}
    for file in [paths.ROOT / "tasks.py", *sorted((paths.ROOT / "builder").rglob("*.py"))]:
        for call in calls(file):
            if called(call) in codes and (said := template(call.args[:1])):
                hints = call.args[1:2] or [word.value for word in call.keywords]
                rows[codes[called(call)]].add((said, template(hints)))
    for code, *said in OF_DOOR.findall((paths.ROOT / "invoke").read_text(encoding="utf-8")):
        named = re.sub(r"\$(\w+)", lambda word: word[1].upper(), "".join(said))
        message, _, mend = re.sub(r"\$\([^)]*\)", VALUE, named).partition("; ")
        if re.search("[a-z]", message):
            rows[int(code)].add((message, mend))
    return dict(rows)


def cause(kind: type[TheanoFastError]) -> str:
    """What an exit code stands for."""
    return "of no kind of its own" if kind is TheanoFastError else (kind.__doc__ or "").strip(".")


def of_environments(folder: Path) -> dict[str, list[str]]:
    """By file below a folder, what it says."""
    found = {}
    for file in sorted(folder.rglob("*.py")):
        said = [template(call.args[:1]) for call in calls(file) if SAID.fullmatch(called(call))]
        if told := list(dict.fromkeys(filter(SENTENCE.search, said))):
            found[str(file.relative_to(folder))] = told
    return found


def _item(said: str, mend: str = "") -> str:
    """A message, which may have backquotes, and below it what it says to do."""
    return f"- `` {said} ``" + (f"\\\n  {plain(mend)}" if mend else "")


def calls(file: Path) -> Iterator[ast.Call]:
    """All calls in a Python file, in its order."""
    found = ast.walk(ast.parse(file.read_text(encoding="utf-8")))
    yield from sorted(
        (node for node in found if isinstance(node, ast.Call)), key=lambda call: call.lineno
    )


def called(call: ast.Call) -> str:
    """The name of what is called, without what it is in; "" if it has none."""
    return str(getattr(call.func, "id", getattr(call.func, "attr", "")))


def template(arguments: Iterable[ast.expr]) -> str:
    """A message as code has it, a word in the place of each value; "" if it is all values."""
    said = " ".join(" ".join(_text(each).split()) for each in arguments)
    return said if re.search("[a-z]", said) else ""


def _text(node: ast.expr) -> str:
    text = VALUE
    match node:
        case ast.Constant(value=str(text)):
            text = re.sub(r"%[srd]", VALUE, text)
        case ast.JoinedStr(values=parts):
            text = "".join(map(_text, parts))
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            text = _text(left) + _text(right)
        case ast.IfExp(body=body, orelse=other):
            text = " / ".join(filter(None, map(_text, (body, other))))
        case ast.FormattedValue(value=ast.IfExp() | ast.Constant() as value):
            text = _text(value)
        case ast.FormattedValue(value=ast.Name(id=name) | ast.Attribute(attr=name)):
            text = name.strip("_").upper()
    return text
