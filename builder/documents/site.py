"""The site: documents, pages made from the code, and Theano's own manual, by Sphinx."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Mapping
from functools import partial
from pathlib import Path

from builder.common import paths, processes, progress
from builder.common.errors import CommandFailed, EnvironmentFailed
from builder.environment import envs
from builder.maintenance import patches
from builder.pipeline import Options

CONFIGURATION = paths.ROOT / "docs" / "site"
SITE = paths.BUILD / "site"
INDEX = "index.md"
# The stack whose Theano describes itself in the manual.
DESCRIBED = "openblas"
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
LISTED = re.compile(r"\[([^\]]+)\]\((\w[\w-]*)\.md\)")
MANUAL = """# Theano's own manual

<a href="manual/index.html">The manual of Theano 1.0.5</a>, from its release's sdist. That has no
pictures, which are left out, and install pages of its time: [this is how it is installed
here](start.md).
"""


def build(made: Mapping[str, str], manual: bool, options: Options) -> Path:
    """Make the site in ``build/site/html``.

    Args:
        made: pages made from the code, by file name.
        manual: whether to make Theano's own manual, too, if the openblas stack is built.

    Raises:
        EnvironmentFailed: Sphinx cannot be installed.
        CommandFailed: a link leads nowhere, a page is in no list of the index, or the like.
    """
    if manual and not envs.installed(DESCRIBED):
        progress.say(f"without Theano's manual: it takes ./invoke build --stack={DESCRIBED}")
        manual = False
    python = _install(paths.VENV / "bin" / "python", SITE / "venv", options)
    html, source = _empty(SITE / "html"), _empty(SITE / "source")
    pages = gather({**made, **({"manual.md": MANUAL} if manual else {})}, source)
    for name, text in pages.items():
        (source / name).write_text(text, encoding="utf-8")
    progress.say(f"making {len(pages)} pages")
    command = _sphinx(python, source, html, CONFIGURATION)
    if processes.show([*command, "--fail-on-warning"], env=processes.clean_environ()) != 0:
        raise CommandFailed("the site has what is told above", "mend it in docs/")
    if manual:
        _make_manual(html / "manual", options)
    progress.conclude(f"{progress.place(html / 'index.html')}: {len(pages)} pages")
    return html


def gather(made: Mapping[str, str], source: Path) -> dict[str, str]:
    """The text of all pages by file name; other files that they show are copied to ``source``.

    Args:
        made: pages made from the code, which the index's lists have not.
    """
    root = paths.ROOT
    names = {
        root / f"{name}.md": f"{name.lower()}.md"
        for name in ("README", "CONTRIBUTING", "CHANGELOG")
    }
    names |= {file: file.name for file in sorted((root / "docs").glob("*.md"))}

    def moved(file: Path, link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        if ":" in target:
            return link[0]
        found = (file.parent / target).resolve()
        if found not in names and found.is_file():
            shutil.copy(found, source)
        return f"]({names.get(found, found.name)}{anchor})"

    pages = {
        name: LINK.sub(partial(moved, file), file.read_text(encoding="utf-8"))
        for file, name in names.items()
    }
    titles = {name: text.partition("\n")[0].strip("# ") for name, text in made.items()}
    listed = [f"- [{title}]({name})\n" for name, title in titles.items()]
    pages[INDEX] += "".join(["\n## From the code itself\n\n", *listed])
    return {**pages, **made, INDEX: pages[INDEX] + contents(pages[INDEX])}


def contents(index: str) -> str:
    """The table of contents for the margin: the pages that the index lists, by its headings."""
    margin = ""
    for section in index.split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        listed = "".join(f"{title} <{name}>\n" for title, name in LISTED.findall(section))
        margin += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{listed}```\n"
    return margin


def serve(html: Path, port: int) -> None:
    """Serve the site to this machine until the process is interrupted."""
    progress.conclude(f"http://127.0.0.1:{port}/ until you press Ctrl-C")
    server = ["-m", "http.server", "--bind", "127.0.0.1", "--directory", str(html), str(port)]
    if processes.show([paths.VENV / "bin" / "python", *server]) != 0:
        raise CommandFailed(f"port {port} cannot be used", "choose another: --port=N")


def _install(python: Path, venv: Path, options: Options, *flags: str) -> Path:
    """What is pinned, in a virtual environment of an interpreter; its own."""
    pinned, mark = CONFIGURATION / "requirements.txt", venv / "requirements.txt"
    own = venv / "bin" / "python"
    if own.exists() and mark.exists() and mark.read_bytes() == pinned.read_bytes():
        return own
    progress.say(f"installing what makes the site into {progress.place(venv)}")
    pip: list[str | Path] = [paths.VENV / "bin" / "python", "-m", "pip", "--python", own]
    pip += ["install", *options.pip_flags(), "--only-binary=:all:"]
    try:
        processes.run([python, "-m", "venv", "--clear", "--without-pip", *flags, venv])
        processes.run([*pip, "-r", pinned])
    except CommandFailed as error:
        raise EnvironmentFailed(
            f"{venv} could not be installed:\n{error}",
            "check the network and pip's configuration, and run again",
        ) from error
    shutil.copy(pinned, mark)
    return own


def _make_manual(html: Path, options: Options) -> None:
    """Theano's own manual, in which the stack's Theano describes itself."""
    theanos = paths.ENVIRONMENTS / DESCRIBED / "bin" / "python"
    python = _install(theanos, SITE / "theano-venv", options, "--system-site-packages")
    progress.say("making Theano's manual, a minute or two")
    archive = patches.source_archive(paths.RECIPES / "theano", options.sources, options.offline)
    with tempfile.TemporaryDirectory(dir=SITE) as folder:
        unpack = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file"]
        processes.run([*unpack, archive, "--directory", folder])
        flags = {"THEANO_FLAGS": f"base_compiledir={folder}/compiled"}
        # It complains of much, of which nothing is to be mended.
        log = paths.LOGS / "manual.log"
        command = _sphinx(python, Path(folder, "doc"), html, CONFIGURATION / "manual")
        if processes.record(command, env={**processes.clean_environ(), **flags}, log=log) != 0:
            raise CommandFailed("Theano's manual was not made", f"see {progress.place(log)}")


def _sphinx(python: Path, source: Path, html: Path, configuration: Path) -> list[str | Path]:
    where: list[str | Path] = ["--conf-dir", configuration]
    where += ["--doctree-dir", SITE / "doctrees" / html.name]
    return [python, "-m", "sphinx", "--quiet", "--fresh-env", *where, source, html]


def _empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
