"""Generate the site's pages of Invoke's tasks and of the subcommands of ``theano-fast``."""

from __future__ import annotations

import argparse
import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from builder.common import paths


def make_parsers() -> list[argparse.ArgumentParser]:
    """Return the argument parsers of ``theano-fast`` in this checkout, the main parser first.

    The other parsers belong to the commands of ``WITH_PARSERS`` in ``theano_fast.cli``.
    """
    sys.path.insert(0, str(paths.ROOT / "runtime"))
    cli = importlib.import_module("theano_fast.cli")
    return [cli.make_parser(), *(module.make_parser() for *_, module in cli.WITH_PARSERS)]


def format_tasks_page(tasks: Iterable[Any], for_users: Sequence[str]) -> str:
    """Format the page of Invoke's tasks.

    Args:
        tasks: all tasks.
        for_users: the names of the tasks for users, which come first. The other tasks are for
            developers.
    """
    by_name = {task.name: task for task in tasks}
    for_developers = sorted(set(by_name) - set(for_users))
    lines = ["# Tasks: ./invoke", "", "Generated from `tasks.py`, like `./invoke TASK --help`.", ""]
    for title, names in (("For users", for_users), ("For developers", for_developers)):
        lines += [f"## {title}", ""]
        for name in names:
            lines += [f"### ./invoke {name}", "", *_split_paragraphs(by_name[name].__doc__)]
            lines += _format_table(map(_format_flag, by_name[name].get_arguments()))
    return "\n".join(lines)


def format_commands_page(parsers: Sequence[argparse.ArgumentParser]) -> str:
    """Format the page of the commands of ``theano-fast``.

    Args:
        parsers: the main parser, then parsers that replace subparsers of the same ``prog``.
    """
    lines = [f"# Commands: {parsers[0].prog}", "", "Generated from its parser, like `--help`.", ""]
    lines += _split_paragraphs(parsers[0].description)
    by_name = {parser.prog: parser for parser in parsers}
    for name, parser, summary in _iterate_parsers(parsers[0], by_name):
        lines += [
            f"{'#' * len(name.split())} {name}",
            "",
            *_split_paragraphs(escape_markdown(summary)),
        ]
        lines += _format_table(
            (_format_argument(action), _format_help(action))
            for action in parser._actions
            if not isinstance(action, (argparse._SubParsersAction, argparse._HelpAction))
        )
    return "\n".join(lines)


def _iterate_parsers(
    parser: argparse.ArgumentParser, by_name: dict[str, argparse.ArgumentParser]
) -> Iterator[tuple[str, argparse.ArgumentParser, str]]:
    """Yield the name, parser and summary of each subcommand, and of its own subcommands.

    Args:
        by_name: parsers that replace subparsers, by ``prog``.
    """
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            summaries = {row.dest: row.help or "" for row in action._choices_actions}
            choices: Mapping[str, argparse.ArgumentParser] = action.choices
            for name, choice in choices.items():
                subparser = by_name.get(choice.prog, choice)
                yield choice.prog, subparser, summaries.get(name, "")
                yield from _iterate_parsers(subparser, by_name)


def _format_argument(action: argparse.Action) -> str:
    """Format the names and the value of an argument: ``--output FILE, -o FILE``."""
    choices = "|".join(map(str, action.choices or ()))
    value = "" if action.nargs == 0 else str(action.metavar or choices or action.dest)
    value += "..." if action.nargs in ("+", "*", argparse.REMAINDER) else ""
    if not action.option_strings:
        return f"[{value}]" if action.nargs == "?" else value
    return ", ".join(f"{option} {value}".rstrip() for option in action.option_strings)


def _format_help(action: argparse.Action) -> str:
    return (action.help or "") % {"default": action.default, "prog": ""}


def _format_flag(argument: Any) -> tuple[str, str]:
    """Format a task's flag, such as ``--stack=STACK``, and its help text with the default."""
    value = "" if argument.kind is bool else f"={argument.names[0].upper()}"
    name = f"--{argument.names[0]}" + (f"[{value}]" if argument.optional else value)
    if argument.kind is bool and argument.default is True:
        name = f"--no-{argument.name}"
    text = argument.help or ""
    if value and argument.default and "default" not in text:
        text += f" (default: {argument.default})"
    return name, text


def _split_paragraphs(text: str | None) -> list[str]:
    return [*inspect.cleandoc(text).splitlines(), ""] if text else []


def _format_table(rows: Iterable[tuple[str, str]]) -> list[str]:
    """Format rows as a Markdown table; [] if there are no rows."""
    cells = [
        f"| `{escape_cell(name)}` | {escape_cell(escape_markdown(text))} |" for name, text in rows
    ]
    return ["| argument | meaning |", "|---|---|", *cells, ""] if cells else []


def escape_cell(text: str) -> str:
    """Escape text for a cell of a Markdown table."""
    return " ".join(text.split()).replace("|", r"\|")


def escape_markdown(text: str) -> str:
    """Escape plain text for Markdown; do not change text in backquotes."""
    parts = text.split("`")
    for index in range(0, len(parts), 2):
        for sign in "\\*_<>[]":
            parts[index] = parts[index].replace(sign, f"\\{sign}")
    return "`".join(parts)
