"""Build a stack's packages a second time and report the files that differ."""

from __future__ import annotations

from builder import report
from builder.common import paths, progress
from builder.common.errors import NotReproducible
from builder.options import Options
from builder.package import rebuilds
from builder.pipeline import Build, fetch_sources


def rebuild_packages(name: str, options: Options, package: str = "", turn: int = 0) -> None:
    """Build a stack's packages twice and compare the bytes.

    Args:
        package: rebuild only the recipe of this package.
        turn: if not 0, rebuild only one of the recipes that take minutes to build: the ``turn``-th,
            modulo their number. If such a recipe was missing and therefore just built, rebuild
            none of them.

    Raises:
        UsageError: no recipe of the stack makes ``package``.
        NotReproducible: a package differs.
    """
    build = Build.of_stack(name, options)
    build.build_packages()
    chosen = rebuilds.select_recipes(build.plan.recipes, package)
    if turn:
        chosen = rebuilds.drop_expensive(chosen, turn, build.missing)
    progress.say(f"building again: {', '.join(recipe.name for recipe in chosen)}")
    fetch_sources(chosen, options)
    directory = paths.REPORTS / f"{build.stack.name}-rebuild"
    comparisons = rebuilds.rebuild(build.plan, name, chosen, directory, options.amdlibm_archive)
    report.write(report.describe_rebuild(comparisons), directory.with_suffix(".json"))
    for comparison in comparisons:
        verdict = "same   " if comparison.identical else "DIFFERS"
        progress.say(f"{verdict}  {comparison.second}  {comparison.package}")
    if differing := [comparison for comparison in comparisons if not comparison.identical]:
        lines = [f"{row.package}: {', '.join(row.differences)}" for row in differing]
        raise NotReproducible(
            "two builds differ\n  " + "\n  ".join(lines),
            f"with diffoscope on PATH, the differences within files are in {directory}",
        )
