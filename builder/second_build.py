"""Build a stack's packages a second time and report the files that differ."""

from __future__ import annotations

from builder import report
from builder.common import paths, progress
from builder.common.errors import NotReproducible
from builder.options import Options
from builder.package import rebuilds
from builder.pipeline import Build, fetch_sources


def rebuild_packages(name: str, options: Options, package: str = "", turn: int = 0) -> None:
    """Build a stack's packages, build them again, and compare the bytes.

    Args:
        package: the package whose recipe is rebuilt; "" to rebuild all recipes.
        turn: 0 to rebuild all recipes. Any other number: rebuild only one expensive recipe
            (``EXPENSIVE_CPU_SECONDS`` in ``builder/package/rebuilds.py``). Its index among the
            expensive recipes is ``turn`` modulo their number. If this call first had to build an
            expensive recipe, no expensive recipe is rebuilt.

    Raises:
        UsageError: no recipe of the stack makes ``package``.
        NotReproducible: the two builds of a package differ.
    """
    build = Build.create(name, options)
    build.build_packages()
    selected_recipes = rebuilds.select_recipes(build.plan.recipes, package)
    if turn:
        selected_recipes = rebuilds.drop_expensive(selected_recipes, turn, build.missing)
    progress.say(f"building again: {', '.join(recipe.name for recipe in selected_recipes)}")
    fetch_sources(selected_recipes, options)
    directory = paths.REPORTS / f"{build.stack.name}-rebuild"
    comparisons = rebuilds.rebuild(
        build.plan, name, selected_recipes, directory, options.amdlibm_archive
    )
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
