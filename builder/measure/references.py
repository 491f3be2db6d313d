"""Install the reference environments: stock Theano, JAX and PyTensor.

``stock`` is Theano 1.0.5 from pip: unpatched, on CPython 3.9, with the wheels of the last NumPy and
SciPy on which it runs, and with the host's BLAS. ``stock-programs`` also has the dependencies of
Keras, Lasagne and PyMC3. JAX and PyTensor run on the stacks' interpreter. ``references/`` has the
requirements of each.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from builder.common import paths, progress
from builder.common.errors import CommandFailed, EnvironmentFailed, UsageError
from builder.common.processes import run
from builder.environment import envs
from builder.options import Options
from builder.package import package_cache
from builder.package.package_cache import Plan
from builder.pipeline import Build, fetch_sources
from builder.stack import recipes, stacks
from builder.stack.recipes import Recipe

STOCK = "stock"
PROGRAMS = "stock-programs"
# Maps a reference to the recipe of its interpreter.
INTERPRETERS = {
    STOCK: paths.REFERENCES / "python",
    PROGRAMS: paths.REFERENCES / "python",
    "jax": paths.RECIPES / "python",
    "pytensor": paths.RECIPES / "python",
}
PEERS = tuple(name for name in INTERPRETERS if name not in (STOCK, PROGRAMS))
# The recipes of the wheels that install the requirements, by the recipe of the interpreter.
INSTALLERS = {
    paths.REFERENCES / "python": (paths.REFERENCES / "installers",),
    paths.RECIPES / "python": (paths.RECIPES / "pip", paths.RECIPES / "setuptools"),
}
# The file with the inputs of a complete environment.
MARK = "made-from.txt"


def install_reference(name: str, options: Options) -> Path:
    """Install a reference into ``build/envs``, unless it is installed; return its prefix.

    Raises:
        UsageError: the reference is unknown.
        EnvironmentFailed: pip could not install the requirements.
    """
    if name not in INTERPRETERS:
        raise UsageError(f"unknown reference {name!r}", f"choose one of: {', '.join(INTERPRETERS)}")
    requirements = paths.REFERENCES / f"{name}.txt"
    plan, installers = _make_plan(name)
    prefix = paths.ENVIRONMENTS / name
    mark = prefix / MARK
    made_from = f"# on {plan.keys['python']}\n{requirements.read_text(encoding='utf-8')}"
    if mark.exists() and mark.read_text(encoding="utf-8") == made_from:
        return prefix
    mark.unlink(missing_ok=True)
    if prefix.exists():
        shutil.rmtree(prefix)
    fetched = fetch_sources(installers, options)
    # Do not add the packages to the stacks' channel.
    interpreter, _ = Build(stacks.load_all()[0], plan, options).build_missing()
    prefix.mkdir(parents=True)
    progress.say(f"installing {prefix}")
    envs.install_packages([package.file for package in interpreter], prefix, str(prefix))
    try:
        _install(prefix, fetched, requirements, options)
    except CommandFailed as error:
        raise EnvironmentFailed(
            f"{prefix} could not be installed:\n{error}",
            "check the network and pip's configuration, and run again",
        ) from error
    mark.write_text(made_from, encoding="utf-8")
    return prefix


def _make_plan(name: str) -> tuple[Plan, list[Recipe]]:
    """Return the plan of a reference's interpreter, and the recipes of its installers."""
    # Use any stack: neither the interpreter nor its dependencies depend on an axis.
    stack = stacks.load_all()[0]
    rendered = recipes.load_all(stack)
    variant = recipes.make_variant(stack)
    rendered["python"] = recipes.render(INTERPRETERS[name], variant)
    plan = package_cache.make_plan(
        rendered, recipes.collect_dependencies(rendered, "python"), variant
    )
    installers = [recipes.render(path, variant) for path in INSTALLERS[INTERPRETERS[name]]]
    return plan, installers


def _install(prefix: Path, installers: list[Path], requirements: Path, options: Options) -> None:
    """Install the requirements: wheels, and source distributions of projects without wheels."""
    python = prefix / "bin" / "python"
    wheel = next(file for file in installers if file.name.startswith("pip-"))
    run([python, wheel / "pip", "install", "--no-index", "--no-deps", *installers])
    # Build isolation would download build tools that are not pinned.
    flags = [*options.pip_flags(), "--no-build-isolation"]
    run([python, "-m", "pip", "install", *flags, "-r", requirements])
