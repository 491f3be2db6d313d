"""Convert the patches of a recipe to commits in a git work tree, and convert the commits back."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from builder.common import paths, progress
from builder.common.errors import ConfigurationError, HostToolMissing, UsageError
from builder.common.processes import run
from builder.source import sources
from builder.stack import recipes, stacks

# The tag and the message of the commit with the unpatched source.
UPSTREAM = "upstream"
# The start of the line in a commit's message that names the patch file below `patches`.
TRAILER = "Patch: "
# The directory of a recipe's own files, which are copied over the source.
OWN_FILES = "src"
# Environment variables for git: the user's configuration must not change a patch.
GIT_ENVIRON = {
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_SYSTEM": os.devnull,
    "LC_ALL": "C.UTF-8",
}
# The name of a patch file below `patches`, such as build/one.patch or one.patch.
NAME = re.compile(r"[a-z0-9][\w.-]*(/[a-z0-9][\w.-]*)?\.patch", re.IGNORECASE)


@dataclass(frozen=True)
class Patch:
    """A patch.

    Attributes:
        name: its file below ``patches``, such as ``results/integer-maxima.patch``.
        header: the commit's message, without the line that names the file.
        diff: the output of git diff.
    """

    name: str
    header: str
    diff: str

    @property
    def text(self) -> str:
        """The content of the patch file."""
        return f"{self.header}\n---\n{self.diff}"

    def count_lines(self, sign: str) -> int:
        """Count the lines that the patch adds ("+") or removes ("-")."""
        return sum(
            line.startswith(sign) and not line.startswith(f"{sign * 3} ")
            for line in self.diff.splitlines()
        )


def read_patch(recipe: Path, name: str) -> Patch:
    """Read the patch ``recipe/patches/name``.

    Raises:
        ConfigurationError: the file does not exist, or it is not a patch.
    """
    try:
        text = (recipe / "patches" / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"recipes/{recipe.name}: {error}") from error
    header, separator, diff = text.partition("\n---\ndiff --git ")
    if not separator:
        hint = "write a line `---` and the output of git diff after the header"
        raise ConfigurationError(f"recipes/{recipe.name}/patches/{name} is not a patch", hint)
    return Patch(name, header, f"diff --git {diff}")


def list_patches(recipe: Path) -> list[str]:
    """List the names of the patches in ``recipe/recipe.yaml``, in order."""
    text = (recipe / "recipe.yaml").read_text(encoding="utf-8")
    return re.findall(r"^ +- patches/(\S+)$", text, flags=re.MULTILINE)


def get_work_tree(recipe: Path) -> Path:
    """Return the path of a recipe's work tree, ``build/patches/<recipe>``."""
    return paths.BUILD / "patches" / recipe.name


def open_tree(name: str, offline: bool = False) -> Path:
    """Create a git work tree of a recipe's source, with one commit for each patch.

    The files of the recipe's ``src`` are symlinks in the work tree, which git ignores.

    Args:
        name: the recipe.
        offline: download nothing.

    Returns:
        The path of the work tree.

    Raises:
        UsageError: a work tree with unsaved changes exists, or the recipe has no patches.
        HostToolMissing: git is not on PATH.
    """
    recipe = _find_recipe(name)
    tree = get_work_tree(recipe)
    if tree.exists():
        _require_saved(recipe, tree)
    archive, names = fetch_source_archive(recipe, None, offline), list_patches(recipe)
    tree.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tree.parent) as directory:
        new = Path(directory) / name
        new.mkdir()
        unpack = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file"]
        run([*unpack, archive, "--directory", new])
        run_git(new, "init", "--quiet", "--initial-branch=patches")
        run_git(new, "add", "--all", "--force")
        _commit(new, UPSTREAM)
        run_git(new, "tag", UPSTREAM)
        for patch_name in names:
            patch = read_patch(recipe, patch_name)
            run_git(new, "apply", "--index", "--whitespace=nowarn", recipe / "patches" / patch_name)
            _commit(new, f"{patch.header}\n\n{TRAILER}{patch_name}")
        _link_own_files(recipe / OWN_FILES, new)
        shutil.rmtree(tree, ignore_errors=True)
        new.rename(tree)
    progress.conclude(
        f"{name}: {len(names)} patches are commits in {progress.display_path(tree)}\n"
        f"  change them with git commit --amend or git rebase -i {UPSTREAM}; then ./invoke patches "
        f"--recipe={name} --save"
    )
    return tree


def save_tree(name: str) -> list[str]:
    """Write the commits of a recipe's work tree as patches, and their order into recipe.yaml.

    Args:
        name: the recipe.

    Returns:
        The names of the patches that were changed, added or removed. ``recipe.yaml`` is included if
        the order changed.

    Raises:
        UsageError: the work tree does not exist or has uncommitted changes; a commit names no
            patch, adds a file, is empty or is a merge; or two commits name the same patch.
    """
    recipe = _find_recipe(name)
    tree = get_work_tree(recipe)
    if not (tree / ".git").is_dir():
        command = f"./invoke patches --recipe={name}"
        raise UsageError(
            f"the work tree {progress.display_path(tree)} does not exist", f"create it: {command}"
        )
    if changes := run_git(tree, "status", "--porcelain"):
        raise UsageError(
            f"{progress.display_path(tree)} has uncommitted changes:\n{changes.rstrip()}",
            "commit them; to change the patch of a commit: git commit "
            f"--fixup=COMMIT, then git rebase --interactive --autosquash {UPSTREAM}",
        )
    patches = list(_read_commits(tree))
    names = [patch.name for patch in patches]
    if duplicates := sorted({patch for patch in names if names.count(patch) > 1}):
        raise UsageError(f"two commits name the same patch: {', '.join(duplicates)}", "squash them")
    root, before = recipe / "patches", _read_patch_files(recipe)
    after = {patch.name: patch.text for patch in patches}
    changed = [file for file in {**before, **after} if before.get(file) != after.get(file)]
    for file in changed:
        if file in after:
            (root / file).parent.mkdir(exist_ok=True)
            (root / file).write_text(after[file], encoding="utf-8")
        else:
            (root / file).unlink()
    if _write_order(recipe, names):
        changed.append("recipe.yaml")
    summary = ", ".join(sorted(changed)) or "nothing changed"
    progress.conclude(f"{name}: {len(patches)} patches: {summary}")
    return sorted(changed)


def _find_recipe(name: str) -> Path:
    """Return the directory of a recipe with patches; raise UsageError for any other recipe."""
    recipe = paths.RECIPES / name
    if not (recipe / "recipe.yaml").is_file() or not list_patches(recipe):
        directories = [file.parent for file in sorted(paths.RECIPES.glob("*/recipe.yaml"))]
        names = ", ".join(path.name for path in directories if list_patches(path))
        raise UsageError(f"no recipe {name!r} has patches", f"choose one of: {names}")
    return recipe


def fetch_source_archive(path: Path, directory: Path | None, offline: bool) -> Path:
    """Fetch the archive to which a recipe's patches apply: the first source in recipe.yaml.

    Args:
        path: the directory of the recipe.
        directory: a directory to search before any download; None for none.
        offline: download nothing.

    Returns:
        The archive in the source cache.
    """
    variant = recipes.make_variant(stacks.load_all()[0])
    recipe = recipes.render(path, variant)
    first = Path(str(recipe.rendered[0]["source"][0]["path"])).name
    archives = [source for source in recipe.sources if source.file == first]
    return sources.fetch(archives, directory=directory, offline=offline)[0]


def _read_patch_files(recipe: Path) -> dict[str, str]:
    """Read all patch files in a recipe's directory; return their texts by name."""
    root = recipe / "patches"
    files = sorted(root.rglob("*.patch"))
    return {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}


def _require_saved(recipe: Path, tree: Path) -> None:
    """Require that the recipe's patches contain all changes of a work tree, or raise UsageError."""
    try:
        written = _read_patch_files(recipe)
        unsaved = run_git(tree, "status", "--porcelain")
        unsaved += "".join(
            f"{patch.name}\n"
            for patch in _read_commits(tree)
            if written.get(patch.name) != patch.text
        )
    except UsageError as error:
        unsaved = str(error)
    if unsaved:
        raise UsageError(
            f"{progress.display_path(tree)} has unsaved changes:\n{unsaved.rstrip()}",
            f"./invoke patches --recipe={recipe.name} --save, or remove the directory",
        )


def _read_commits(tree: Path) -> Iterator[Patch]:
    """Yield the commits after the upstream commit as patches, in order."""
    for commit in run_git(tree, "rev-list", "--reverse", f"{UPSTREAM}..HEAD").split():
        message = run_git(tree, "show", "--no-patch", "--format=%B", commit).rstrip()
        header, _, name = message.rpartition(f"\n\n{TRAILER}")
        title = message.splitlines()[0]
        if not NAME.fullmatch(name):
            raise UsageError(
                f"the commit {title!r} names no patch file",
                f"end its message with a line {TRAILER}THEME/NAME.patch",
            )
        difference = [
            *("diff-tree", "-p", "--no-commit-id", "--no-color", "--no-ext-diff", "--no-renames"),
            *("--unified=3", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"),
        ]
        diff = run_git(tree, *difference, commit)
        if not diff or "\nnew file mode " in diff:
            defect = "adds a file" if diff else "is empty or a merge"
            hint = f"put new files below {OWN_FILES}/ of the recipe"
            raise UsageError(f"the commit {title!r} {defect}", hint)
        yield Patch(name, header, re.sub(r"^index .*\n", "", diff, flags=re.MULTILINE))


def _write_order(recipe: Path, names: list[str]) -> bool:
    """Replace the list of patches in recipe.yaml by ``names``; return whether the list changed."""
    file = recipe / "recipe.yaml"
    text = file.read_text(encoding="utf-8")
    pattern = re.compile(r"((?<=\n) +- patches/\S+\n)+")
    old_list = pattern.search(text)
    assert old_list is not None, "a recipe without patches is refused"
    indent = old_list[0][: old_list[0].index("-")]
    lines = "".join(f"{indent}- patches/{name}\n" for name in names)
    file.write_text(text[: old_list.start()] + lines + text[old_list.end() :], encoding="utf-8")
    return lines != old_list[0]


def _link_own_files(directory: Path, tree: Path) -> None:
    """Create symlinks to a recipe's own files in the work tree, and let git ignore the symlinks."""
    ignored = []
    for file in sorted(directory.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            name = file.relative_to(directory)
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).symlink_to(file)
            ignored.append(f"/{name}\n")
    with (tree / ".git" / "info" / "exclude").open("a", encoding="utf-8") as exclude:
        exclude.writelines(ignored)


def _commit(tree: Path, message: str) -> None:
    author = ["-c", "user.name=theano-fast", "-c", "user.email=theano-fast@localhost"]
    file = tree / ".git" / "message"
    file.write_text(message, encoding="utf-8")
    run_git(tree, *author, "commit", "--quiet", "--cleanup=verbatim", "--file", file)


def run_git(tree: Path, *arguments: str | os.PathLike[str]) -> str:
    """Run git in ``tree`` without the user's configuration; return its output.

    Raises:
        HostToolMissing: git is not on PATH.
        CommandFailed: git failed.
    """
    if shutil.which("git") is None:
        raise HostToolMissing("git is not on PATH", "as root: apt-get install git")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return run(["git", *arguments], cwd=tree, env={**environ, **GIT_ENVIRON}).output
