"""How old the sources of stacks are, and whether the configured indexes offer newer ones."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime, timezone

from packaging.utils import parse_sdist_filename, parse_wheel_filename

from builder import pipeline, report
from builder.common import paths, progress
from builder.common.errors import CommandFailed, SourceUnavailable
from builder.source import debian, sources
from builder.stack import stacks
from builder.stack.recipes import Source

Version = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """What there is to say of a source.

    Attributes:
        released: the day it was uploaded, ISO 8601; where the index does not tell, that of the
            newest file in it; None if it was not fetched either.
        offered: whether the indexes have it still.
        newer: the newest release of its line, if it is not that itself; of Debian's fixes, which
            are of one release, the newest.
        suites: where Debian has it, if it is from there.
    """

    released: str | None
    offered: bool
    newer: str | None
    suites: tuple[str, ...] = ()

    @property
    def lasting(self) -> bool:
        """Whether what has it now does not lose it: an index of Python's, or such a suite."""
        return not self.suites or not debian.LASTING.isdisjoint(self.suites)


def audit(name: str = "") -> None:
    """Audit the sources of a stack, or of all; show the findings, and write the report.

    Raises:
        SourceUnavailable: an index cannot be asked.
    """
    pinned = pins([name] if name else [stack.name for stack in stacks.load_all()])
    offered, suites = ask(source.file for source in pinned)
    releases = group(offered)
    found = {
        source.file: Finding(
            released=offered.get(source.file) or dated(source),
            offered=source.file in offered,
            newer=newer(source.file, releases) or debian.later(source.file, offered),
            suites=tuple(sorted(suites.get(source.file, ()))),
        )
        for source in pinned
    }
    today = datetime.now(timezone.utc).date()
    document = {
        "schema_version": report.SCHEMA_VERSION,
        "day": str(today),
        "sources": {file: asdict(finding) for file, finding in found.items()},
    }
    written = paths.REPORTS / f"{name or 'all'}-audit.json"
    report.write(document, written)
    progress.table(
        ["source", "version", "released", "years ago", "newer of its line", "where", ""],
        [row(file, finding, today) for file, finding in found.items()],
    )
    if moving := [file for file, finding in found.items() if not finding.lasting]:
        progress.say(
            f"warning: the suites that have these can lose them: {', '.join(moving)}\n"
            "  -> their addresses in `extra: upstream:` have them then; better is a pin from "
            + ", ".join(sorted(debian.LASTING))
        )
    progress.say(f"report: {written}")


def pins(names: Iterable[str]) -> list[Source]:
    """The sources of stacks, by project and version."""
    options = pipeline.Options()
    recipes = [recipe for name in names for recipe in pipeline.plan(name, options).plan.recipes]
    found = {source for recipe in recipes for source in recipe.sources}
    return sorted(found, key=lambda source: parse(source.file))


def row(file: str, finding: Finding, today: date) -> list[str]:
    """A finding as cells of a table."""
    project, version = parse(file)
    age = (today - date.fromisoformat(finding.released)).days if finding.released else None
    fixes = debian.FILE.fullmatch(file)
    return [
        project,
        fixes["version"] if fixes and fixes["revision"] else dotted(version),
        finding.released or "-",
        "-" if age is None else f"{age / 365.25:.1f}",
        finding.newer or "",
        ", ".join(finding.suites),
        "" if finding.offered else "not offered any more",
    ]


def ask(
    files: Iterable[str],
) -> tuple[dict[str, str | None], Mapping[str, frozenset[str]]]:
    """What the indexes have of the projects and packages that ``files`` are of, and since when.

    Returns:
        That, and the suites of Debian's files.

    Raises:
        SourceUnavailable: none is configured, one does not answer or has none of a project.
    """
    wanted = set(files)
    parsed = [parse(file) for file in wanted if not debian.FILE.fullmatch(file)]
    projects = {project for project, version in parsed if version}
    try:
        # apt first: without a network it fails at once, pip after many attempts.
        suites = debian.listed(wanted, paths.cache() / "apt")
        found: dict[str, str | None] = dict.fromkeys(suites)
        found |= json.loads(sources.ask_pip("list", *sorted(projects)))
    except (LookupError, CommandFailed) as error:
        raise SourceUnavailable(
            f"the indexes cannot be asked what they offer:\n{error}",
            "check the network and pip's and apt's configuration",
        ) from error
    return found, suites


def parse(file: str) -> tuple[str, Version]:
    """Project and version of a release's file, whichever index it is from.

    A file that is named otherwise, or a pre-release's, is a project of its own, without a version.
    """
    nameless: tuple[str, Version] = (file, ())
    if match := debian.FILE.fullmatch(file):
        # Up to what Debian adds: the revision, or that it was repacked.
        upstream = re.split(r"[+-]", match["version"])[0]
        numbers = tuple(map(int, re.findall(r"\d+", upstream)))
        return nameless if "~" in upstream else (match["package"], numbers)
    try:
        read = parse_wheel_filename if file.endswith(".whl") else parse_sdist_filename
        project, version, *_ = read(file)
    except ValueError:
        return nameless
    return nameless if version.is_prerelease else (project, version.release)


def group(files: Iterable[str]) -> dict[str, set[Version]]:
    """The releases among the files of indexes, by project."""
    found = defaultdict(set)
    for project, version in map(parse, files):
        found[project].add(version)
    return found


def newer(file: str, releases: Mapping[str, set[Version]]) -> str | None:
    """The newest release of a file's line, if that is newer.

    The releases of a line differ in the last number only: 3.11.2 and 3.11.9, 6.4 and 6.5.
    """
    project, version = parse(file)
    line = version[:-1]
    same = {other for other in releases.get(project, ()) if other[: len(line)] == line}
    best = max(same, default=version)
    return dotted(best) if best > version else None


def dotted(version: Version) -> str:
    """A version as it is written."""
    return ".".join(map(str, version))


def dated(source: Source) -> str | None:
    """The day of the newest file in a Debian package or a tar archive that was fetched."""
    archive = sources.cache_file(source)
    if not archive.exists():
        return None
    if archive.suffix == ".deb":
        # An ar archive; its first member's time is in bytes 24 to 36.
        with archive.open("rb") as stream:
            newest = int(stream.read(36)[24:])
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            newest = max(int(member.mtime) for member in tar)
    else:
        return None
    return str(datetime.fromtimestamp(newest, timezone.utc).date())
