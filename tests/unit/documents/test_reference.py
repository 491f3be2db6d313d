"""Test that the generated pages list all tasks, flags and commands."""

from __future__ import annotations

import argparse

import tasks
from builder.documents import reference


def test_every_task_and_flag_is_on_the_page() -> None:
    builder_tasks = [
        value for value in vars(tasks).values() if isinstance(value, tasks.BuilderTask)
    ]
    page = reference.format_tasks_page(builder_tasks, tasks.FOR_USERS)
    assert len(builder_tasks) == page.count("\n### ./invoke ")
    for builder_task in builder_tasks:
        section = page.partition(f"### ./invoke {builder_task.name}\n")[2].partition("\n### ")[0]
        flags = {f"--{argument.names[0]}" for argument in builder_task.get_arguments()}
        assert all(flag in section or flag.replace("--", "--no-") in section for flag in flags)
    assert "`--amdlibm-archive=AMDLIBM-ARCHIVE`" in page
    assert "(default: rattler-build)" in page
    assert "`--no-manual`" in page


def test_every_theano_fast_command_is_on_the_page() -> None:
    page = reference.format_commands_page(reference.make_parsers())
    for name in ("verify", "doctor", "cache warm", "profile compare"):
        assert f"# theano-fast {name}\n" in page


def test_subcommands_are_on_the_page() -> None:
    parser = argparse.ArgumentParser(prog="p", description="Of `p`.")
    commands = parser.add_subparsers()
    inner = commands.add_parser("a", help="a|b <c> of `d*`").add_subparsers().add_parser("in")
    inner.add_argument("file", nargs="?")
    inner.add_argument("--of", "-o", metavar="N", default=3, help="%(default)s | 4")
    inner.add_argument("words", nargs=argparse.REMAINDER)
    commands.add_parser("b", add_help=False)
    parser_of_b = argparse.ArgumentParser(prog="p b")
    parser_of_b.add_argument("--kind", choices=["x", "y"])
    page = reference.format_commands_page([parser, parser_of_b])
    assert "## p a\n\na|b \\<c\\> of `d*`\n" in page
    assert "### p a in\n\n| argument | meaning |\n|---|---|\n| `[file]` |  |\n" in page
    assert r"| `--of N, -o N` | 3 \| 4 |" in page
    assert "| `words...` |  |" in page
    assert "## p b\n" in page
    assert r"| `--kind x\|y` |  |" in page
