"""Resolve a stack to exact packages, and install them as an environment."""

from __future__ import annotations

import difflib
import hashlib
import json
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from builder.common import paths
from builder.common.errors import CommandFailed, EnvironmentFailed, NotReproducible, SolveFailed
from builder.common.processes import run
from builder.package import channel, solver
from builder.package.channel import Package
from builder.source.sources import sha256
from builder.stack import stacks
from builder.stack.recipes import METAPACKAGE, Recipe
from builder.stack.stacks import Stack

# Written last into an environment: without it, or with another digest, the
# environment is half-made or another one, and is made anew. Not *.json: those are packages.
MARK = Path("conda-meta", "theano-fast")
# Has what conda neither removes nor changes for another stack. No package can bring it.
PINNED = Path("conda-meta", "pinned")


@dataclass(frozen=True)
class Lock:
    """The packages of a stack's environment, sorted by their place in the channel."""

    stack: str
    specs: tuple[str, ...]
    packages: tuple[Package, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the explicit lock's text."""
        return hashlib.sha256(explicit(self).encode()).hexdigest()

    @property
    def files(self) -> list[Path]:
        """The packages, where the channel has them."""
        return [paths.CHANNEL / package.path for package in self.packages]


@dataclass(frozen=True)
class Environment:
    """An installed environment."""

    prefix: Path
    lock: Lock


def specs(stack: Stack, metapackage: Recipe) -> tuple[str, ...]:
    """The match specs that ask for exactly this stack, and its programs."""
    output = next(item for item in metapackage.outputs if item.name == METAPACKAGE)
    return f"{output.name} =={output.version} {output.build}", *stack.programs


def assemble(packages: Iterable[Package], specs: Sequence[str], prefix: Path) -> None:
    """Install what specs ask for, out of ``packages``, into ``prefix``, if it is not there.

    Raises:
        CommandFailed: no set of them satisfies the specs.
        EnvironmentFailed: the installation failed.
    """
    found = _solve(packages, specs)
    mark = json.dumps([f"{package.path} {package.sha256}" for package in found])
    file = prefix / MARK
    if not file.exists() or file.read_text(encoding="utf-8") != mark:
        shutil.rmtree(prefix, ignore_errors=True)
        install([package.file for package in found], prefix, str(prefix))
        file.write_text(mark, encoding="utf-8")


def _solve(packages: Iterable[Package], specs: Sequence[str]) -> tuple[Package, ...]:
    """Those of ``packages`` that satisfy specs together, sorted by their place in a channel.

    Raises:
        CommandFailed: no set of them does; the message has the reason.
    """
    by_path = {package.path: package for package in packages}
    with tempfile.TemporaryDirectory() as directory:
        channel.place(by_path.values(), Path(directory))
        found = solver.call("solve", channel=directory, specs=list(specs))
    return tuple(by_path[path] for path in sorted(found))


def resolve(stack: Stack, metapackage: Recipe, packages: Iterable[Package]) -> Lock:
    """Solve a stack against its own packages.

    Raises:
        SolveFailed: no set of them satisfies it on this host; the message has the reason.
    """
    wanted = specs(stack, metapackage)
    try:
        return Lock(stack.name, wanted, _solve(packages, wanted))
    except CommandFailed as error:
        raise SolveFailed(
            f"stack {stack.name} ({', '.join(wanted)}) cannot be installed on this host:\n{error}",
            "correct the recipes' requirements, or run on a host that has the virtual "
            "packages they name",
        ) from error


def explicit(lock: Lock) -> str:
    """The lock in conda's explicit format, with CHANNEL where the channel's address goes."""
    lines = [
        *_address(lock, "24.9", LOCK_NAME, f"{lock.stack}.lock"),
        f"#   conda create --name {_name(lock)} --file {lock.stack}.lock",
        "# conda compares the hashes over http, but not with file://: docs/conda.md has what does.",
        "# platform: linux-64",
        "@EXPLICIT",
    ]
    lines += [f"CHANNEL/{package.path}#sha256:{package.sha256}" for package in lock.packages]
    return "\n".join(lines) + "\n"


LOCK_NAME = "conda-linux-64.lock"


def environment_yml(lock: Lock) -> str:
    """The environment file, with CHANNEL where the channel's address goes."""
    lines = [
        # Older ones add Anaconda's channels, unless the file has a word that newer ones fail on.
        *_address(lock, "25.9", "environment.yml", f"{lock.stack}.yml"),
        f"#   conda env create --file {lock.stack}.yml",
        "# conda asks the channels of your .condarc too: docs/conda.md has what does not.",
        f"name: {_name(lock)}",
        "channels:",
        "  - CHANNEL",
        "dependencies:",
        *(f"  - {spec.replace(' ==', '=').replace(' ', '=')}" for spec in lock.specs),
    ]
    return "\n".join(lines) + "\n"


def _address(lock: Lock, conda: str, name: str, own: str) -> list[str]:
    """The first lines: how to put the channel's address into the file ``name``, giving ``own``."""
    return [
        f"# Written by: invoke lock {stacks.flags(lock.stack)}",
        f"# Put the channel's address in, and install, with conda {conda} or newer:",
        f"#   sed 's|CHANNEL|file:///srv/channel|' {name} > {own}",
    ]


def _name(lock: Lock) -> str:
    """What both files call the environment."""
    return f"theano-{lock.stack}"


def write(lock: Lock, directory: Path, address: str = "") -> None:
    """Write a lock's files into ``directory``, where they differ from what is there.

    Args:
        address: the channel's, in place of the word CHANNEL and of what tells of it.
    """
    directory.mkdir(parents=True, exist_ok=True)
    texts = {LOCK_NAME: explicit(lock), "environment.yml": environment_yml(lock)}
    if address:
        texts = {name: _served(text, address) for name, text in texts.items()}
    for name, text in texts.items():
        file = directory / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            part = file.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(file)


def _served(text: str, address: str) -> str:
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if line[0] != "#" or line == "# platform: linux-64\n"]
    return "".join(kept).replace("CHANNEL", address)


def compare(lock: Lock, directory: Path) -> str:
    """How a lock's packages differ from those of the lock in ``directory``; or nothing."""
    file = directory / LOCK_NAME
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = difflib.unified_diff(before.splitlines(), explicit(lock).splitlines(), n=0, lineterm="")
    if not (differing := [line for line in lines if "CHANNEL/" in line]):
        return ""
    return f"{file} (-) has other packages than were built (+):\n" + "\n".join(differing)


def check(lock: Lock, directory: Path) -> None:
    """Compare a lock with the one that ``directory`` has.

    Raises:
        NotReproducible: they differ; the message has the packages that do.
    """
    if differing := compare(lock, directory):
        raise NotReproducible(
            differing,
            "if recipes, builder or compilers changed, commit what ./invoke lock "
            f"{stacks.flags(lock.stack)} writes; else ./invoke rebuild tells which files differ",
        )


def installed(stack: str) -> str | None:
    """The digest of the lock that ``build/envs/<stack>`` was completely installed from."""
    try:
        mark = (paths.ENVIRONMENTS / stack / MARK).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return str(json.loads(mark)["lock"])


def require(stack: str) -> None:
    """Refuse a stack of which ``build/envs/<stack>`` is not completely installed.

    Raises:
        EnvironmentFailed: it is not; the remedy is the command that builds it.
    """
    if installed(stack) is None:
        raise EnvironmentFailed(
            f"{paths.ENVIRONMENTS / stack} is not built", f"./invoke build --stack={stack}"
        )


def python(environment: str) -> Path:
    """The interpreter of an environment."""
    return paths.ENVIRONMENTS / environment / "bin" / "python"


def site_packages(prefix: Path) -> Path:
    """Where an environment has Python's modules."""
    return next(prefix.glob("lib/python3.*/site-packages"))


def install(
    files: Iterable[Path], prefix: Path, what: str, final_prefix: Path | None = None
) -> None:
    """Install packages into ``prefix``, an empty directory, and compile their modules.

    Args:
        files: the packages, in a channel or elsewhere.
        what: what an error calls the environment.
        final_prefix: where it will be used, if it is only prepared in ``prefix``.

    Raises:
        EnvironmentFailed: the installation failed.
    """
    try:
        solver.call(
            "install",
            files=[str(file) for file in files],
            prefix=str(prefix),
            cache=str(paths.engine_cache() / "pkgs"),
            final_prefix=str(final_prefix) if final_prefix else None,
        )
    except CommandFailed as error:
        raise EnvironmentFailed(
            f"{what} could not be installed:\n{error}", "mend the cause and run again"
        ) from error
    _compile(prefix, final_prefix or prefix)


def _compile(prefix: Path, final_prefix: Path) -> None:
    """Byte-compile what packages have put into site-packages without its bytecode.

    Where it may not write, Python would compile it at every start. The bytecode has no times in
    it, and depends on nothing but the modules: one process compiles them all, in order.
    """
    modules = [
        file
        for file in sorted(prefix.glob("lib/python3*/site-packages/**/*.py"))
        if not any(file.parent.glob(f"__pycache__/{file.stem}.cpython-*.pyc"))
    ]
    if not modules:
        return
    # -B: what this very run imports would be compiled first, with times in it.
    command: list[str | Path] = [prefix / "bin" / "python", "-I", "-B", "-m", "compileall"]
    command += ["-q", "--invalidation-mode", "checked-hash", "-s", prefix, "-p", final_prefix]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as listed:
        listed.writelines(f"{module}\n" for module in modules)
        listed.flush()
        # It fails on files that are examples of bad Python.
        run([*command, "-i", listed.name], check=False)


def tree(prefix: Path) -> str:
    """The SHA-256 of an environment: of path, mode and content of each file that was installed.

    One lock gives one tree at one prefix. The records in ``conda-meta`` themselves, which tell
    where this host has its channel and its cache, do not count.
    """
    records = (prefix / "conda-meta").glob("*.json")
    listed = [name for file in records for name in json.loads(file.read_text("utf-8"))["files"]]
    digest = hashlib.sha256()
    for name in sorted(listed):
        file = prefix / name
        content = str(file.readlink()) if file.is_symlink() else sha256(file)
        digest.update(f"{name} {file.lstat().st_mode:o} {content}\n".encode())
    return digest.hexdigest()


def pin(lock: Lock) -> str:
    """The text of ``PINNED``: the metapackage of this stack, of whichever build."""
    build = lock.specs[0].split()[-1]
    return f"{METAPACKAGE} * *_{build.partition('_')[2]}\n"


def create(lock: Lock) -> Environment:
    """Install a lock into ``build/envs/<stack>``, unless it is there already.

    Raises:
        EnvironmentFailed: the installation failed.
    """
    prefix = paths.ENVIRONMENTS / lock.stack
    if installed(lock.stack) == lock.digest:
        return Environment(prefix, lock)
    if prefix.exists():
        # Renamed first: an interrupted removal leaves no environment that looks whole.
        trash = Path(tempfile.mkdtemp(prefix=f".{lock.stack}-", dir=prefix.parent))
        prefix.replace(trash / "old")
        shutil.rmtree(trash)
    prefix.mkdir(parents=True)
    install(lock.files, prefix, str(prefix))
    (prefix / PINNED).write_text(pin(lock), encoding="utf-8")
    mark = {"stack": lock.stack, "lock": lock.digest}
    (prefix / MARK).write_text(json.dumps(mark, sort_keys=True) + "\n", encoding="utf-8")
    return Environment(prefix, lock)
