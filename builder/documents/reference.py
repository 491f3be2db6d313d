"""Pages on every task and command, from the code that reads their flags."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from builder.common import paths


def parsers() -> list[argparse.ArgumentParser]:
    """The parsers of ``theano-fast``, the whole's first; they are of the checkout."""
    sys.path.insert(0, str(paths.ROOT / "runtime"))
    cli = importlib.import_module("theano_fast.cli")
    return [cli.make_parser(), *(module.make_parser() for *_, module in cli.WITH_PARSERS)]


def of_tasks(tasks: Iterable[Any], for_users: Sequence[str]) -> str:
    """The page on Invoke's tasks, those for users first."""
    by_name = {task.name: task for task in tasks}
    others = sorted(set(by_name) - set(for_users))
    lines = ["# Tasks: ./invoke", "", "Made from `tasks.py`, as `./invoke TASK --help` is.", ""]
    for title, names in (("For users", for_users), ("To work on stacks and on this", others)):
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"### ./invoke {name}", "", *_paragraphs(by_name[name].__doc__)]
            lines += _table(map(_flag, by_name[name].get_arguments()))
    return "\n".join(lines)


def of_commands(parsers: Sequence[argparse.ArgumentParser]) -> str:
    """The page on the commands of parsers, the first of which is the whole's."""
    lines = [f"# Commands: {parsers[0].prog}", "", "Made from its parser, as `--help` is.", ""]
    lines += _paragraphs(parsers[0].description)
    known = {parser.prog: parser for parser in parsers}
    for name, parser, summary in _parsers(parsers[0], known):
        lines += [f"{'#' * len(name.split())} {name}", "", *_paragraphs(plain(summary))]
        lines += _table(
            (_names(action), _help(action))
            for action in parser._actions
            if not isinstance(action, (argparse._SubParsersAction, argparse._HelpAction))
        )
    return "\n".join(lines)


def _parsers(
    parser: argparse.ArgumentParser, known: dict[str, argparse.ArgumentParser]
) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """The parsers of all commands below one; in place of one by a name that is known, that."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {each.dest: each.help or "" for each in action._choices_actions}
            choices: Mapping[str, argparse.ArgumentParser] = action.choices
            for name, found in choices.items():
                used = known.get(found.prog, found)
                yield found.prog, used, summaries.get(name, "")
                yield from _parsers(used, known)


def _names(action: argparse.Action) -> str:
    """How an argument is written."""
    choices = "|".join(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else str(action.metavar or choices or action.dest)
    value += "..." if action.nargs in ("+", "*", argparse.REMAINDER) else ""
    if not action.option_strings:
        return f"[{value}]" if action.nargs == "?" else value
    return ", ".join(f"{option} {value}".rstrip() for option in action.option_strings)


def _help(action: argparse.Action) -> str:
    return (action.help or "") % {"default": action.default, "prog": ""}


def _flag(argument: Any) -> tuple[str, str]:
    """How a task's flag is written, and what it says with its default."""
    value = "" if argument.kind is bool else f"={argument.names[0].upper()}"
    name = f"--{argument.names[0]}" + (f"[{value}]" if argument.optional else value)
    if argument.kind is bool and argument.default is True:
        name = f"--no-{argument.name}"
    told = argument.help or ""
    if value and argument.default and "default" not in told:
        told += f" (default: {argument.default})"
    return name, told


def _paragraphs(text: str | None) -> list[str]:
    return [*inspect.cleandoc(text).splitlines(), ""] if text else []


def _table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Rows as Markdown; nothing where there are none."""
    cells = [f"| `{cell(name)}` | {cell(plain(told))} |" for name, told in rows]
    return ["| argument | meaning |", "|---|---|", *cells, ""] if cells else []


def cell(text: str) -> str:
    """A text as a table's cell can hold it."""
    return " ".join(text.split()).replace("|", r"\|")


def plain(text: str) -> str:
    """A text that is no Markdown, as Markdown outside of its code."""
    parts = text.split("`")
    for number in range(0, len(parts), 2):
        for sign in "\\*_<>[]":
            parts[number] = parts[number].replace(sign, f"\\{sign}")
    return "`".join(parts)
