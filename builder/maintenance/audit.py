"""Audit the sources of stacks: age, newer releases, and the end of upstream support."""

from __future__ import annotations

import json
import re
import tarfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import date, datetime, timezone

from packaging.utils import parse_sdist_filename, parse_wheel_filename

from builder import report
from builder.common import paths, progress
from builder.common.errors import CommandFailed, SourceUnavailable
from builder.maintenance import support
from builder.options import Options
from builder.pipeline import Build
from builder.source import debian, sources
from builder.stack import stacks
from builder.stack.recipes import Recipe, Source

# The numbers of a version: (3, 11, 2).
Version = tuple[int, ...]


@dataclass(frozen=True)
class Finding:
    """The state of a source file in the indexes of pip and apt.

    Attributes:
        released: the day of the file's upload, in ISO 8601. If the index has no date, the day of
            the newest file in the archive. None if the source is not in the cache either.
        offered: whether an index still offers the file.
        newer: the newest release of the same series; None if it is not newer than the file. For an
            archive of Debian's patches: the newest revision of the same upstream release.
        suites: the suites of Debian that have the file; empty for other files.
    """

    released: str | None
    offered: bool
    newer: str | None
    suites: tuple[str, ...] = ()

    @property
    def lasting(self) -> bool:
        """Whether an index keeps the file.

        Indexes of Python packages keep all files. Debian's suites delete old files, except the
        suites in ``debian.STABLE_SUITES``.
        """
        return not self.suites or not debian.STABLE_SUITES.isdisjoint(self.suites)


def audit(name: str = "") -> None:
    """Audit the sources of a stack; print the findings and write them to a JSON report.

    Args:
        name: the stack; "" for all stacks.

    Raises:
        SourceUnavailable: an index cannot be queried.
        ConfigurationError: support.toml has the date of another series than the recipe's.
    """
    audited = list_recipes([name] if name else [stack.name for stack in stacks.load_all()])
    pinned = list_pins(audited)
    supports = support.find_all(audited)
    offered, suites = query_indexes(source.file for source in pinned)
    releases = group_releases(offered)
    findings = {
        source.file: Finding(
            released=offered.get(source.file) or find_day(source),
            offered=source.file in offered,
            newer=find_newer(source.file, releases)
            or debian.find_later_version(source.file, offered),
            suites=tuple(sorted(suites.get(source.file, ()))),
        )
        for source in pinned
    }
    today = datetime.now(timezone.utc).date()
    document = {
        "schema_version": report.SCHEMA_VERSION,
        "day": str(today),
        "sources": {file: asdict(finding) for file, finding in findings.items()},
        "support": {
            item.package: {
                "version": item.version,
                "ends": item.ends and str(item.ends),
                "fixed_until": item.fixed_until and str(item.fixed_until),
            }
            for item in supports
        },
    }
    report_file = paths.REPORTS / f"{name or 'all'}-audit.json"
    report.write(document, report_file)
    progress.print_table(
        ["source", "version", "released", "years ago", "newer release", "suites", ""],
        [make_row(file, finding, today) for file, finding in findings.items()],
    )
    progress.print_table(
        ["package", "version", "upstream support ends", "fixed by", "source"],
        map(support.format_row, supports),
    )
    for line in support.format_warnings(supports, today):
        progress.say(line)
    if removable := [file for file, finding in findings.items() if not finding.lasting]:
        progress.say(
            f"warning: Debian's suites may remove these files: {', '.join(removable)}\n"
            "  -> they stay at the addresses in `extra: upstream:`; prefer files of "
            + ", ".join(sorted(debian.STABLE_SUITES))
        )
    progress.say(f"report: {report_file}")


def list_recipes(names: Iterable[str]) -> list[Recipe]:
    """Return the recipes of stacks; repeat a recipe that several stacks have."""
    options = Options()
    return [recipe for name in names for recipe in Build.create(name, options).plan.recipes]


def list_pins(recipes: Iterable[Recipe]) -> list[Source]:
    """Return the distinct sources of recipes, sorted by project and version."""
    unique = {source for recipe in recipes for source in recipe.sources}
    return sorted(unique, key=lambda source: parse_file_name(source.file))


def make_row(file: str, finding: Finding, today: date) -> list[str]:
    """Return the cells of a table row about a source file.

    Args:
        today: the current day. The age is the time from the file's release to this day, in years.
    """
    project, version = parse_file_name(file)
    age = (today - date.fromisoformat(finding.released)).days if finding.released else None
    fixes = debian.FILE.fullmatch(file)
    return [
        project,
        fixes["version"] if fixes and fixes["revision"] else format_version(version),
        finding.released or "-",
        "-" if age is None else f"{age / 365.25:.1f}",
        finding.newer or "",
        ", ".join(finding.suites),
        "" if finding.offered else "no longer offered",
    ]


def query_indexes(
    files: Iterable[str],
) -> tuple[dict[str, str | None], Mapping[str, frozenset[str]]]:
    """List the files that the indexes of pip and apt offer for the projects of ``files``.

    Returns:
        The day of upload of each file, in ISO 8601, or None if the index has no date.
        The suites of each file of Debian.

    Raises:
        SourceUnavailable: no index is configured, or an index does not answer or lacks a project.
    """
    audited = set(files)
    parsed = [parse_file_name(file) for file in audited if not debian.FILE.fullmatch(file)]
    projects = {project for project, version in parsed if version}
    try:
        # Query apt first: without a network apt fails at once, but pip fails after many attempts.
        suites = debian.list_suites(audited, paths.get_cache() / "apt")
        days: dict[str, str | None] = dict.fromkeys(suites)
        days |= json.loads(sources.run_pip_helper("list", *sorted(projects)))
    except (LookupError, CommandFailed) as error:
        raise SourceUnavailable(
            f"the indexes cannot be queried:\n{error}",
            "check the network and pip's and apt's configuration",
        ) from error
    return days, suites


def parse_file_name(file: str) -> tuple[str, Version]:
    """Parse the name of a Python or Debian source file; return the project and the version.

    ``numpy-1.26.4.tar.gz`` gives ("numpy", (1, 26, 4)). For a pre-release, or a name in an unknown
    format, return the file's name and ().
    """
    unversioned: tuple[str, Version] = (file, ())
    if match := debian.FILE.fullmatch(file):
        # Drop Debian's suffixes, such as the revision "-1" and the mark "+dfsg" of a repacked file.
        upstream = re.split(r"[+-]", match["version"])[0]
        numbers = tuple(map(int, re.findall(r"\d+", upstream)))
        return unversioned if "~" in upstream else (match["package"], numbers)
    try:
        parse_name = parse_wheel_filename if file.endswith(".whl") else parse_sdist_filename
        project, version, *_ = parse_name(file)
    except ValueError:
        return unversioned
    return unversioned if version.is_prerelease else (project, version.release)


def group_releases(files: Iterable[str]) -> dict[str, set[Version]]:
    """Return the versions of the files, by project."""
    releases = defaultdict(set)
    for project, version in map(parse_file_name, files):
        releases[project].add(version)
    return releases


def find_newer(file: str, releases: Mapping[str, set[Version]]) -> str | None:
    """Return the newest release of a file's series, or None if it is not newer than the file.

    The releases of a series agree in all numbers of the file's version except the last: 3.11.2 and
    3.11.9, 6.4 and 6.5.

    Args:
        releases: the versions of each project, from :func:`group_releases`.
    """
    project, version = parse_file_name(file)
    series = version[:-1]
    candidates = {
        release for release in releases.get(project, ()) if release[: len(series)] == series
    }
    newest = max(candidates, default=version)
    return format_version(newest) if newest > version else None


def format_version(version: Version) -> str:
    """Format a version: (3, 11, 2) becomes "3.11.2"."""
    return ".".join(map(str, version))


def find_day(source: Source) -> str | None:
    """Return the day of the newest file in a cached tar archive, in ISO 8601.

    For a Debian package ``.deb``, return the day of its first member. Return None if the source is
    not in the cache, or is another kind of file.
    """
    archive = sources.get_cached_path(source)
    if not archive.exists():
        return None
    if archive.suffix == ".deb":
        # The file is an ar archive. The time of its first member is in bytes 24 to 35.
        with archive.open("rb") as stream:
            newest = int(stream.read(36)[24:])
    elif tarfile.is_tarfile(archive):
        with tarfile.open(archive) as tar:
            newest = max(int(member.mtime) for member in tar)
    else:
        return None
    return str(datetime.fromtimestamp(newest, timezone.utc).date())
