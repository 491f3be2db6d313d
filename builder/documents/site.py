"""Build the documentation site with Sphinx: documents, generated pages and Theano's manual."""

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
# Sphinx imports the Theano of this stack to build Theano's manual.
MANUAL_STACK = "openblas"
# The end of a Markdown link: its target and its anchor.
LINK = re.compile(r"\]\(([^)\s#]+)(#[^)\s]*)?\)")
# A link to a page in the index: its title, and its file name without ".md".
INDEX_ENTRY = re.compile(r"\[([^\]]+)\]\((\w[\w-]*)\.md\)")
MANUAL = """# Theano's own manual

Read <a href="manual/index.html">the manual of Theano 1.0.5</a>. It lacks the pictures,
because Theano's source distribution does not contain them. Its pages on installation are
out of date: read [Start](start.md) instead.
"""


def build_site(generated_pages: Mapping[str, str], manual: bool, options: Options) -> Path:
    """Build the site in ``build/site/html``; return the path of this directory.

    Args:
        generated_pages: the Markdown of the pages generated from the code, by file name.
        manual: also build Theano's manual, if the environment of MANUAL_STACK is installed.

    Raises:
        EnvironmentFailed: Sphinx cannot be installed.
        CommandFailed: Sphinx found an error, such as a broken link or a page that is not indexed.
    """
    if manual and not envs.read_installed_digest(MANUAL_STACK):
        progress.say(
            f"the site has no Theano manual: build it with ./invoke build --stack={MANUAL_STACK}"
        )
        manual = False
    python = _install_sphinx(paths.VENV / "bin" / "python", SITE / "venv", options)
    html, source = _create_empty_folder(SITE / "html"), _create_empty_folder(SITE / "source")
    manual_page = {"manual.md": MANUAL} if manual else {}
    pages = gather_pages({**generated_pages, **manual_page}, source)
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


def gather_pages(generated_pages: Mapping[str, str], source: Path) -> dict[str, str]:
    """Return the Markdown of all pages, by file name; adapt links to the pages' file names.

    Args:
        generated_pages: the Markdown of generated pages, which are added to the index.
        source: the directory for copies of linked pictures and other linked files.
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
    titles = {name: text.partition("\n")[0].strip("# ") for name, text in generated_pages.items()}
    items = [f"- [{title}]({name})\n" for name, title in titles.items()]
    pages[INDEX] += "".join(["\n## Generated from the code\n\n", *items])
    return {**pages, **generated_pages, INDEX: pages[INDEX] + format_contents(pages[INDEX])}


def format_contents(index: str) -> str:
    """Format the table of contents in the margin as Sphinx's hidden toctrees.

    Args:
        index: the Markdown of the index. Each section gives a toctree.
    """
    margin = ""
    for section in index.split("\n## ")[1:]:
        heading = section.partition("\n")[0]
        entries = "".join(f"{title} <{name}>\n" for title, name in INDEX_ENTRY.findall(section))
        margin += f"\n```{{toctree}}\n:hidden:\n:caption: {heading}\n\n{entries}```\n"
    return margin


def serve_site(html: Path, port: int) -> None:
    """Serve the site at 127.0.0.1 until the process is interrupted.

    Raises:
        CommandFailed: the server ended, for example because the port is in use.
    """
    progress.conclude(f"http://127.0.0.1:{port}/ until you press Ctrl-C")
    server = ["-m", "http.server", "--bind", "127.0.0.1", "--directory", str(html), str(port)]
    if processes.run_on_terminal([paths.VENV / "bin" / "python", *server]) != 0:
        raise CommandFailed(f"port {port} cannot be used", "choose another port: --port=N")


def _install_sphinx(python: Path, venv: Path, options: Options, *flags: str) -> Path:
    """Install Sphinx into a virtual environment; return the environment's interpreter.

    Skip the installation if the environment has a copy of the current requirements.txt.

    Args:
        python: the interpreter that creates the virtual environment.
        venv: the directory of the virtual environment.
        flags: flags of ``python -m venv``.

    Raises:
        EnvironmentFailed: the virtual environment could not be created, or pip failed.
    """
    requirements = CONFIGURATION / "requirements.txt"
    installed = venv / "requirements.txt"
    venv_python = venv / "bin" / "python"
    if (
        venv_python.exists()
        and installed.exists()
        and installed.read_bytes() == requirements.read_bytes()
    ):
        return venv_python
    progress.say(f"installing Sphinx into {progress.display_path(venv)}")
    pip: list[str | Path] = [paths.VENV / "bin" / "python", "-m", "pip", "--python", venv_python]
    pip += ["install", *options.make_pip_flags(), "--only-binary=:all:"]
    try:
        processes.run([python, "-m", "venv", "--clear", "--without-pip", *flags, venv])
        processes.run([*pip, "-r", requirements])
    except CommandFailed as error:
        raise EnvironmentFailed(
            f"{venv} could not be installed:\n{error}",
            "check the network and pip's configuration, and run again",
        ) from error
    shutil.copy(requirements, installed)
    return venv_python


def _make_manual(html: Path, options: Options) -> None:
    """Build Theano's manual. Sphinx imports Theano from MANUAL_STACK to read its docstrings."""
    stack_python = envs.get_python_path(MANUAL_STACK)
    python = _install_sphinx(stack_python, SITE / "theano-venv", options, "--system-site-packages")
    progress.say("building Theano's manual: 1 to 2 minutes")
    archive = patches.fetch_source_archive(
        paths.RECIPES / "theano", options.sources, options.offline
    )
    with tempfile.TemporaryDirectory(dir=SITE) as folder:
        unpack = ["tar", "--extract", "--no-same-owner", "--strip-components=1", "--file"]
        processes.run([*unpack, archive, "--directory", folder])
        flags = {"THEANO_FLAGS": f"base_compiledir={folder}/compiled"}
        # Sphinx prints many warnings about the manual. Write them to a log only, because the manual
        # does not change.
        log = paths.LOGS / "manual.log"
        command = _make_sphinx_command(python, Path(folder, "doc"), html, CONFIGURATION / "manual")
        if processes.run_logged(command, env={**processes.clean_environ(), **flags}, log=log) != 0:
            raise CommandFailed(
                "Theano's manual was not built", f"see {progress.display_path(log)}"
            )


def _make_sphinx_command(
    python: Path, source: Path, html: Path, configuration: Path
) -> list[str | Path]:
    directories: list[str | Path] = ["--conf-dir", configuration]
    directories += ["--doctree-dir", SITE / "doctrees" / html.name]
    return [python, "-m", "sphinx", "--quiet", "--fresh-env", *directories, source, html]


def _create_empty_folder(folder: Path) -> Path:
    """Create an empty folder; remove an existing folder first. Return its path."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder
