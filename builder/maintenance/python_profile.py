"""The profile that the interpreter is compiled with, counted while the examples run."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from builder import pipeline
from builder.common import paths, progress
from builder.common.errors import BuildFailed
from builder.common.processes import clean_environ, run
from builder.environment import envs
from builder.package import bundles, packages
from builder.pipeline import Options
from builder.stack import recipes, stacks

RECIPE = paths.RECIPES / "python"
PROFILE = RECIPE / "profile.tar.xz"
# What is measured is not what was trained for: no bench's graph is among them. One draws, which
# takes programs that no stack has by itself.
PROGRAMS = sorted(
    file for file in (paths.ROOT / "examples").glob("*.py") if file.stem != "pictures"
)
# Where the recipe's build.sh has the interpreter write, below GCOV_PREFIX.
COUNTS = Path("dev", "null")


def record(stack: str, options: Options) -> None:
    """Write anew what an interpreter that counts its branches and calls counts in PROGRAMS.

    Args:
        stack: the one whose environment they find Theano in; it must be there, for no interpreter
            can be compiled with a profile of other sources.

    Raises:
        EnvironmentFailed: it is not built.
        CommandFailed: a program failed.
        BuildFailed: nothing was counted.
    """
    envs.require(stack)
    known = stacks.load(stack)
    variant = {**recipes.variant(known), "python_profile": ["record"]}
    rendered = recipes.load_all(known)
    rendered["python"] = recipes.render(RECIPE, variant)
    plan = packages.plan(rendered, recipes.closure(rendered, "python"), variant)
    interpreter = pipeline.build_packages(plan, options)
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as place:
        prefix, counts = Path(place, "interpreter"), Path(place, "counts")
        prefix.mkdir()
        envs.install([package.file for package in interpreter], prefix, str(prefix))
        environment = {
            **clean_environ(),
            "GCOV_PREFIX": str(counts),
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(envs.site_packages(paths.ENVIRONMENTS / stack)),
            "THEANORC": str(paths.ENVIRONMENTS / stack / "etc" / "theanorc"),
            "THEANO_FLAGS": f"base_compiledir={place}/compiled",
        }
        for program in PROGRAMS:
            progress.say(f"running {progress.place(program)}")
            run([prefix / "bin" / "python", program], env=environment, cwd=Path(place))
        write(counts / COUNTS, PROFILE)
    progress.conclude(f"{progress.place(PROFILE)}: {PROFILE.stat().st_size // 1000} kB")


def write(counts: Path, file: Path) -> None:
    """Write the files with gcc's counts below ``counts`` as an archive.

    Raises:
        BuildFailed: there are none.
    """
    found = sorted(counts.rglob("*.gcda"))
    if not found:
        raise BuildFailed(
            f"the interpreter counted nothing in {counts}",
            "see in build/logs/python.log whether it was compiled with -fprofile-generate",
        )
    part = file.with_name(f".{file.name}.part")
    with tarfile.open(part, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for each in found:
            tar.add(each, str(each.relative_to(counts)), filter=bundles.anonymous)
    part.replace(file)
