"""Follow the examples of CONTRIBUTING.md for a stack and a recipe, in a copy of the checkout.

The copy uses the user's package cache, so only the package of the example is built.
"""

from __future__ import annotations

import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from support import Project

from builder.common import paths
from builder.environment import envs

PARTS = ("LICENSE", "builder", "invoke", "recipes", "requirements.txt", "runtime", "tasks.py")
# Print the example stack's values on two axes, and the recipes of its plan.
PLAN = """
from builder.options import Options
from builder.pipeline import Build
build = Build.create("mkl-cuda", Options())
print(build.stack.axes["blas"], build.stack.axes["device"], *sorted(build.plan.keys))
"""


def read_blocks(heading: str, language: str) -> list[str]:
    """Return the code blocks of a language in a section of CONTRIBUTING.md, without indentation."""
    text = (paths.ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    pattern = rf"^ *```{language}\n(.*?)^ *```$"
    return [
        textwrap.dedent(block) for block in re.findall(pattern, section, re.MULTILINE | re.DOTALL)
    ]


@pytest.fixture
def checkout(tmp_path: Path) -> Project:
    """Return a copy of the checkout that uses the user's package cache."""
    return Project(tmp_path / "checkout", PARTS, paths.get_cache())


def append_to_stacks(checkout: Project, text: str) -> None:
    file = checkout.root / "builder" / "stack" / "stacks.toml"
    file.write_text(f"{file.read_text(encoding='utf-8')}\n{text}", encoding="utf-8")


def test_the_example_of_a_stack_is_planned(checkout: Project) -> None:
    (row,) = read_blocks("Add a stack", "toml")
    append_to_stacks(checkout, row)
    done = subprocess.run(
        [sys.executable, "-c", PLAN], cwd=checkout.root, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    blas, device, *recipes = done.stdout.split()
    assert (blas, device) == ("mkl", "cuda")
    assert {"mkl", "libgpuarray", "cudnn", "theano-stack"} <= set(recipes)
    status, output = checkout.invoke("stacks")
    assert status == 0
    assert "mkl-cuda" in output


def test_the_example_of_a_recipe_is_built_and_locked(checkout: Project) -> None:
    envs.require_installed("openblas")
    (recipe,), (row,) = read_blocks("Add a recipe", "yaml"), read_blocks("Add a recipe", "toml")
    (command,) = read_blocks("Add a recipe", "sh")
    directory = checkout.root / "recipes" / "toolz"
    directory.mkdir()
    (directory / "recipe.yaml").write_text(recipe, encoding="utf-8")
    append_to_stacks(checkout, row)
    status, output = checkout.invoke(*command.removeprefix("./invoke ").split())
    assert status == 0, output
    lock = checkout.root / "build" / "locks" / "openblas+toolz" / "conda-linux-64.lock"
    assert re.search(r"/toolz-1\.0\.0-\w+\.conda#sha256:", lock.read_text(encoding="utf-8"))


def test_a_recipe_with_a_wrong_hash_is_refused(checkout: Project) -> None:
    envs.require_installed("openblas")
    (recipe,), (row,) = read_blocks("Add a recipe", "yaml"), read_blocks("Add a recipe", "toml")
    directory = checkout.root / "recipes" / "toolz"
    directory.mkdir()
    wrong = re.sub(r"(sha256: )\w+", rf"\g<1>{'0' * 64}", recipe)
    (directory / "recipe.yaml").write_text(wrong, encoding="utf-8")
    append_to_stacks(checkout, row)
    status, output = checkout.invoke("lock", "--stack=openblas", "--with=toolz")
    assert status == 5, output
