"""Build packages a second time, where little is as it was the first time, and compare the bytes."""

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
from builder.common.processes import run, show
from builder.package import canonical, packages
from builder.package.channel import Package
from builder.package.packages import Plan
from builder.source import sources
from builder.stack.recipes import Recipe

NOBODY = 65534


def _mounted(mount: str) -> tuple[str, ...]:
    """The command that runs another where ``mount``, a shell command, holds for it alone."""
    return ("unshare", "--mount", "sh", "-c", f'{mount} && exec "$@"', "sh")


# What a bare machine lacks: a build, and the tests of what it built, must have it from packages.
TOOLS = (
    "ar as c++ cc cmake cpp g++ gcc gfortran ld m4 make nm objdump patch perl pkg-config ranlib"
    " readelf strip"
)

# Commands that change a circumstance of the command that follows them, where the host allows it.
WRAPPERS = {
    "host name": ("unshare", "--uts", "sh", "-c", 'hostname elsewhere && exec "$@"', "sh"),
    "terminals": _mounted("mount -t tmpfs tmpfs /dev/pts && mount --bind /dev/null /dev/ptmx"),
    "shell": _mounted('mount --bind "$(command -v bash)" "$(readlink -f /bin/sh)"'),
    "awk": _mounted('mount --bind "$(command -v mawk)" "$(command -v gawk)"'),
    "compilers": _mounted(
        f"for tool in {TOOLS}; do if file=$(command -v $tool); then"
        ' mount --bind /dev/null "$(readlink -f "$file")"; fi; done'
    ),
    "standard input": ("sh", "-c", 'exec "$@" <&-', "sh"),
    "umask": ("sh", "-c", 'umask 077 && exec "$@"', "sh"),
    "number of CPUs": ("taskset", "--cpu-list", str(min(os.sched_getaffinity(0)))),
    "user": ("setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups"),
}
ENVIRONMENT = {
    "LC_ALL": "C.UTF-8",
    "TZ": "Pacific/Kiritimati",
    "USER": "somebody",
    # Kernel and processor, as far as the engine asks for them.
    "CONDA_OVERRIDE_LINUX": "5.4",
    "CONDA_OVERRIDE_ARCHSPEC": "x86_64",
}
# Each takes minutes to build, all others together a few.
EXPENSIVE = frozenset({"libopenblas", "netlib-lapack", "numpy", "openssl", "python", "scipy"})


@dataclass(frozen=True)
class Comparison:
    """The SHA-256 of a package's two builds, and the files in it that differ."""

    package: str
    first: str
    second: str
    differences: tuple[str, ...]

    @property
    def identical(self) -> bool:
        """Whether the two builds have the same bytes."""
        return self.first == self.second


def choose(recipes: Sequence[Recipe], package: str) -> list[Recipe]:
    """The recipes, or the one of them that makes ``package``.

    Raises:
        UsageError: none does.
    """
    chosen = [
        recipe
        for recipe in recipes
        if not package or package in (recipe.name, *(output.name for output in recipe.outputs))
    ]
    if not chosen:
        known = ", ".join(recipe.name for recipe in recipes)
        raise UsageError(f"no recipe makes {package!r}", f"choose one of: {known}")
    return chosen


def take_turns(recipes: Sequence[Recipe], turn: int, missing: Iterable[Recipe]) -> list[Recipe]:
    """The recipes without the EXPENSIVE ones but the ``turn``-th, counted round.

    Args:
        missing: what had to be built the first time; where one of it is EXPENSIVE, none is chosen.
    """
    left_out = [recipe for recipe in recipes if recipe.name in EXPENSIVE]
    if left_out and not EXPENSIVE & {recipe.name for recipe in missing}:
        del left_out[turn % len(left_out)]
    return [recipe for recipe in recipes if recipe not in left_out]


def rebuild(
    plan: Plan,
    stack: str,
    chosen: Sequence[Recipe],
    reports: Path,
    amdlibm_archive: Path | None = None,
) -> list[Comparison]:
    """Build ``chosen`` again, all else coming from the package cache, and compare.

    Directory, home, environment and time always differ, and there is no TERM; of WRAPPERS, what
    this host allows.

    Args:
        plan: the stack's plan, all of it in the package cache.
        reports: where diffoscope's reports go, if it is on PATH.
        amdlibm_archive: the release archive of AMD's library that the plan was made with.

    Raises:
        BuildFailed: the second build failed.
    """
    with tempfile.TemporaryDirectory(prefix="theano-fast-", ignore_cleanup_errors=True) as place:
        away = Path(place) / "another-place" / "with-a-longer-name"
        checkout, cache = away / "checkout", away / "cache"
        shutil.copytree(paths.ROOT, checkout, symlinks=True, ignore=_ignored)
        _seed(plan, chosen, cache)
        flags = [f"--stack={stack}", "--offline"]
        if amdlibm_archive:
            # The user who builds may not be allowed to read the original.
            copy = shutil.copyfile(amdlibm_archive, away / amdlibm_archive.name)
            flags.append(f"--amdlibm-archive={copy}")
        wrappers = _allowed(Path(place), checkout)
        command = [*wrappers, sys.executable, "-m", "invoke", "packages", *flags]
        home = {"HOME": str(away), "THEANO_FAST_CACHE": str(cache)}
        given = {key: value for key, value in os.environ.items() if key != "TERM"}
        status = show(command, env={**given, **ENVIRONMENT, **home}, cwd=checkout)
        if status != 0:
            raise BuildFailed(
                f"the second build failed (exit status {status}) where the first did not",
                "its messages are above",
            )
        found = []
        for recipe in chosen:
            key = plan.keys[recipe.name]
            pairs = zip(_built(key), _built(key, cache / "packages"), strict=True)
            found += [_compare(first, second, reports) for first, second in pairs]
        return found


def _ignored(directory: str, names: list[str]) -> set[str]:
    """What of the checkout is not copied: what is made in it, and what is hidden."""
    hidden = {name for name in names if name == "__pycache__" or name.startswith(".")}
    return hidden | ({"build"} if Path(directory) == paths.ROOT else set())


def _seed(plan: Plan, chosen: Iterable[Recipe], cache: Path) -> None:
    """Copy into ``cache`` what the second build needs: sources, and packages not to be built."""
    needed = {source for recipe in chosen for source in recipe.sources}
    files = sources.fetch(needed, offline=True)
    rebuilt = {recipe.name for recipe in chosen}
    files += [
        file
        for name, key in plan.keys.items()
        if name not in rebuilt
        for file in (paths.package_cache() / key).iterdir()
    ]
    for file in files:
        target = cache / file.relative_to(paths.cache())
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


def _allowed(place: Path, checkout: Path) -> list[str]:
    """The WRAPPERS that work here, as one; ``place`` goes to the user who will build in it."""
    place.chmod(0o755)
    found: list[str] = []
    for circumstance, wrapper in WRAPPERS.items():
        # In a shell: setpriv itself still has the rights that it takes away.
        probe = [*found, *wrapper, "sh", "-c", '"$@"', "sh", sys.executable, "-c"]
        probe.append("import builder.package.builds")
        if shutil.which(wrapper[0]) and run(probe, cwd=checkout, check=False).status == 0:
            found += wrapper
        else:
            progress.say(f"not varied, for this host does not allow it: {circumstance}")
    if set(WRAPPERS["user"]) <= set(found):
        for file in (place, *place.rglob("*")):
            os.chown(file, NOBODY, NOBODY, follow_symlinks=False)
    return found


def _built(key: str, cache: Path | None = None) -> list[Package]:
    found = packages.cached(key, cache)
    assert found is not None, "the copy of the checkout has other keys"
    return found


def _compare(first: Package, second: Package, reports: Path) -> Comparison:
    differences: tuple[str, ...] = ()
    if first.sha256 != second.sha256:
        contents = [_digests(package.file) for package in (first, second)]
        names = sorted({name for files in contents for name in files})
        differences = tuple(
            name for name in names if contents[0].get(name) != contents[1].get(name)
        )
        if diffoscope := shutil.which("diffoscope"):
            reports.mkdir(parents=True, exist_ok=True)
            report = reports / f"{first.file.stem}.diffoscope"
            run([diffoscope, "--text", report, first.file, second.file], check=False)
    return Comparison(first.file.name, first.sha256, second.sha256, differences)


def _digests(package: Path) -> dict[str, tuple[int, str, str]]:
    """Mode, link and digest of each file in a package."""
    return {
        member.name: (member.mode, member.linkname, hashlib.sha256(content).hexdigest())
        for member, content in canonical.members(package)
    }
