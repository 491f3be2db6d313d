"""Debian, from the host's configured mirrors: files by their names, and a base system."""

from __future__ import annotations

import itertools
import lzma
import os
import platform
import re
import shutil
import threading
import urllib.parse
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path

from builder.common.errors import CommandFailed
from builder.common.processes import run
from builder.source import downloads

# Releases whose files recipes pin; a host of one release can fetch from all.
RELEASES = ("bullseye", "bookworm", "trixie")
# The suites that keep what they have: releases after their last point release, which the mirrors
# still carry. Another suite drops a file when it gets a newer one, or goes as a whole.
LASTING = frozenset({"bookworm"})
# Names a mirror of Debian's, as http://mirror.example/debian, for a host whose apt has none.
MIRROR = "THEANO_FAST_DEBIAN_MIRROR"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FILE = re.compile(
    r"(?P<package>[a-z0-9][a-z0-9.+-]+)_(?P<version>[^_]+)"
    r"(\.orig\.tar\.(gz|xz|bz2)|(?P<revision>\.debian\.tar\.xz)|_(amd64|all)\.(?P<binary>deb))"
)
# apt-cache's command for each kind of entry: deb-src for source packages, deb for binary ones.
SHOW = {"deb-src": ("showsrc", "--only-source"), "deb": ("show",)}

_lock = threading.Lock()


def mirror() -> str:
    """The address of the mirror that the user names in MIRROR, if any."""
    return os.environ.get(MIRROR, "").rstrip("/")


def sources_list(targets: str, kind: str = "deb-src") -> str:
    """apt's entries for RELEASES, on the user's mirror and those that ``targets`` names.

    Args:
        targets: what ``apt-get update --print-uris`` prints.
        kind: one of SHOW.
    """
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    # Signed or not: what comes from there is held to its SHA-256.
    lines = {f"{kind} [trusted=yes] {mirror()} {name} main" for name in RELEASES if mirror()}
    for uri, release in _repositories(targets):
        base, _, pocket = release.partition("-")
        if base in RELEASES and pocket in ("", "security"):
            suffix = f"-{pocket}" if pocket else ""
            lines |= {f"{kind} {signed}{uri} {name}{suffix} main" for name in RELEASES}
    return "\n".join(sorted(lines)) + "\n"


def package_list(targets: str, release: str) -> list[str]:
    """apt's entries for one release's packages, on the mirrors that ``targets`` names.

    Args:
        targets: as for :func:`sources_list`.
        release: a codename, as ``bookworm``.
    """
    pockets = {release, f"{release}-updates", f"{release}-security"}
    return [f"deb {uri} {name} main" for uri, name in _repositories(targets) if name in pockets]


def directories(shown: str, file: str) -> list[str]:
    """The pool directories of ``file`` in what ``apt-cache showsrc`` or ``show`` printed."""
    name = re.escape(file)
    found = re.findall(rf"^Filename: (\S+)/{name}$", shown, re.MULTILINE)
    for stanza in shown.split("\n\n"):
        if re.search(rf"^ [0-9a-f]{{64}} \d+ {name}$", stanza, re.MULTILINE):
            found += re.findall(r"^Directory: (\S+)$", stanza, re.MULTILINE)
    return sorted(set(found))


def download(file: str, destination: Path, state: Path) -> None:
    """Write ``file`` to ``destination``; apt's index files are kept below ``state``.

    Raises:
        LookupError: the host has no apt, no Debian mirror, or the mirror no such file.
        CommandFailed: apt could not download it.
        OSError: without apt, the user's mirror does not answer.
    """
    match = FILE.fullmatch(file)
    if not match:
        raise LookupError(f"{file} is not named as Debian's files are")
    if shutil.which("apt-get") is None:
        downloads.download(_address(match, state), destination)
        return
    kind = _kind(match)
    # Apart, so that sources need no lists of binary packages, which are large.
    state /= kind
    with _lock:
        options = _configure(state, kind)
        query = ["apt-cache", *options, *SHOW[kind], match["package"]]
        pools = directories(run(query, check=False).output, file)
        if not pools:
            run(["apt-get", *options, "update"], check=False)
            pools = directories(run(query, check=False).output, file)
    if not pools:
        raise LookupError(f"the configured Debian mirrors have no {file} (any more)")
    # A mirror's index may still list a file that it no longer has: ask each.
    mirrors = sorted(set(re.findall(r"https?://\S+", (state / "sources.list").read_text("utf-8"))))
    failure: Exception = LookupError(file)
    for mirror, pool in itertools.product(mirrors, pools):
        address = f"{mirror.rstrip('/')}/{pool}/{urllib.parse.quote(file)}"
        try:
            run(["/usr/lib/apt/apt-helper", *options, "download-file", address, destination])
            return
        except CommandFailed as error:
            failure = error
    raise failure


def listed(files: Iterable[str], state: Path) -> dict[str, frozenset[str]]:
    """The suites of each file that the mirrors list now of the packages that ``files`` are of.

    Raises:
        LookupError: the host has no apt, or no Debian mirror, or one does not answer.
    """
    matches = [match for file in files if (match := FILE.fullmatch(file))]
    found: dict[str, frozenset[str]] = {}
    for kind, show in SHOW.items():
        packages = sorted({match["package"] for match in matches if _kind(match) == kind})
        if packages:
            options = _configure(state / kind, kind)
            update = ["apt-get", *options, "-o", "APT::Update::Error-Mode=any", "update"]
            if (done := run(update, check=False)).status != 0:
                errors = [line for line in done.output.splitlines() if line.startswith("E: ")]
                raise LookupError(f"apt-get update: {errors[0]}")
            shown, told = (
                run(["apt-cache", *options, *query, *packages]).output
                for query in (show, ("madison",))
            )
            found |= suites(shown, told)
    return found


def suites(shown: str, told: str) -> dict[str, frozenset[str]]:
    """The suites of each file in what ``apt-cache showsrc`` or ``show`` printed.

    Args:
        told: what ``apt-cache madison`` printed of the same packages.
    """
    places = defaultdict(set)
    for package, version, suite in re.findall(
        r"^ *(\S+) \| +(\S+) \| \S+ ([^/ ]+)", told, re.MULTILINE
    ):
        places[package, version].add(suite)
    found: dict[str, set[str]] = defaultdict(set)
    for stanza in shown.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version): (\S+)$", stanza, re.MULTILINE))
        for word in re.split(r"[\s/]+", stanza):
            if FILE.fullmatch(word):
                found[word] |= places[fields["Package"], fields["Version"]]
    return {file: frozenset(names) for file, names in found.items()}


def later(file: str, offered: Iterable[str]) -> str | None:
    """The version of the newest of ``offered``, if that is Debian's later work on one release.

    Args:
        file: Debian's own part of a source package, its patches among it.
    """
    match = FILE.fullmatch(file)
    # dpkg knows the order of versions; without it there is nothing to say.
    if not match or not match["revision"] or shutil.which("dpkg") is None:
        return None
    upstream = match["version"].rpartition("-")[0]
    newest = match["version"]
    for other in filter(None, map(FILE.fullmatch, offered)):
        version = other["version"]
        alike = (other["package"], other["revision"]) == (match["package"], match["revision"])
        if alike and version.rpartition("-")[0] == upstream:
            compare = ["dpkg", "--compare-versions", version, "gt", newest]
            newest = version if run(compare, check=False).status == 0 else newest
    return newest if newest != match["version"] else None


def release() -> str:
    """The codename of the host's release, empty if it has none."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def bootstrap(
    target: Path,
    omit: Sequence[str] = (),
    epoch: int = 0,
    suite: str = "",
    variant: str = "minbase",
) -> None:
    """Write a release as a root file system; the same state of the mirrors gives the same bytes.

    Args:
        target: what to write, an archive if it is called ``*.tar``, else a directory.
        omit: glob patterns of files that no package shall install.
        epoch: the time of files that are younger, in seconds since 1970.
        suite: the release's codename, if it is not the host's.
        variant: mmdebstrap's: ``minbase``, essential packages and apt, or ``essential``.

    Raises:
        LookupError: the host has no mmdebstrap, or no Debian mirror.
        CommandFailed: mmdebstrap failed.
    """
    if shutil.which("mmdebstrap") is None:
        raise LookupError("mmdebstrap is not on PATH")
    entries = package_list(_targets(), release())
    if not entries:
        raise LookupError("apt is not configured with a Debian mirror")
    options = [f"--variant={variant}"]
    if suite:
        # A mirror may be of some day in the past.
        options += ['--aptopt=Acquire::Check-Valid-Until "false"']
        own = f" {release()} "
        entries = [entry.replace(own, f" {suite} ") for entry in entries if own in entry]
    else:
        # Without the hook bookworm installs perl, to convert itself to a merged /usr.
        options += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    options += [f"--dpkgopt=path-exclude={pattern}" for pattern in omit]
    # A licence asks to stay with its program.
    options += ["--dpkgopt=path-include=/usr/share/doc/*/copyright"]
    # mmdebstrap leaves copies of this host's.
    options += ['--customize-hook=rm -f "$1/etc/hostname" "$1/etc/resolv.conf"']
    run(
        ["mmdebstrap", *options, suite or release(), target, *entries],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
    )


def _address(match: re.Match[str], state: Path) -> str:
    """Where on the user's mirror a file is, without apt to tell.

    The pool's layout is a rule for sources. A binary package is with its source, which the lists
    of RELEASES tell; they are kept below ``state``.

    Raises:
        LookupError: there is no mirror, or it lists no such package.
        OSError: it does not answer.
    """
    if not mirror():
        raise LookupError("this host has no apt, and no mirror of Debian's is named")
    if not match["binary"]:
        name = match["package"]
        section = name[:4] if name.startswith("lib") else name[0]
        return f"{mirror()}/pool/main/{section}/{name}/{urllib.parse.quote(match[0])}"
    with _lock:
        for name in RELEASES:
            listed = state / f"{name}.xz"
            if not listed.exists():
                state.mkdir(parents=True, exist_ok=True)
                address = f"{mirror()}/dists/{name}/main/binary-amd64/Packages.xz"
                downloads.download(address, listed.with_suffix(".part"))
                listed.with_suffix(".part").replace(listed)
            with lzma.open(listed, "rt", encoding="utf-8") as lines:
                for line in lines:
                    if line.startswith("Filename: ") and line.endswith(f"/{match[0]}\n"):
                        return f"{mirror()}/{urllib.parse.quote(line.split()[1])}"
    raise LookupError(f"{mirror()} lists no {match[0]}")


def _kind(match: re.Match[str]) -> str:
    return "deb" if match["binary"] else "deb-src"


def _targets() -> str:
    # indextargets would know of none where no list was fetched yet, as in a new container.
    return run(["apt-get", "update", "--print-uris"]).output


def _repositories(targets: str) -> list[tuple[str, str]]:
    """Each repository's address, and the release that is asked of it."""
    return sorted(set(re.findall(r"^'(\S+)/dists/(\S+)/InRelease'", targets, re.MULTILINE)))


def _configure(state: Path, kind: str) -> list[str]:
    """apt options for a configuration of our own: the host's mirrors, but entries of ``kind``."""
    if shutil.which("apt-get") is None:
        raise LookupError("this host has no apt")
    entries = sources_list(_targets(), kind)
    if not entries.strip():
        raise LookupError("apt is not configured with a Debian mirror")
    lists = state / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (state / "cache").mkdir(exist_ok=True)
    written = state / "sources.list"
    # apt takes its cache for older than a list that is written anew.
    if not written.exists() or written.read_text("utf-8") != entries:
        written.write_text(entries, encoding="utf-8")
    settings = {
        "Dir::Etc::SourceList": written,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": lists,
        "Dir::Cache": state / "cache",
        # Kept even where the host keeps none, as in containers: each query would read all lists.
        "Dir::Cache::pkgcache": "pkgcache.bin",
        "Dir::Cache::srcpkgcache": "",
        # Downloads are checked by hash; apt's own user may not write to the cache.
        "APT::Sandbox::User": "root",
    }
    return [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
