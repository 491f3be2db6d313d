"""Build the documentation site with Sphinx: documents, generated pages, Theano's own manual."""

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
from builder.options import Options

CONFIGURATION = paths.ROOT / "docs" / "site"
SITE = paths.BUILD / "site"
INDEX = "index.md"
# The stack with which Sphinx builds Theano's manual.
DESCRIBED = "openblas"
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
LISTED = re.compile(r"\[([^\]]+)\]\((\w[\w-]*)\.md\)")
MANUAL = """# Theano's own manual

<a href="manual/index.html">The manual of Theano 1.0.5</a>, built from the source
distribution, which has no pictures. Its install pages are out of date: read [this
page](start.md) instead.
"""


def build_site(made: Mapping[str, str], manual: bool, options: Options) -> Path:
    """Build the site in ``build/site/html``; return that directory.

    Args:
        made: pages generated from the code, by file name.
        manual: also build Theano's own manual, if the openblas stack is built.

    Raises:
        EnvironmentFailed: Sphinx cannot be installed.
        CommandFailed: Sphinx found an error, such as a broken link or a page that is not indexed.
    """
    if manual and not envs.read_installed_digest(DESCRIBED):
        progress.say(f"without Theano's manual: it needs ./invoke build --stack={DESCRIBED}")
        manual = False
    python = _install_sphinx(paths.VENV / "bin" / "python", SITE / "venv", options)
    html, source = _make_empty(SITE / "html"), _make_empty(SITE / "source")
    pages = gather_pages({**made, **({"manual.md": MANUAL} if manual else {})}, source)
    for name, text in pages.items():
        (source / name).write_text(text, encoding="utf-8")
    progress.say(f"building {len(pages)} pages")
    command = _make_sphinx_command(python, source, html, CONFIGURATION)
    if (
        processes.run_on_terminal([*command, "--fail-on-warning"], env=processes.clean_environ())
        != 0
    ):
        raise CommandFailed("Sphinx found the errors above", "correct them in docs/")
    if manual:
        _make_manual(html / "manual", options)
    progress.conclude(f"{progress.display_path(html / 'index.html')}: {len(pages)} pages")
    return html


def gather_pages(made: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return the texts of all pages by file name; copy the files they link to ``source``.

    Args:
        made: generated pages, which are added to the index.
    """
    root = paths.ROOT
    names = {
        root / f"{name}.md": f"{name.lower()}.md"
        for name in ("README", "CONTRIBUTING", "CHANGELOG")
    }
    names |= {file: file.name for file in sorted((root / "docs").glob("*.md"))}

    def rewrite_link(file: Path, link: re.Match[str]) -> str:
        target, anchor = link[1], link[2] or ""
        if ":" in target:
            return link[0]
        linked_file = (file.parent / target).resolve()
        if linked_file not in names and linked_file.is_file():
            shutil.copy(linked_file, source)
        return f"]({names.get(linked_file, linked_file.name)}{anchor})"

    pages = {
        name: LINK.sub(partial(rewrite_link, file), file.read_text(encoding="utf-8"))
        for file, name in names.items()
    }
    titles = {name: text.partition("\n")[0].strip("# ") for name, text in made.items()}
    items = [f"- [{title}]({name})\n" for name, title in titles.items()]
    pages[INDEX] += "".join(["\n## Generated from the code\n\n", *items])
    return {**pages, **made, INDEX: pages[INDEX] + format_contents(pages[INDEX])}


def format_contents(index: str) -> str:
    """Format the table of contents for the margin from the lists of pages in the index."""
    margin = ""
    for section in index.split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        entries = "".join(f"{title} <{name}>\n" for title, name in LISTED.findall(section))
        margin += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{entries}```\n"
    return margin


def serve_site(html: Path, port: int) -> None:
    """Serve the site to this machine until the process is interrupted."""
    progress.conclude(f"http://127.0.0.1:{port}/ until you press Ctrl-C")
    server = ["-m", "http.server", "--bind", "127.0.0.1", "--directory", str(html), str(port)]
    if processes.run_on_terminal([paths.VENV / "bin" / "python", *server]) != 0:
        raise CommandFailed(f"port {port} cannot be used", "choose another port: --port=N")


def _install_sphinx(python: Path, venv: Path, options: Options, *flags: str) -> Path:
    """Install Sphinx into a virtual environment; return the environment's interpreter.

    Args:
        python: the interpreter of the virtual environment.
        venv: the directory.
        flags: flags of ``python -m venv``.
    """
    pinned, mark = CONFIGURATION / "requirements.txt", venv / "requirements.txt"
    own = venv / "bin" / "python"
    if own.exists() and mark.exists() and mark.read_bytes() == pinned.read_bytes():
        return own
    progress.say(f"installing Sphinx into {progress.display_path(venv)}")
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
    """Build Theano's own manual, with the stack's Theano for its docstrings."""
    theanos = paths.ENVIRONMENTS / DESCRIBED / "bin" / "python"
    python = _install_sphinx(theanos, SITE / "theano-venv", options, "--system-site-packages")
    progress.say("building Theano's manual: 1 to 2 minutes")
    archive = patches.fetch_source_archive(
        paths.RECIPES / "theano", options.sources, options.offline
    )
    with tempfile.TemporaryDirectory(dir=SITE) as folder:
        unpack = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file"]
        processes.run([*unpack, archive, "--directory", folder])
        flags = {"THEANO_FLAGS": f"base_compiledir={folder}/compiled"}
        # Sphinx prints many warnings about the manual. Hide them, because the manual does not
        # change.
        log = paths.LOGS / "manual.log"
        command = _make_sphinx_command(python, Path(folder, "doc"), html, CONFIGURATION / "manual")
        if processes.run_logged(command, env={**processes.clean_environ(), **flags}, log=log) != 0:
            raise CommandFailed(
                "Theano's manual was not built", f"see {progress.display_path(log)}"
            )


def _make_sphinx_command(
    python: Path, source: Path, html: Path, configuration: Path
) -> list[str | Path]:
    where: list[str | Path] = ["--conf-dir", configuration]
    where += ["--doctree-dir", SITE / "doctrees" / html.name]
    return [python, "-m", "sphinx", "--quiet", "--fresh-env", *where, source, html]


def _make_empty(folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
