"""Test that the links, paths, tasks and commands in the documents exist."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import tasks
from builder.common import paths
from builder.documents import reference

README = paths.ROOT / "README.md"
INDEX = paths.ROOT / "docs" / "index.md"
PAGES = sorted((paths.ROOT / "docs").glob("*.md"))
DOCUMENTS = [README, paths.ROOT / "CONTRIBUTING.md", *PAGES]

# Directories of the checkout. A path that begins with one of these names must exist.
DIRECTORIES = (
    ".ci bench builder conformance docker docs envs examples fuzz recipes references runtime tests"
)
PATH = re.compile(rf"(?:{'|'.join(map(re.escape, DIRECTORIES.split()))})/[\w.+/-]*")
# A placeholder, such as NAME, for which the reader chooses a value.
PLACEHOLDER = re.compile(r"[A-Z]{3,}")
# Paths that the reader creates in the examples of CONTRIBUTING.md.
CREATED = {"envs/mkl-cuda/", "recipes/toolz/recipe.yaml"}
# The words of a command, up to a shell operator, a quotation mark, a comment or the line's end.
WORDS = r"[ \t]+([^\n|;&>)#`'\"]*)"
TASK = re.compile(rf"\./invoke{WORDS}")
COMMAND = re.compile(rf"(?<![\w:-])theano-fast{WORDS}")


def read_prose(document: Path) -> str:
    """Return a document without its code blocks: comments in code look like headings."""
    return re.sub(r"^```.*?^```$", "", document.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)


def find_links(document: Path) -> list[str]:
    """Return the targets of the relative links of a document, such as "gpu.md#drivers"."""
    targets = re.findall(r"\]\(([^)\s]+)\)", read_prose(document))
    return [target for target in targets if not re.match(r"[a-z]+:", target)]


def find_anchors(document: Path) -> set[str]:
    """Return the anchors that GitHub gives to the headings."""
    headings = re.findall(r"^#+ (.*)$", read_prose(document), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def find_broken_links(document: Path) -> list[str]:
    """Return the relative links of a document whose file or heading does not exist."""
    broken_links = []
    for link in find_links(document):
        name, _, anchor = link.partition("#")
        file = document.parent / name if name else document
        if not file.is_file() or (anchor and anchor not in find_anchors(file)):
            broken_links.append(link)
    return broken_links


def find_code(document: Path) -> Iterator[str]:
    """Yield a document's code blocks and code spans.

    Remove the comments of the blocks, and join lines that end with a backslash to the next line.
    """
    text = document.read_text(encoding="utf-8")
    blocks = re.compile(r"^ *```.*?\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
    for block in blocks.findall(text):
        yield re.sub(r"(?m)(^|\s)#.*$", "", re.sub(r"\\\n\s*", "", block))
    for span in re.findall(r"`([^`]+)`", blocks.sub("", text)):
        yield " ".join(span.split())


def find_missing_paths(document: Path) -> list[str]:
    """List the paths in a document that do not exist in the checkout."""
    missing = []
    for text in find_code(document):
        for word in re.split(r"[\s'\",:=()]+", text):
            path = word.rstrip(".")
            if not PATH.fullmatch(path) or PLACEHOLDER.search(path) or path in CREATED:
                continue
            if not (paths.ROOT / path).exists():
                missing.append(path)
    return missing


def find_wrong_tasks(document: Path) -> list[str]:
    """List the ``./invoke`` commands of a document whose task or flag does not exist."""
    builder_tasks = {
        value.name: value for value in vars(tasks).values() if isinstance(value, tasks.BuilderTask)
    }
    wrong_tasks = []
    for text in find_code(document):
        for words in map(str.split, TASK.findall(text)):
            if not words or words[0].startswith("--") or PLACEHOLDER.match(words[0]):
                continue
            if words[0] not in builder_tasks:
                wrong_tasks.append(" ".join(words))
                continue
            flags = {"--help"}
            for argument in builder_tasks[words[0]].get_arguments():
                flags |= {f"--{name}" for name in argument.names}
                flags |= {f"--no-{name}" for name in argument.names if argument.default is True}
            wrong_tasks += [
                f"{words[0]} {word}"
                for word in words[1:]
                if word.startswith("--") and word.partition("=")[0] not in flags
            ]
    return wrong_tasks


def find_wrong_commands(document: Path) -> list[str]:
    """List the ``theano-fast`` commands of a document whose name or option does not exist."""
    parsers = map_options()
    wrong_commands = []
    for text in find_code(document):
        for words in map(str.split, COMMAND.findall(text)):
            command_words = list(words)
            # Do not check the words after a Python file: they are the program's arguments.
            for number, word in enumerate(words):
                if word.endswith(".py"):
                    command_words = words[:number]
                    break
            if (
                not command_words
                or command_words[0].startswith("--")
                or PLACEHOLDER.match(command_words[0])
            ):
                continue
            name = next(
                (
                    name
                    for name in (" ".join(command_words[:2]), command_words[0])
                    if name in parsers
                ),
                "",
            )
            has_subcommands = any(command.startswith(f"{name} ") for command in parsers)
            has_default = f"{name} run" in parsers
            if not name or (has_subcommands and not has_default and len(command_words) > 1):
                wrong_commands.append(" ".join(command_words))
                continue
            # `profile PROGRAM` means `profile run PROGRAM`. The same holds for `record`.
            options = parsers[name] | parsers.get(f"{name} run", set())
            wrong_commands += [
                f"{name} {word}"
                for word in command_words
                if word.startswith("--") and word.partition("=")[0] not in options
            ]
    return wrong_commands


def map_options() -> dict[str, set[str]]:
    """Map each command of ``theano-fast``, such as "cache warm", to its options."""
    main_parser, *other_parsers = reference.make_parsers()
    by_name = {parser.prog: parser for parser in other_parsers}
    options: dict[str, set[str]] = {}

    def add_options(parser: argparse.ArgumentParser, words: tuple[str, ...]) -> None:
        options[" ".join(words)] = set(parser._option_string_actions)
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for name, inner in action.choices.items():
                    add_options(by_name.get(inner.prog, inner), (*words, name))

    add_options(main_parser, ())
    return options


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_paths_and_commands_exist(document: Path) -> None:
    assert find_missing_paths(document) == []
    assert find_wrong_tasks(document) == []
    assert find_wrong_commands(document) == []


def test_wrong_paths_and_commands_are_found(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text(
        "`builder/none.py` `builder/pipeline.py` `recipes/NAME/recipe.yaml` `tests/unit`\n"
        "```sh\n./invoke build --stack=x --none=1   # ./invoke comment\n./invoke docs --no-manual\n"
        "./invoke none | cat; ./invoke test \\\n    --nones\n"
        "bin/theano-fast verify --check blas --nil\ntheano-fast cache warm --seconds=1 a.py --b\n"
        "theano-fast cache cool\n```\n",
        encoding="utf-8",
    )
    assert find_missing_paths(document) == ["builder/none.py"]
    assert find_wrong_tasks(document) == ["build --none=1", "none", "test --nones"]
    assert find_wrong_commands(document) == ["verify --nil", "cache cool"]


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda document: document.name)
def test_links_lead_to_files_and_headings(document: Path) -> None:
    assert find_broken_links(document) == []


def test_the_index_links_to_every_page_and_the_readme_to_the_index() -> None:
    assert {page.name for page in PAGES} <= {INDEX.name, *find_links(INDEX)}
    assert "docs/index.md" in find_links(README)


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("# Exit codes of `x`\n```sh\n# none\n```\n", encoding="utf-8")
    document = tmp_path / "document.md"
    document.write_text(
        "# Here\n[a](page.md) ![b](page.md#exit-codes-of-x) [c](#here) [d](https://example.org/e)\n"
        "[f](pages.md) [g](page.md#none) [h](#there)\n",
        encoding="utf-8",
    )
    assert find_broken_links(document) == ["pages.md", "page.md#none", "#there"]
