"""Run ``examples/`` to record the profile for the interpreter's profile-guided optimization."""

from __future__ import annotations

import tarfile
import tempfile
from pathlib import Path

from builder.common import paths, progress
from builder.common.errors import BuildFailed
from builder.common.processes import clean_environ, run
from builder.environment import envs
from builder.options import Options
from builder.package import bundles, package_cache
from builder.pipeline import Build
from builder.stack import recipes, stacks

RECIPE = paths.RECIPES / "python"
PROFILE = RECIPE / "profile.tar.xz"
# The programs that record the profile. Programs of bench/ are excluded, because a profile must not
# favour the benchmarks. pictures.py is excluded, because it needs packages that no stack has.
PROGRAMS = sorted(
    file for file in (paths.ROOT / "examples").glob("*.py") if file.stem != "pictures"
)
# The directory below GCOV_PREFIX to which the interpreter writes its counts. In the instrumented
# interpreter, the recipe's build.sh replaces the path of the source directory by /dev/null.
COUNTS = Path("dev", "null")


def record_profile(stack: str, options: Options) -> None:
    """Build an instrumented interpreter, run PROGRAMS with it, and write its counts to PROFILE.

    The counts are gcc's numbers of executed branches and calls.

    Args:
        stack: the stack whose environment has the Theano that PROGRAMS import. Build it before you
            change Python's sources: changed sources do not compile with the old profile.

    Raises:
        EnvironmentFailed: the stack is not built.
        CommandFailed: a program failed.
        BuildFailed: the interpreter was not built, or wrote no counts.
    """
    envs.require_installed(stack)
    loaded_stack = stacks.load(stack)
    variant = {**recipes.make_variant(loaded_stack), "python_profile": ["record"]}
    rendered = recipes.load_all(loaded_stack)
    rendered["python"] = recipes.render(RECIPE, variant)
    plan = package_cache.make_plan(
        rendered, recipes.collect_dependencies(rendered, "python"), variant
    )
    interpreter, _ = Build(loaded_stack, plan, options).build_recipes()
    with tempfile.TemporaryDirectory(prefix="theano-fast-") as directory:
        prefix, counts = Path(directory, "interpreter"), Path(directory, "counts")
        prefix.mkdir()
        envs.install_packages([package.file for package in interpreter], prefix, str(prefix))
        environment = {
            **clean_environ(),
            "GCOV_PREFIX": str(counts),
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": str(envs.find_site_packages(paths.ENVIRONMENTS / stack)),
            "THEANORC": str(paths.ENVIRONMENTS / stack / "etc" / "theanorc"),
            "THEANO_FLAGS": f"base_compiledir={directory}/compiled",
        }
        for program in PROGRAMS:
            progress.say(f"running {progress.display_path(program)}")
            run([prefix / "bin" / "python", program], env=environment, cwd=Path(directory))
        write_profile(counts / COUNTS, PROFILE)
    progress.conclude(f"{progress.display_path(PROFILE)}: {PROFILE.stat().st_size // 1000} kB")


def write_profile(counts: Path, file: Path) -> None:
    """Write gcc's files of counts (``*.gcda``) below the directory ``counts`` to an archive.

    Raises:
        BuildFailed: the directory has no files of counts.
    """
    count_files = sorted(counts.rglob("*.gcda"))
    if not count_files:
        raise BuildFailed(
            f"the interpreter wrote no profile counts (*.gcda) to {counts}",
            "check in build/logs/python.log that gcc was called with -fprofile-generate",
        )
    part = file.with_name(f".{file.name}.part")
    with tarfile.open(part, "w:xz", format=tarfile.PAX_FORMAT, preset=9) as tar:
        for count_file in count_files:
            tar.add(
                count_file,
                str(count_file.relative_to(counts)),
                filter=bundles.normalize_member,
            )
    part.replace(file)
