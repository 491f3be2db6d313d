"""Write docs/theano-changes.md from the messages of Theano's patches."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from builder.common import paths
from builder.common.errors import CommandFailed
from builder.common.files import write_atomically
from builder.maintenance import patches

RECIPE = paths.RECIPES / "theano"
TESTS = paths.ROOT / "tests" / "patches"
PAGE = paths.ROOT / "docs" / "theano-changes.md"
# The titles of the themes, in the order of the patch series. build/ comes early, because its
# patches shorten the check of all later states (patch_states.py).
THEMES = {
    "port": "Current Python, NumPy and SciPy",
    "build": "Compilation with g++",
    "tests": "Theano's tests",
    "cuda": "GPU ops",
    "results": "Wrong results of 1.0.5",
    "graph": "Faster optimization",
    "run": "Faster calls",
}
INTRODUCTION = """\
# Changes to Theano

<!-- `./invoke patches --save` writes this page from recipes/theano/patches. -->

Each entry is a patch of Theano 1.0.5, in the order of `recipes/theano/recipe.yaml`. It describes
the failure without the patch and the change. If the patch has an assumption, or a condition for its
removal, the entry names it. New code is in `recipes/theano/src`. Each entry counts the lines that
the patch adds to Theano's own files and removes from them.
[CONTRIBUTING](../CONTRIBUTING.md#change-theano) explains how to change a patch.
"""


def update() -> bool:
    """Write docs/theano-changes.md; return whether it changed."""
    text = render()
    if PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text:
        return False
    write_atomically(PAGE, text)
    return True


def check() -> None:
    """Require that docs/theano-changes.md describes the current patches.

    Raises:
        CommandFailed: the page differs from the patches.
    """
    if not PAGE.is_file() or PAGE.read_text(encoding="utf-8") != render():
        raise CommandFailed(
            "docs/theano-changes.md differs from recipes/theano/patches",
            "./invoke patches, then ./invoke patches --save",
        )


def render() -> str:
    """Return the page in Markdown."""
    names = patches.list_patches(RECIPE)
    parts = [INTRODUCTION]
    for theme, title in THEMES.items():
        parts.append(f"\n## {title}\n")
        theme_names = (name for name in names if name.partition("/")[0] == theme)
        parts += [_render_patch(patches.read_patch(RECIPE, name)) for name in theme_names]
    return "".join(parts)


def _render_patch(patch: patches.Patch) -> str:
    """Return a patch's entry on the page: title, message, size and tests."""
    title, _, message = patch.header.partition("\n")
    added, removed = map(patch.count_lines, "+-")
    tests = ", ".join(f"`{test.relative_to(paths.ROOT)}`" for test in find_tests(patch.name))
    # Some patches have no test files: tests/cuda tests the patches of cuda/, and Theano's own tests
    # test the patches of tests/.
    default = "`tests/cuda`" if patch.name.startswith("cuda/") else "Theano's own"
    lines = "line" if added == 1 else "lines"
    size = f"`recipes/theano/patches/{patch.name}`: {added} {lines} added, {removed} removed."
    return (
        f"\n### {escape(title)}\n\n{escape(message.strip())}\n\n{size} Tests: {tests or default}.\n"
    )


def find_tests(patch: str) -> Iterator[Path]:
    """Yield the test files whose file name or module docstring contains a patch's name.

    Args:
        patch: the patch file below ``patches``, such as ``results/integer-maxima.patch``.
    """
    theme, _, name = patch.removesuffix(".patch").partition("/")
    for test in sorted((TESTS / theme).glob("test_*.py")):
        docstring = test.read_text(encoding="utf-8").split('"""')[1:2]
        if test.stem == f"test_{name.replace('-', '_')}" or any(
            re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", text) for text in docstring
        ):
            yield test


def escape(text: str) -> str:
    """Escape plain text for Markdown."""
    return re.sub(r"([\\`*_<\[])", r"\\\1", text)
