"""Install the reference environments: stock Theano, JAX and PyTensor.

``stock`` is Theano 1.0.5 from pip, unpatched, on CPython 3.9. It has the wheels of the last
releases of NumPy and SciPy that Theano 1.0.5 supports. It uses the host's BLAS. ``stock-programs``
also has the dependencies of Keras, Lasagne and PyMC3. JAX and PyTensor run on the stacks' CPython.
``references/NAME.txt`` pins the requirements of the reference NAME.
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
# Maps a reference to the directory of its interpreter's recipe.
INTERPRETERS = {
    STOCK: paths.REFERENCES / "python",
    PROGRAMS: paths.REFERENCES / "python",
    "jax": paths.RECIPES / "python",
    "pytensor": paths.RECIPES / "python",
}
# The references for `bench --peers`.
PEERS = tuple(name for name in INTERPRETERS if name not in (STOCK, PROGRAMS))

# Maps the directory of an interpreter's recipe to the recipes whose sources are the wheels of pip
# and setuptools for this interpreter.
INSTALLERS = {
    paths.REFERENCES / "python": (paths.REFERENCES / "installers",),
    paths.RECIPES / "python": (paths.RECIPES / "pip", paths.RECIPES / "setuptools"),
}
# The file in a reference's prefix that records the inputs of the installation. It is written last.
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
    inputs = f"# on {plan.keys['python']}\n{requirements.read_text(encoding='utf-8')}"
    if mark.exists() and mark.read_text(encoding="utf-8") == inputs:
        return prefix
    mark.unlink(missing_ok=True)
    if prefix.exists():
        shutil.rmtree(prefix)
    wheels = fetch_sources(installers, options)
    # Do not call build_packages: it would add the interpreter to the stacks' channel.
    interpreter, _ = Build(stacks.load_all()[0], plan, options).build_recipes()
    prefix.mkdir(parents=True)
    progress.say(f"installing {prefix}")
    envs.install_packages([package.file for package in interpreter], prefix, str(prefix))
    try:
        _install(prefix, wheels, requirements, options)
    except CommandFailed as error:
        raise EnvironmentFailed(
            f"{prefix} could not be installed:\n{error}",
            "check the network and pip's configuration, and run again",
        ) from error
    mark.write_text(inputs, encoding="utf-8")
    return prefix


def _make_plan(name: str) -> tuple[Plan, list[Recipe]]:
    """Return the plan of a reference's interpreter, and the recipes with the wheels of pip."""
    # Any stack gives the same plan: neither the interpreter nor its dependencies depend on an axis.
    stack = stacks.load_all()[0]
    rendered = recipes.load_all(stack)
    variant = recipes.make_variant(stack)
    rendered["python"] = recipes.render(INTERPRETERS[name], variant)
    plan = package_cache.make_plan(
        rendered, recipes.collect_dependencies(rendered, "python"), variant
    )
    installers = [recipes.render(path, variant) for path in INSTALLERS[INTERPRETERS[name]]]
    return plan, installers


def _install(prefix: Path, wheels: list[Path], requirements: Path, options: Options) -> None:
    """Install pip, and with pip the requirements, in the prefix of an interpreter.

    Requirements without a wheel are built from their source distributions.

    Args:
        wheels: the wheels of pip, setuptools and, for CPython 3.9, wheel.
    """
    python = prefix / "bin" / "python"
    pip = next(file for file in wheels if file.name.startswith("pip-"))
    run([python, pip / "pip", "install", "--no-index", "--no-deps", *wheels])
    # Build isolation would download build tools that are not pinned.
    flags = [*options.make_pip_flags(), "--no-build-isolation"]
    run([python, "-m", "pip", "install", *flags, "-r", requirements])
