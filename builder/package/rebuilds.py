"""Build packages a second time under different conditions, and compare the bytes."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.common import paths, progress
from builder.common.errors import BuildFailed, UsageError
from builder.common.processes import run, run_on_terminal
from builder.package import canonical, package_cache
from builder.package.channel import Package
from builder.package.package_cache import Plan
from builder.source import sources
from builder.stack.recipes import Recipe
from builder.timing import forecast

# The user id and the group id of the user ``nobody``.
NOBODY = 65534


def _wrap_in_mount(mount: str) -> tuple[str, ...]:
    """Return a command prefix that runs ``mount``, then the command, in a new mount namespace."""
    return ("unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh")


# Tools that a bare machine lacks, so the second build hides them. Recipes and their tests must get
# them from packages.
TOOLS = (
    "ar as c++ cc cmake cpp g++ gcc gfortran ld m4 make nm objdump patch perl pkg-config ranlib"
    " readelf strip"
)

# Maps a property of the host to a command prefix. The prefix runs the command with another value of
# the property. Most prefixes need root.
WRAPPERS = {
    "host name": ("unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"),
    "terminals": _wrap_in_mount(
        "mount -t tmpfs tmpfs /dev/pts && mount --bind /dev/null /dev/ptmx"
    ),
    "shell": _wrap_in_mount('mount --bind "$(command -v bash)" "$(readlink -f /bin/sh)"'),
    # Hide the host's locales except C.UTF-8. Add en_US.UTF-8, as a copy, if the host lacks it.
    "locales": _wrap_in_mount(
        "cd /usr/lib/locale && available=$(locale -a) && mount -t tmpfs tmpfs /usr/lib/locale"
        " && chmod 755 /usr/lib/locale && cp -a C.utf8 /usr/lib/locale && case $available in"
        " *en_US.utf8*) ;; *) cp -a C.utf8 /usr/lib/locale/en_US.utf8 ;; esac"
        ' && cd "$OLDPWD"'
    ),
    "awk": _wrap_in_mount('mount --bind "$(command -v mawk)" "$(command -v gawk)"'),
    "compilers": _wrap_in_mount(
        f"for tool in {TOOLS}; do if file=$(command -v $tool); then"
        ' mount --bind /dev/null "$(readlink -f "$file")"; fi; done'
    ),
    "standard input": ("sh", "-c", 'exec "$@" <&-', "sh"),
    "umask": ("sh", "-c", 'umask 077 && exec "$@"', "sh"),
    "number of CPUs": ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))),
    "user": ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
}
# Environment variables of the second build.
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "TZ": "Pacific/Kiritimati",
    "USER": "somebody",
    # The kernel and the processor that the engine detects.
    "CONDA_OVERRIDE_LINUX": "5.4",
    "CONDA_OVERRIDE_ARCHSPEC": "x86_64",
}
# Recipes with at least this many CPU seconds in costs.toml are expensive: ``rebuild --turn``
# rebuilds only one expensive recipe. All other recipes together take a few minutes.
EXPENSIVE_CPU_SECONDS = 60.0


@dataclass(frozen=True)
class Comparison:
    """The comparison of a package's two builds.

    Attributes:
        package: the file name of the package.
        first: the SHA-256 of the first build.
        second: the SHA-256 of the second build.
        differences: the paths, within the package, of the files that differ.
    """

    package: str
    first: str
    second: str
    differences: tuple[str, ...]

    @property
    def identical(self) -> bool:
        """Whether the two builds have the same bytes."""
        return self.first == self.second


def select_recipes(recipes: Sequence[Recipe], package: str) -> list[Recipe]:
    """Return the recipe that makes ``package``, or all recipes if ``package`` is empty.

    Args:
        package: the name of a recipe or of a package.

    Raises:
        UsageError: no recipe makes the package.
    """
    selected = [
        recipe
        for recipe in recipes
        if not package or package in (recipe.name, *(output.name for output in recipe.outputs))
    ]
    if not selected:
        names = ", ".join(recipe.name for recipe in recipes)
        raise UsageError(f"no recipe makes {package!r}", f"choose one of: {names}")
    return selected


def drop_expensive(recipes: Sequence[Recipe], turn: int, missing: Iterable[Recipe]) -> list[Recipe]:
    """Drop all expensive recipes except one, which ``turn`` selects; return the remaining recipes.

    Args:
        turn: the index of the expensive recipe to keep, modulo the number of expensive recipes.
        missing: the recipes that had to be built before the rebuild. If such a recipe is expensive,
            drop all expensive recipes, because this run takes long enough.
    """
    dropped = [recipe for recipe in recipes if _is_expensive(recipe)]
    if dropped and not any(map(_is_expensive, missing)):
        del dropped[turn % len(dropped)]
    return [recipe for recipe in recipes if recipe not in dropped]


def _is_expensive(recipe: Recipe) -> bool:
    return forecast.is_expensive(recipe, EXPENSIVE_CPU_SECONDS)


def rebuild(
    plan: Plan,
    stack: str,
    recipes: Sequence[Recipe],
    reports: Path,
    amdlibm_archive: Path | None = None,
) -> list[Comparison]:
    """Build ``recipes`` again, and compare the packages with the packages in the package cache.

    The second build runs later, in a copy of the checkout, with another home directory, with the
    variables of ENVIRONMENT, and without TERM. WRAPPERS change further properties of the host, if
    the host permits it. Packages of other recipes come from the package cache.

    Args:
        plan: the stack's plan; all its packages are in the package cache.
        stack: the name of the stack.
        recipes: the recipes to build again.
        reports: the directory for diffoscope's reports, if diffoscope is on PATH.
        amdlibm_archive: the release archive of AOCL-LibM from which the plan was made.

    Raises:
        BuildFailed: the second build failed.
    """
    with tempfile.TemporaryDirectory(prefix="theano-fast-", ignore_cleanup_errors=True) as root:
        home = Path(root) / "another-place" / "with-a-longer-name"
        checkout, cache = home / "checkout", home / "cache"
        shutil.copytree(paths.ROOT, checkout, symlinks=True, ignore=_ignore_files)
        _fill_cache(plan, recipes, cache)
        flags = [f"--stack={stack}", "--offline"]
        if amdlibm_archive:
            # The user of the second build may not be allowed to read the original.
            copy = shutil.copyfile(amdlibm_archive, home / amdlibm_archive.name)
            flags.append(f"--amdlibm-archive={copy}")
        wrappers = _select_wrappers(Path(root), checkout)
        command = [*wrappers, sys.executable, "-m", "invoke", "packages", *flags]
        environ = {key: value for key, value in os.environ.items() if key != "TERM"}
        environ |= {**ENVIRONMENT, "HOME": str(home), "THEANO_FAST_CACHE": str(cache)}
        status = run_on_terminal(command, env=environ, cwd=checkout)
        if status != 0:
            raise BuildFailed(
                f"the second build failed (exit status {status}); the first build succeeded",
                "the messages of the second build are above",
            )
        comparisons = []
        for recipe in recipes:
            key = plan.keys[recipe.name]
            pairs = zip(_find_built(key), _find_built(key, cache / "packages"), strict=True)
            comparisons += [_compare(first, second, reports) for first, second in pairs]
        return comparisons


def _ignore_files(directory: str, names: list[str]) -> set[str]:
    """Return the names that the copy of a directory omits: hidden files and build outputs."""
    hidden = {name for name in names if name == "__pycache__" or name.startswith(".")}
    return hidden | ({"build"} if Path(directory) == paths.ROOT else set())


def _fill_cache(plan: Plan, recipes: Iterable[Recipe], cache: Path) -> None:
    """Copy the sources of ``recipes``, and the packages of all other recipes, into ``cache``."""
    needed = {source for recipe in recipes for source in recipe.sources}
    files = sources.fetch(needed, offline=True)
    rebuilt = {recipe.name for recipe in recipes}
    files += [
        file
        for name, key in plan.keys.items()
        if name not in rebuilt
        for file in (paths.get_package_cache() / key).iterdir()
    ]
    for file in files:
        target = cache / file.relative_to(paths.get_cache())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _select_wrappers(root: Path, checkout: Path) -> list[str]:
    """Chain the WRAPPERS that the host permits; print the names of the other wrappers.

    Args:
        root: the directory of the second build. Its owner becomes NOBODY if the build runs as that
            user.
        checkout: the copy of the checkout.
    """
    root.chmod(0o755)
    chain: list[str] = []
    for changed, wrapper in WRAPPERS.items():
        # Start Python from a shell. setpriv's own command keeps some rights of root; the command's
        # child processes, such as this Python, do not have these rights.
        probe = [*chain, *wrapper, "sh", "-c", '"$@"', "sh", sys.executable, "-c"]
        probe.append("import builder.package.builds")
        if shutil.which(wrapper[0]) and run(probe, cwd=checkout, check=False).status == 0:
            chain += wrapper
        else:
            progress.say(
                f"the second build has the same {changed}: this host does not permit a change"
            )
    if set(WRAPPERS["user"]) <= set(chain):
        for file in (root, *root.rglob("*")):
            os.chown(file, NOBODY, NOBODY, follow_symlinks=False)
    return chain


def _find_built(key: str, cache: Path | None = None) -> list[Package]:
    packages = package_cache.find_cached(key, cache)
    assert packages is not None, "the copy of the checkout has other cache keys"
    return packages


def _compare(first: Package, second: Package, reports: Path) -> Comparison:
    differences: tuple[str, ...] = ()
    if first.sha256 != second.sha256:
        digests = [_hash_members(package.file) for package in (first, second)]
        names = sorted({name for members in digests for name in members})
        differences = tuple(name for name in names if digests[0].get(name) != digests[1].get(name))
        if diffoscope := shutil.which("diffoscope"):
            reports.mkdir(parents=True, exist_ok=True)
            report = reports / f"{first.file.stem}.diffoscope"
            run([diffoscope, "--text", report, first.file, second.file], check=False)
    return Comparison(first.file.name, first.sha256, second.sha256, differences)


def _hash_members(package: Path) -> dict[str, tuple[int, str, str]]:
    """Return the mode, link target and SHA-256 of each file in a package, by path."""
    return {
        member.name: (member.mode, member.linkname, hashlib.sha256(content).hexdigest())
        for member, content in canonical.read_members(package)
    }
