"""Environments as users have them, to measure the stacks against and to judge them by.

``stock`` is Theano 1.0.5 as pip installs it: unpatched, with the wheels of the last NumPy and SciPy
that it runs on, on CPython 3.9, bound to the BLAS that it finds on the host; ``stock-programs`` has
what programs of others need beside it. The others are its successors, on the interpreter of the
stacks. ``references/`` says what each is made of.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from builder import pipeline
from builder.common import paths, progress
from builder.common.errors import CommandFailed, EnvironmentFailed, UsageError
from builder.common.processes import run
from builder.environment import envs
from builder.package import packages
from builder.package.packages import Plan
from builder.pipeline import Options
from builder.stack import recipes, stacks
from builder.stack.recipes import Recipe

STOCK = "stock"
PROGRAMS = "stock-programs"
# Each reference, and the recipe of the interpreter it runs on.
INTERPRETERS = {
    STOCK: paths.REFERENCES / "python",
    PROGRAMS: paths.REFERENCES / "python",
    "jax": paths.RECIPES / "python",
    "pytensor": paths.RECIPES / "python",
}
PEERS = tuple(name for name in INTERPRETERS if name not in (STOCK, PROGRAMS))
# The recipes whose wheels install what is pinned.
INSTALLERS = ("pip", "setuptools", "wheel")
# An environment is whole when it holds what it was made from.
MARK = "made-from.txt"


def create(name: str, options: Options) -> Path:
    """The environment of a reference in ``build/envs``, made unless it is there; its prefix.

    Raises:
        UsageError: there is no such reference.
        EnvironmentFailed: pip could not install what is pinned.
    """
    if name not in INTERPRETERS:
        raise UsageError(f"unknown reference {name!r}", f"choose of: {', '.join(INTERPRETERS)}")
    requirements = paths.REFERENCES / f"{name}.txt"
    plan, installers = _plan(name)
    prefix = paths.ENVIRONMENTS / name
    mark = prefix / MARK
    made_from = f"# on {plan.keys['python']}\n{requirements.read_text(encoding='utf-8')}"
    if mark.exists() and mark.read_text(encoding="utf-8") == made_from:
        return prefix
    mark.unlink(missing_ok=True)
    if prefix.exists():
        shutil.rmtree(prefix)
    fetched = pipeline.fetch_sources(installers, options)
    # They stay out of the stacks' channel.
    interpreter = pipeline.build_packages(plan, options)
    prefix.mkdir(parents=True)
    progress.say(f"installing {prefix}")
    envs.install([package.file for package in interpreter], prefix, str(prefix))
    try:
        _install(prefix, fetched, requirements, options)
    except CommandFailed as error:
        raise EnvironmentFailed(
            f"{prefix} could not be installed:\n{error}",
            "check the network and pip's configuration, and run again",
        ) from error
    mark.write_text(made_from, encoding="utf-8")
    return prefix


def _plan(name: str) -> tuple[Plan, list[Recipe]]:
    """What builds a reference's interpreter, and the recipes of its installers."""
    # Of any stack: neither the interpreter nor what it needs reads an axis.
    stack = stacks.load_all()[0]
    rendered = recipes.load_all(stack)
    variant = recipes.variant(stack)
    rendered["python"] = recipes.render(INTERPRETERS[name], variant)
    plan = packages.plan(rendered, recipes.closure(rendered, "python"), variant)
    return plan, [rendered[each] for each in INSTALLERS]


def _install(prefix: Path, installers: list[Path], requirements: Path, options: Options) -> None:
    """Install what is pinned: wheels, but for projects that have none, which are built."""
    python = prefix / "bin" / "python"
    wheel = next(file for file in installers if file.name.startswith("pip-"))
    run([python, wheel / "pip", "install", "--no-index", "--no-deps", *installers])
    # Without build isolation: a build would fetch tools that nothing pins.
    flags = [*options.pip_flags(), "--no-build-isolation"]
    run([python, "-m", "pip", "install", *flags, "-r", requirements])
