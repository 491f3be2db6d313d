"""Resolve a stack to a lock of exact packages, and install the lock as an environment."""

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

# The last file that is written into an environment. An environment without this file is incomplete;
# an environment with another digest is outdated. Both are installed again. The name does not end
# with .json, because conda reads each conda-meta/*.json as a package.
MARK = Path("conda-meta", "theano-fast")
# conda neither removes nor replaces the packages in this file. A package cannot install this file.
PINNED = Path("conda-meta", "pinned")


@dataclass(frozen=True)
class Lock:
    """The packages of a stack's environment, sorted by path in the channel."""

    stack: str
    specs: tuple[str, ...]
    packages: tuple[Package, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the explicit lock's text."""
        return hashlib.sha256(format_explicit(self).encode()).hexdigest()

    @property
    def files(self) -> list[Path]:
        """The paths of the packages in the channel."""
        return [paths.CHANNEL / package.path for package in self.packages]


@dataclass(frozen=True)
class Environment:
    """An installed environment."""

    prefix: Path
    lock: Lock


def make_specs(stack: Stack, metapackage: Recipe) -> tuple[str, ...]:
    """Return match specs: exactly this metapackage, and the stack's programs."""
    output = next(item for item in metapackage.outputs if item.name == METAPACKAGE)
    return f"{output.name} =={output.version} {output.build}", *stack.programs


def install_specs(packages: Iterable[Package], specs: Sequence[str], prefix: Path) -> None:
    """Install specs from ``packages`` into ``prefix``, unless it has these packages already.

    Raises:
        CommandFailed: the packages do not satisfy the specs.
        EnvironmentFailed: the installation failed.
    """
    selected = _solve(packages, specs)
    mark = json.dumps([f"{package.path} {package.sha256}" for package in selected])
    file = prefix / MARK
    if not file.exists() or file.read_text(encoding="utf-8") != mark:
        shutil.rmtree(prefix, ignore_errors=True)
        install_packages([package.file for package in selected], prefix, str(prefix))
        file.write_text(mark, encoding="utf-8")


def _solve(packages: Iterable[Package], specs: Sequence[str]) -> tuple[Package, ...]:
    """Select packages that satisfy all specs, sorted by path in the channel.

    Raises:
        CommandFailed: the packages do not satisfy the specs; the message has the reason.
    """
    by_path = {package.path: package for package in packages}
    with tempfile.TemporaryDirectory() as directory:
        channel.add_packages(by_path.values(), Path(directory))
        selected_paths = solver.call("solve", channel=directory, specs=list(specs))
    return tuple(by_path[path] for path in sorted(selected_paths))


def resolve_lock(stack: Stack, metapackage: Recipe, packages: Iterable[Package]) -> Lock:
    """Resolve a stack to exact packages.

    Raises:
        SolveFailed: the packages cannot be installed on this host; the message has the reason.
    """
    stack_specs = make_specs(stack, metapackage)
    try:
        return Lock(stack.name, stack_specs, _solve(packages, stack_specs))
    except CommandFailed as error:
        raise SolveFailed(
            f"this host cannot install stack {stack.name} ({', '.join(stack_specs)}):\n{error}",
            "correct the recipes' requirements, or run on a host that meets the requirements on "
            "virtual packages such as __glibc",
        ) from error


def format_explicit(lock: Lock) -> str:
    """Format a lock in conda's explicit format, with CHANNEL in place of the channel's address."""
    lines = [
        *_format_instructions(lock, "24.9", LOCK_NAME, f"{lock.stack}.lock"),
        f"#   conda create --name {_format_name(lock)} --file {lock.stack}.lock",
        "# conda compares the hashes over http, but not with file://: docs/conda.md verifies them.",
        "# platform: linux-64",
        "@EXPLICIT",
    ]
    lines += [f"CHANNEL/{package.path}#sha256:{package.sha256}" for package in lock.packages]
    return "\n".join(lines) + "\n"


LOCK_NAME = "conda-linux-64.lock"


def format_environment_yml(lock: Lock) -> str:
    """Format a lock's specs as an environment file, with CHANNEL for the channel's address."""
    lines = [
        # Older versions add Anaconda's channels, unless the file has `nodefaults`, on which newer
        # versions fail.
        *_format_instructions(lock, "25.9", "environment.yml", f"{lock.stack}.yml"),
        f"#   conda env create --file {lock.stack}.yml",
        "# conda uses the channels of your .condarc too: docs/conda.md shows how to avoid them.",
        f"name: {_format_name(lock)}",
        "channels:",
        "  - CHANNEL",
        "dependencies:",
        *(f"  - {spec.replace(' ==', '=').replace(' ', '=')}" for spec in lock.specs),
    ]
    return "\n".join(lines) + "\n"


def _format_instructions(lock: Lock, conda: str, name: str, own: str) -> list[str]:
    """Return the first lines: how to make the file ``own`` from ``name`` and the address."""
    return [
        f"# Written by: invoke lock {stacks.format_flags(lock.stack)}",
        f"# Put the channel's address in, and install, with conda {conda} or newer:",
        f"#   sed 's|CHANNEL|file:///srv/channel|' {name} > {own}",
    ]


def _format_name(lock: Lock) -> str:
    """Return the name of the environment in both files."""
    return f"theano-{lock.stack}"


def write_lock(lock: Lock, directory: Path, address: str = "") -> None:
    """Write a lock's two files into ``directory``; do not touch a file with the same text.

    Args:
        address: the channel's address, to replace CHANNEL. With it, omit the comments that explain
            the replacement.
    """
    directory.mkdir(parents=True, exist_ok=True)
    texts = {LOCK_NAME: format_explicit(lock), "environment.yml": format_environment_yml(lock)}
    if address:
        texts = {name: _replace_channel(text, address) for name, text in texts.items()}
    for name, text in texts.items():
        file = directory / name
        if not file.exists() or file.read_text(encoding="utf-8") != text:
            part = file.with_suffix(".part")
            part.write_text(text, encoding="utf-8")
            part.replace(file)


def _replace_channel(text: str, address: str) -> str:
    lines = text.splitlines(keepends=True)
    kept = [line for line in lines if line[0] != "#" or line == "# platform: linux-64\n"]
    return "".join(kept).replace("CHANNEL", address)


def describe_differences(lock: Lock, directory: Path) -> str:
    """Describe how a lock differs from the lock in ``directory``; "" if it does not."""
    file = directory / LOCK_NAME
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = difflib.unified_diff(
        before.splitlines(), format_explicit(lock).splitlines(), n=0, lineterm=""
    )
    if not (changes := [line for line in lines if "CHANNEL/" in line]):
        return ""
    return f"the packages in {file} (-) differ from the built packages (+):\n" + "\n".join(changes)


def check_lock(lock: Lock, directory: Path) -> None:
    """Compare a lock file's content with the lock file in ``directory``.

    Raises:
        NotReproducible: the locks differ; the message names the packages.
    """
    if differences := describe_differences(lock, directory):
        raise NotReproducible(
            differences,
            "if recipes, builder or compilers changed, run ./invoke lock "
            f"{stacks.format_flags(lock.stack)} and commit the files that it writes; "
            "otherwise run ./invoke rebuild, which names the files that differ",
        )


def read_installed_digest(stack: str) -> str | None:
    """Read the digest of the lock installed in ``build/envs/<stack>``; None if incomplete."""
    try:
        mark = (paths.ENVIRONMENTS / stack / MARK).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return str(json.loads(mark)["lock"])


def require_installed(stack: str) -> None:
    """Require that ``build/envs/<stack>`` is completely installed.

    Raises:
        EnvironmentFailed: it is not installed; the hint is the command that builds it.
    """
    if read_installed_digest(stack) is None:
        raise EnvironmentFailed(
            f"{paths.ENVIRONMENTS / stack} is not built", f"./invoke build --stack={stack}"
        )


def python_path(environment: str) -> Path:
    """Return the path of an environment's interpreter."""
    return paths.ENVIRONMENTS / environment / "bin" / "python"


def find_site_packages(prefix: Path) -> Path:
    """Find the site-packages directory of an environment with Python 3."""
    return next(prefix.glob("lib/python3.*/site-packages"))


def install_packages(
    files: Iterable[Path], prefix: Path, what: str, final_prefix: Path | None = None
) -> None:
    """Install packages into ``prefix``, an empty directory, and byte-compile their modules.

    Args:
        files: the packages.
        what: the name of the environment in error messages.
        final_prefix: the prefix at which the environment will be used, if not ``prefix``.

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
            f"{what} could not be installed:\n{error}", "remove the cause and run again"
        ) from error
    _compile(prefix, final_prefix or prefix)


def _compile(prefix: Path, final_prefix: Path) -> None:
    """Byte-compile the modules in site-packages that have no bytecode.

    Otherwise Python compiles them at each start, if the user cannot write to the environment. The
    bytecode contains no times, and one process compiles all modules in order, so the bytecode
    depends only on the modules.
    """
    modules = [
        file
        for file in sorted(prefix.glob("lib/python3*/site-packages/**/*.py"))
        if not any(file.parent.glob(f"__pycache__/{file.stem}.cpython-*.pyc"))
    ]
    if not modules:
        return
    # -B: Python would otherwise write bytecode with times for the modules that compileall imports.
    command: list[str | Path] = [prefix / "bin" / "python", "-I", "-B", "-m", "compileall"]
    command += ["-q", "--invalidation-mode", "checked-hash", "-s", prefix, "-p", final_prefix]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as module_list:
        module_list.writelines(f"{module}\n" for module in modules)
        module_list.flush()
        # compileall fails on files with intended syntax errors, such as test data.
        run([*command, "-i", module_list.name], check=False)


def hash_environment(prefix: Path) -> str:
    """Compute the SHA-256 of the paths, modes and contents of all installed files.

    The same lock at the same prefix gives the same digest. The records in ``conda-meta`` do not
    count, because they contain paths of this host.
    """
    records = (prefix / "conda-meta").glob("*.json")
    names = [name for file in records for name in json.loads(file.read_text("utf-8"))["files"]]
    digest = hashlib.sha256()
    for name in sorted(names):
        file = prefix / name
        content = str(file.readlink()) if file.is_symlink() else sha256(file)
        digest.update(f"{name} {file.lstat().st_mode:o} {content}\n".encode())
    return digest.hexdigest()


def format_pin(lock: Lock) -> str:
    """Return the text of ``PINNED``: the metapackage of this stack, with any build number."""
    build = lock.specs[0].split()[-1]
    return f"{METAPACKAGE} * *_{build.partition('_')[2]}\n"


def create_environment(lock: Lock) -> Environment:
    """Install a lock into ``build/envs/<stack>``, unless it is installed already.

    Raises:
        EnvironmentFailed: the installation failed.
    """
    prefix = paths.ENVIRONMENTS / lock.stack
    if read_installed_digest(lock.stack) == lock.digest:
        return Environment(prefix, lock)
    if prefix.exists():
        # Rename it first: an interrupted removal must not leave an environment that looks complete.
        trash = Path(tempfile.mkdtemp(prefix=f".{lock.stack}-", dir=prefix.parent))
        prefix.replace(trash / "old")
        shutil.rmtree(trash)
    prefix.mkdir(parents=True)
    install_packages(lock.files, prefix, str(prefix))
    (prefix / PINNED).write_text(format_pin(lock), encoding="utf-8")
    mark = {"stack": lock.stack, "lock": lock.digest}
    (prefix / MARK).write_text(json.dumps(mark, sort_keys=True) + "\n", encoding="utf-8")
    return Environment(prefix, lock)
