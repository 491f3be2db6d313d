"""Resolve a stack to exact packages, write its lock file, and install its environment."""

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
from builder.source.sources import hash_file
from builder.stack import stacks
from builder.stack.recipes import METAPACKAGE, Recipe
from builder.stack.stacks import Stack

# The last file that is written into an environment. It records the installed packages: the digest
# of a lock file, or a list. An environment is installed again if this file is missing or records
# other packages. The name does not end with .json, because conda reads each conda-meta/*.json as a
# package.
MARK = Path("conda-meta", "theano-fast")
# conda neither removes nor replaces the packages that this file names. The builder writes the file,
# because a package cannot install it.
PINNED = Path("conda-meta", "pinned")


@dataclass(frozen=True)
class Lock:
    """The content of a stack's lock file.

    Attributes:
        stack: the name of the stack.
        specs: the match specs that were resolved: the metapackage and the programs.
        packages: the exact packages, sorted by path in the channel.
    """

    stack: str
    specs: tuple[str, ...]
    packages: tuple[Package, ...]

    @property
    def digest(self) -> str:
        """The SHA-256 of the lock file's text."""
        return hashlib.sha256(format_explicit(self).encode()).hexdigest()

    @property
    def files(self) -> list[Path]:
        """The files of the packages, in the channel ``build/channel``."""
        return [paths.CHANNEL / package.path for package in self.packages]


@dataclass(frozen=True)
class Environment:
    """An installed environment: its prefix, and the lock file with its packages."""

    prefix: Path
    lock: Lock


def make_specs(stack: Stack, metapackage: Recipe) -> tuple[str, ...]:
    """Return match specs: the metapackage with its exact build, and the stack's programs."""
    output = next(item for item in metapackage.outputs if item.name == METAPACKAGE)
    return f"{output.name} =={output.version} {output.build}", *stack.programs


def install_specs(packages: Iterable[Package], specs: Sequence[str], prefix: Path) -> None:
    """Install packages that satisfy ``specs`` into ``prefix``, unless they are installed already.

    Args:
        packages: the packages to select from.
        specs: match specs.
        prefix: the environment. If it has other packages, it is removed first.

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
    """Select the packages of an environment that satisfies all specs.

    Returns:
        The selected packages and their dependencies, sorted by path in the channel.

    Raises:
        CommandFailed: the packages do not satisfy the specs. The message has the reason.
    """
    by_path = {package.path: package for package in packages}
    with tempfile.TemporaryDirectory() as directory:
        channel.add_packages(by_path.values(), Path(directory))
        selected_paths = solver.call("solve", channel=directory, specs=list(specs))
    return tuple(by_path[path] for path in sorted(selected_paths))


def resolve_lock(stack: Stack, metapackage: Recipe, packages: Iterable[Package]) -> Lock:
    """Resolve a stack to exact packages.

    Args:
        metapackage: the recipe of the stack's metapackage.
        packages: the packages to select from.

    Raises:
        SolveFailed: the packages cannot be installed on this host. The message has the reason.
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
    """Return the text of the lock file, in conda's explicit format.

    The placeholder CHANNEL stands for the channel's URL.
    """
    lines = [
        *_format_instructions(lock, "24.9", LOCK_NAME, f"{lock.stack}.lock"),
        f"#   conda create --name {_format_name(lock)} --file {lock.stack}.lock",
        "# With file://, conda does not verify hashes; docs/conda.md has a command for this.",
        "# platform: linux-64",
        "@EXPLICIT",
    ]
    lines += [f"CHANNEL/{package.path}#sha256:{package.sha256}" for package in lock.packages]
    return "\n".join(lines) + "\n"


LOCK_NAME = "conda-linux-64.lock"


def format_environment_yml(lock: Lock) -> str:
    """Return the text of ``environment.yml``, with the match specs of the lock file.

    The placeholder CHANNEL stands for the channel's URL.
    """
    lines = [
        # Require conda 25.9. Older versions add Anaconda's channels unless the file lists
        # `nodefaults`, and newer versions fail on `nodefaults`.
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


def _format_instructions(lock: Lock, conda: str, name: str, copy: str) -> list[str]:
    """Return the comments that explain how to write the channel's URL into a copy of a file.

    Args:
        conda: the oldest version of conda that can read the file.
        name: the name of the file.
        copy: the name of the copy.
    """
    return [
        f"# Written by: invoke lock {stacks.format_flags(lock.stack)}",
        f"# Replace CHANNEL by the channel's URL, and install with conda {conda} or newer:",
        f"#   sed 's|CHANNEL|file:///srv/channel|' {name} > {copy}",
    ]


def _format_name(lock: Lock) -> str:
    """Return the environment's name for conda, such as theano-openblas."""
    return f"theano-{lock.stack}"


def write_lock(lock: Lock, directory: Path, address: str = "") -> None:
    """Write the lock file and ``environment.yml`` into ``directory``.

    Keep a file that has the same text.

    Args:
        address: the channel's URL, which replaces the placeholder CHANNEL and the comments that
            explain the replacement; "" to keep both.
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
    """Replace the placeholder CHANNEL by a URL; remove all comments except the platform's."""
    lines = text.splitlines(keepends=True)
    content = [line for line in lines if line[0] != "#" or line == "# platform: linux-64\n"]
    return "".join(content).replace("CHANNEL", address)


def describe_differences(lock: Lock, directory: Path) -> str:
    """Compare the packages of ``lock`` with the lock file in ``directory``.

    Returns:
        A diff of the packages, as text; "" if the packages are the same.
    """
    file = directory / LOCK_NAME
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    lines = difflib.unified_diff(
        before.splitlines(), format_explicit(lock).splitlines(), n=0, lineterm=""
    )
    if not (changes := [line for line in lines if "CHANNEL/" in line]):
        return ""
    return f"the packages in {file} (-) differ from the built packages (+):\n" + "\n".join(changes)


def check_lock(lock: Lock, directory: Path) -> None:
    """Require that ``lock`` has the same packages as the lock file in ``directory``.

    Raises:
        NotReproducible: the packages differ. The message contains the diff.
    """
    if differences := describe_differences(lock, directory):
        raise NotReproducible(
            differences,
            "if recipes, builder or compilers changed, run ./invoke lock "
            f"{stacks.format_flags(lock.stack)} and commit the files that it writes; "
            "otherwise run ./invoke rebuild, which names the files that differ",
        )


def read_installed_digest(stack: str) -> str | None:
    """Return the digest of the lock file whose packages are in ``build/envs/<stack>``.

    Return None if the environment does not exist or is incomplete.
    """
    try:
        mark = (paths.ENVIRONMENTS / stack / MARK).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return str(json.loads(mark)["lock"])


def require_installed(stack: str) -> None:
    """Require that the environment ``build/envs/<stack>`` is complete.

    Raises:
        EnvironmentFailed: the environment does not exist or is incomplete. The hint is the command
            that builds it.
    """
    if read_installed_digest(stack) is None:
        raise EnvironmentFailed(
            f"{paths.ENVIRONMENTS / stack} is not built",
            f"./invoke build {stacks.format_flags(stack)}",
        )


def get_python_path(environment: str) -> Path:
    """Return the path of the Python interpreter in ``build/envs/<environment>``."""
    return paths.ENVIRONMENTS / environment / "bin" / "python"


def find_site_packages(prefix: Path) -> Path:
    """Find the site-packages directory of an environment with Python 3."""
    return next(prefix.glob("lib/python3.*/site-packages"))


def install_packages(
    files: Iterable[Path], prefix: Path, description: str, final_prefix: Path | None = None
) -> None:
    """Install packages into an empty directory, and byte-compile their Python modules.

    Args:
        files: the files of the packages.
        prefix: the directory.
        description: the name of the environment in error messages.
        final_prefix: the prefix at which the environment will be used; None for ``prefix``.

    Raises:
        EnvironmentFailed: the installation failed.
    """
    try:
        solver.call(
            "install",
            files=[str(file) for file in files],
            prefix=str(prefix),
            cache=str(paths.get_engine_cache() / "pkgs"),
            final_prefix=str(final_prefix) if final_prefix else None,
        )
    except CommandFailed as error:
        raise EnvironmentFailed(
            f"{description} could not be installed:\n{error}", "remove the cause and run again"
        ) from error
    _compile_bytecode(prefix, final_prefix or prefix)


def _compile_bytecode(prefix: Path, final_prefix: Path) -> None:
    """Byte-compile the modules in site-packages that have no bytecode.

    If a module has no bytecode and the user cannot write to the environment, Python compiles the
    module in each process that imports it. The bytecode depends only on the modules and
    ``final_prefix``: it contains no times, and one process compiles all modules in order.
    """
    modules = [
        file
        for file in sorted(prefix.glob("lib/python3*/site-packages/**/*.py"))
        if not any(file.parent.glob(f"__pycache__/{file.stem}.cpython-*.pyc"))
    ]
    if not modules:
        return
    # Without -B, Python would write bytecode with times for the modules that compileall imports.
    command: list[str | Path] = [prefix / "bin" / "python", "-I", "-B", "-m", "compileall"]
    command += ["-q", "--invalidation-mode", "checked-hash", "-s", prefix, "-p", final_prefix]
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as module_list:
        module_list.writelines(f"{module}\n" for module in modules)
        module_list.flush()
        # Ignore the exit code: compileall fails on files with intended syntax errors, such as test
        # data.
        run([*command, "-i", module_list.name], check=False)


def hash_environment(prefix: Path) -> str:
    """Compute the SHA-256 of the paths, modes and contents of all installed files.

    The same packages at the same prefix give the same digest. The records in ``conda-meta`` do not
    count, because they contain paths of this host.
    """
    records = (prefix / "conda-meta").glob("*.json")
    names = [name for file in records for name in json.loads(file.read_text("utf-8"))["files"]]
    digest = hashlib.sha256()
    for name in sorted(names):
        file = prefix / name
        content = str(file.readlink()) if file.is_symlink() else hash_file(file)
        digest.update(f"{name} {file.lstat().st_mode:o} {content}\n".encode())
    return digest.hexdigest()


def format_pin(lock: Lock) -> str:
    """Return the text of ``PINNED``: the stack's metapackage with any version and build number."""
    build = lock.specs[0].split()[-1]
    return f"{METAPACKAGE} * *_{build.partition('_')[2]}\n"


def create_environment(lock: Lock) -> Environment:
    """Install the packages of ``lock`` into ``build/envs/<stack>``, unless they are installed.

    Raises:
        EnvironmentFailed: the installation failed.
    """
    prefix = paths.ENVIRONMENTS / lock.stack
    if read_installed_digest(lock.stack) == lock.digest:
        return Environment(prefix, lock)
    if prefix.exists():
        # Rename the old environment first: an interrupted removal must not leave an environment
        # with MARK, which would look complete.
        trash = Path(tempfile.mkdtemp(prefix=f".{lock.stack}-", dir=prefix.parent))
        prefix.replace(trash / "old")
        shutil.rmtree(trash)
    prefix.mkdir(parents=True)
    install_packages(lock.files, prefix, str(prefix))
    (prefix / PINNED).write_text(format_pin(lock), encoding="utf-8")
    mark = {"stack": lock.stack, "lock": lock.digest}
    (prefix / MARK).write_text(json.dumps(mark, sort_keys=True) + "\n", encoding="utf-8")
    return Environment(prefix, lock)
