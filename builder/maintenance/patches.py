"""A recipe's patches as commits: its source as a git work tree, and back."""

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

UPSTREAM = "upstream"
# The line of a commit's message that says which file the patch is, below `patches`.
TRAILER = "Patch: "
# Files of ours that a recipe lays over the source.
OURS = "src"
# Nothing that the user has configured changes a patch.
PLAIN = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "LC_ALL": "C.UTF-8"}
NAME = re.compile(r"[a-z0-9][\w.-]*(/[a-z0-9][\w.-]*)?\.patch", re.IGNORECASE)


@dataclass(frozen=True)
class Patch:
    """A patch: its file below ``patches``, what its header says, and the difference."""

    name: str
    header: str
    diff: str

    @property
    def text(self) -> str:
        """As it is in its file."""
        return f"{self.header}\n---\n{self.diff}"


def read(recipe: Path, name: str) -> Patch:
    """The patch in ``recipe/patches/name``.

    Raises:
        ConfigurationError: it is not there, or no patch.
    """
    try:
        text = (recipe / "patches" / name).read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"recipes/{recipe.name}: {error}") from error
    header, found, rest = text.partition("\n---\ndiff --git ")
    if not found:
        hint = "`---` and the output of git diff follow its header"
        raise ConfigurationError(f"recipes/{recipe.name}/patches/{name} is no patch", hint)
    return Patch(name, header, f"diff --git {rest}")


def listed(recipe: Path) -> list[str]:
    """The patches that ``recipe/recipe.yaml`` names, in its order."""
    text = (recipe / "recipe.yaml").read_text(encoding="utf-8")
    return re.findall(r"^ +- patches/(\S+)$", text, flags=re.MULTILINE)


def place(recipe: Path) -> Path:
    """Where a recipe's work tree is."""
    return paths.BUILD / "patches" / recipe.name


def open_tree(name: str, offline: bool = False) -> Path:
    """Make a work tree of what a recipe's patches change, one commit a patch, our files as links.

    Args:
        name: the recipe's.
        offline: download nothing.

    Raises:
        UsageError: there is one with what no patch has, or the recipe has no patches.
        HostToolMissing: there is no git.
    """
    recipe = _known(name)
    tree = place(recipe)
    if tree.exists():
        _require_saved(recipe, tree)
    archive, names = source_archive(recipe, None, offline), listed(recipe)
    tree.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=tree.parent) as directory:
        new = Path(directory) / name
        new.mkdir()
        unpack = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file"]
        run([*unpack, archive, "--directory", new])
        _git(new, "init", "--quiet", "--initial-branch=patches")
        _git(new, "add", "--all", "--force")
        _commit(new, UPSTREAM)
        _git(new, "tag", UPSTREAM)
        for each in names:
            patch = read(recipe, each)
            _git(new, "apply", "--index", "--whitespace=nowarn", recipe / "patches" / each)
            _commit(new, f"{patch.header}\n\n{TRAILER}{each}")
        _link(recipe / OURS, new)
        shutil.rmtree(tree, ignore_errors=True)
        new.rename(tree)
    progress.conclude(
        f"{name}: {len(names)} patches are commits in {progress.place(tree)}\n"
        f"  git commit, --amend, rebase -i {UPSTREAM}: as usual; then ./invoke patches "
        f"--recipe={name} --save"
    )
    return tree


def save_tree(name: str) -> list[str]:
    """Write the commits of a recipe's work tree to its patches, and their order to its recipe.

    Args:
        name: the recipe's.

    Returns:
        The files that changed, came or went.

    Raises:
        UsageError: there is no work tree, it has changes that are not committed, or a commit names
            no patch, adds a file or is of a merge.
    """
    recipe = _known(name)
    tree = place(recipe)
    if not (tree / ".git").is_dir():
        opens = f"./invoke patches --recipe={name}"
        raise UsageError(f"there is no work tree {progress.place(tree)}", f"open one: {opens}")
    if changes := _git(tree, "status", "--porcelain"):
        raise UsageError(
            f"{progress.place(tree)} has changes that are not committed:\n{changes.rstrip()}",
            "commit them, most often into the patch that they belong to: git commit "
            f"--fixup=COMMIT, then git rebase --interactive --autosquash {UPSTREAM}",
        )
    found = list(_commits(tree))
    names = [patch.name for patch in found]
    if twice := sorted({each for each in names if names.count(each) > 1}):
        raise UsageError(f"two commits are the same patch: {', '.join(twice)}", "squash them")
    root, before = recipe / "patches", _written(recipe)
    after = {patch.name: patch.text for patch in found}
    changed = [each for each in {**before, **after} if before.get(each) != after.get(each)]
    for each in changed:
        if each in after:
            (root / each).parent.mkdir(exist_ok=True)
            (root / each).write_text(after[each], encoding="utf-8")
        else:
            (root / each).unlink()
    if _order(recipe, names):
        changed.append("recipe.yaml")
    told = ", ".join(sorted(changed)) or "nothing changed"
    progress.conclude(f"{name}: {len(found)} patches: {told}")
    return sorted(changed)


def _known(name: str) -> Path:
    recipe = paths.RECIPES / name
    if not (recipe / "recipe.yaml").is_file() or not listed(recipe):
        known = (file.parent for file in sorted(paths.RECIPES.glob("*/recipe.yaml")))
        names = ", ".join(each.name for each in known if listed(each))
        raise UsageError(f"no recipe {name!r} has patches", f"choose one of: {names}")
    return recipe


def source_archive(path: Path, directory: Path | None, offline: bool) -> Path:
    """The source that a recipe's patches are of: the first of the recipe's."""
    variant = recipes.variant(stacks.load_all()[0])
    recipe = recipes.render(path, variant)
    first = Path(str(recipe.rendered[0]["source"][0]["path"])).name
    wanted = [source for source in recipe.sources if source.file == first]
    return sources.fetch(wanted, directory=directory, offline=offline)[0]


def _written(recipe: Path) -> dict[str, str]:
    """The text of each patch of a recipe's, listed or not."""
    root = recipe / "patches"
    files = sorted(root.rglob("*.patch"))
    return {str(file.relative_to(root)): file.read_text(encoding="utf-8") for file in files}


def _require_saved(recipe: Path, tree: Path) -> None:
    try:
        written = _written(recipe)
        lost = _git(tree, "status", "--porcelain")
        lost += "".join(
            f"{patch.name}\n" for patch in _commits(tree) if written.get(patch.name) != patch.text
        )
    except UsageError as error:
        lost = str(error)
    if lost:
        raise UsageError(
            f"{progress.place(tree)} has what no patch has:\n{lost.rstrip()}",
            f"./invoke patches --recipe={recipe.name} --save, or remove the directory",
        )


def _commits(tree: Path) -> Iterator[Patch]:
    """The commits since the upstream's as patches, in order."""
    for commit in _git(tree, "rev-list", "--reverse", f"{UPSTREAM}..HEAD").split():
        message = _git(tree, "show", "--no-patch", "--format=%B", commit).rstrip()
        header, _, name = message.rpartition(f"\n\n{TRAILER}")
        title = message.splitlines()[0]
        if not NAME.fullmatch(name):
            raise UsageError(
                f"the commit {title!r} does not say which patch it is",
                f"end its message with a line of its own: {TRAILER}THEME/NAME.patch",
            )
        difference = [
            *("diff-tree", "-p", "--no-commit-id", "--no-color", "--no-ext-diff", "--no-renames"),
            *("--unified=3", "--full-index", "--src-prefix=a/", "--dst-prefix=b/"),
        ]
        diff = _git(tree, *difference, commit)
        if not diff or "\nnew file mode " in diff:
            what = "adds a file" if diff else "changes nothing, or merges"
            hint = f"what is new is a file of its own, below {OURS}/ in the recipe"
            raise UsageError(f"the commit {title!r} {what}", hint)
        yield Patch(name, header, re.sub(r"^index .*\n", "", diff, flags=re.MULTILINE))


def _order(recipe: Path, names: list[str]) -> bool:
    """Name the patches in recipe.yaml, where it named them; whether that changed it."""
    file = recipe / "recipe.yaml"
    text = file.read_text(encoding="utf-8")
    named = re.compile(r"((?<=\n) +- patches/\S+\n)+")
    found = named.search(text)
    assert found is not None, "a recipe without patches is refused"
    indent = found[0][: found[0].index("-")]
    lines = "".join(f"{indent}- patches/{name}\n" for name in names)
    file.write_text(text[: found.start()] + lines + text[found.end() :], encoding="utf-8")
    return lines != found[0]


def _link(ours: Path, tree: Path) -> None:
    """Our files in their places, where git does not see them."""
    ignored = []
    for file in sorted(ours.rglob("*")):
        if file.is_file() and "__pycache__" not in file.parts:
            name = file.relative_to(ours)
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            (tree / name).symlink_to(file)
            ignored.append(f"/{name}\n")
    with (tree / ".git" / "info" / "exclude").open("a", encoding="utf-8") as exclude:
        exclude.writelines(ignored)


def _commit(tree: Path, message: str) -> None:
    who = ["-c", "user.name=theano-fast", "-c", "user.email=theano-fast@localhost"]
    file = tree / ".git" / "message"
    file.write_text(message, encoding="utf-8")
    _git(tree, *who, "commit", "--quiet", "--cleanup=verbatim", "--file", file)


def _git(tree: Path, *arguments: str | os.PathLike[str]) -> str:
    if shutil.which("git") is None:
        raise HostToolMissing("there is no git on PATH", "install it: apt-get install git")
    environ = {key: value for key, value in os.environ.items() if not key.startswith("GIT_")}
    return run(["git", *arguments], cwd=tree, env={**environ, **PLAIN}).output
