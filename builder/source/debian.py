"""Download Debian's files by their names from the configured mirrors, and bootstrap a system."""

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

# Releases whose files recipes pin. A host that runs one of them can fetch files of all of them.
RELEASES = ("bullseye", "bookworm", "trixie")
# Suites that drop no files: releases that had their last point release and are still on mirrors.
# Other suites drop a file when they get a newer version, or disappear from the mirrors.
STABLE_SUITES = frozenset({"bookworm"})
# The environment variable with the address of a Debian mirror, such as
# http://mirror.example/debian, for hosts whose apt has no Debian mirror.
MIRROR = "THEANO_FAST_DEBIAN_MIRROR"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FILE = re.compile(
    r"(?P<package>[a-z0-9][a-z0-9.+-]+)_(?P<version>[^_]+)"
    r"(\.orig\.tar\.(gz|xz|bz2)|(?P<revision>\.debian\.tar\.xz)|_(amd64|all)\.(?P<binary>deb))"
)
# apt-cache's command by kind of entry: deb-src for source packages, deb for binary packages.
SHOW = {"deb-src": ("showsrc", "--only-source"), "deb": ("show",)}

_lock = threading.Lock()


def read_user_mirror() -> str:
    """Read the address of the mirror in the variable MIRROR; "" if it is not set."""
    return os.environ.get(MIRROR, "").rstrip("/")


def format_sources_list(targets: str, kind: str = "deb-src") -> str:
    """Format apt's entries for RELEASES, on the user's mirror and on the mirrors in ``targets``.

    Args:
        targets: the output of ``apt-get update --print-uris``.
        kind: a key of SHOW.
    """
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    # A signature is not necessary: the recipe pins the SHA-256 of each file.
    mirror = read_user_mirror()
    lines = {f"{kind} [trusted=yes] {mirror} {name} main" for name in RELEASES if mirror}
    for uri, release in _parse_repositories(targets):
        base, _, pocket = release.partition("-")
        if base in RELEASES and pocket in ("", "security"):
            suffix = f"-{pocket}" if pocket else ""
            lines |= {f"{kind} {signed}{uri} {name}{suffix} main" for name in RELEASES}
    return "\n".join(sorted(lines)) + "\n"


def list_entries(targets: str, release: str) -> list[str]:
    """List apt's entries for the packages of one release, on the mirrors in ``targets``.

    Args:
        targets: the output of ``apt-get update --print-uris``.
        release: a codename such as ``bookworm``.
    """
    pockets = {release, f"{release}-updates", f"{release}-security"}
    return [
        f"deb {uri} {name} main" for uri, name in _parse_repositories(targets) if name in pockets
    ]


def find_pool_directories(stanzas: str, file: str) -> list[str]:
    """Find the pool directories of ``file`` in the output of ``apt-cache showsrc`` or ``show``."""
    name = re.escape(file)
    directories = re.findall(rf"^Filename: (\S+)/{name}$", stanzas, re.MULTILINE)
    for stanza in stanzas.split("\n\n"):
        if re.search(rf"^ [0-9a-f]{{64}} \d+ {name}$", stanza, re.MULTILINE):
            directories += re.findall(r"^Directory: (\S+)$", stanza, re.MULTILINE)
    return sorted(set(directories))


def download(file: str, destination: Path, state: Path) -> None:
    """Download ``file`` to ``destination``.

    Args:
        state: a directory for apt's index files, which are kept.

    Raises:
        LookupError: the host has no apt or no Debian mirror, or the mirrors have no such file.
        CommandFailed: apt could not download it.
        OSError: the host has no apt, and the user's mirror does not answer.
    """
    match = FILE.fullmatch(file)
    if not match:
        raise LookupError(f"{file} is not the name of a Debian package or source")
    if shutil.which("apt-get") is None:
        downloads.download(_find_address(match, state), destination)
        return
    kind = _find_kind(match)
    # Use a directory for each kind: to fetch sources, apt need not load the lists of binary
    # packages, which are large.
    state /= kind
    with _lock:
        options = _configure(state, kind)
        query = ["apt-cache", *options, *SHOW[kind], match["package"]]
        pools = find_pool_directories(run(query, check=False).output, file)
        if not pools:
            run(["apt-get", *options, "update"], check=False)
            pools = find_pool_directories(run(query, check=False).output, file)
    if not pools:
        raise LookupError(f"the configured Debian mirrors do not have {file}")
    # An index may still list a file that the mirror has dropped, so every mirror is tried.
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


def list_suites(files: Iterable[str], state: Path) -> dict[str, frozenset[str]]:
    """List the files that the mirrors now have for the packages of ``files``, with their suites.

    Args:
        state: a directory for apt's index files, which are kept.

    Raises:
        LookupError: the host has no apt, apt has no Debian mirror, or a mirror does not answer.
    """
    matches = [match for file in files if (match := FILE.fullmatch(file))]
    suites: dict[str, frozenset[str]] = {}
    for kind, show in SHOW.items():
        packages = sorted({match["package"] for match in matches if _find_kind(match) == kind})
        if packages:
            options = _configure(state / kind, kind)
            update = ["apt-get", *options, "-o", "APT::Update::Error-Mode=any", "update"]
            if (finished := run(update, check=False)).status != 0:
                errors = [line for line in finished.output.splitlines() if line.startswith("E: ")]
                raise LookupError(f"apt-get update: {errors[0]}")
            stanzas, versions = (
                run(["apt-cache", *options, *query, *packages]).output
                for query in (show, ("madison",))
            )
            suites |= parse_suites(stanzas, versions)
    return suites


def parse_suites(stanzas: str, versions: str) -> dict[str, frozenset[str]]:
    """Parse the suites of each file in the output of ``apt-cache showsrc`` or ``show``.

    Args:
        versions: the output of ``apt-cache madison`` for the same packages.
    """
    suites = defaultdict(set)
    for package, version, suite in re.findall(
        r"^ *(\S+) \| +(\S+) \| \S+ ([^/ ]+)", versions, re.MULTILINE
    ):
        suites[package, version].add(suite)
    suites_of_files: dict[str, set[str]] = defaultdict(set)
    for stanza in stanzas.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Version): (\S+)$", stanza, re.MULTILINE))
        for word in re.split(r"[\s/]+", stanza):
            if FILE.fullmatch(word):
                suites_of_files[word] |= suites[fields["Package"], fields["Version"]]
    return {file: frozenset(names) for file, names in suites_of_files.items()}


def find_later_version(file: str, candidates: Iterable[str]) -> str | None:
    """Find the newest Debian revision of the same upstream release, if it is newer than ``file``.

    Args:
        file: an archive ``*.debian.tar.xz``, which has Debian's patches.
        candidates: names of files; files of other packages or upstream releases are ignored.
    """
    match = FILE.fullmatch(file)
    # Only dpkg can compare versions; without it no version is reported.
    if not match or not match["revision"] or shutil.which("dpkg") is None:
        return None
    upstream = match["version"].rpartition("-")[0]
    newest = match["version"]
    for other in filter(None, map(FILE.fullmatch, candidates)):
        version = other["version"]
        same = (other["package"], other["revision"]) == (match["package"], match["revision"])
        if same and version.rpartition("-")[0] == upstream:
            compare = ["dpkg", "--compare-versions", version, "gt", newest]
            newest = version if run(compare, check=False).status == 0 else newest
    return newest if newest != match["version"] else None


def read_host_release() -> str:
    """Read the codename of the host's release; "" if the host has no codename."""
    return platform.freedesktop_os_release().get("VERSION_CODENAME", "")


def bootstrap(
    target: Path,
    omit: Sequence[str] = (),
    epoch: int = 0,
    suite: str = "",
    variant: str = "minbase",
) -> None:
    """Bootstrap a root file system; the same state of the mirrors gives the same bytes.

    Args:
        target: an archive if its name is ``*.tar``, else a directory.
        omit: glob patterns of files that are not installed.
        epoch: the latest modification time of files, in seconds since 1970.
        suite: the codename of the release; by default the host's.
        variant: mmdebstrap's variant: ``minbase`` (essential packages and apt) or ``essential``.

    Raises:
        LookupError: the host has no mmdebstrap, or no Debian mirror.
        CommandFailed: mmdebstrap failed.
    """
    if shutil.which("mmdebstrap") is None:
        raise LookupError("mmdebstrap is not on PATH")
    release = read_host_release()
    entries = list_entries(_list_targets(), release)
    if not entries:
        raise LookupError("apt is not configured with a Debian mirror")
    options = [f"--variant={variant}"]
    if suite:
        # The mirror may be a snapshot of a day in the past.
        options += ['--aptopt=Acquire::Check-Valid-Until "false"']
        word = f" {release} "
        entries = [entry.replace(word, f" {suite} ") for entry in entries if word in entry]
    else:
        # Without this hook bookworm installs perl in order to merge /usr.
        options += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    options += [f"--dpkgopt=path-exclude={pattern}" for pattern in omit]
    # Licences require that their text accompanies the program.
    options += ["--dpkgopt=path-include=/usr/share/doc/*/copyright"]
    # mmdebstrap copies these from the host.
    options += ['--customize-hook=rm -f "$1/etc/hostname" "$1/etc/resolv.conf"']
    run(
        ["mmdebstrap", *options, suite or release, target, *entries],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
    )


def _find_address(match: re.Match[str], state: Path) -> str:
    """Find the address of a file on the user's mirror without apt.

    The path of a source follows from its name (Debian Policy's pool layout). A binary package is in
    the directory of its source, which is in the package lists of RELEASES.

    Args:
        match: a match of FILE.
        state: a directory for the package lists, which are kept.

    Raises:
        LookupError: the user names no mirror, or the mirror lists no such package.
        OSError: the mirror does not answer.
    """
    mirror = read_user_mirror()
    if not mirror:
        raise LookupError(f"this host has no apt, and {MIRROR} names no Debian mirror")
    if not match["binary"]:
        name = match["package"]
        section = name[:4] if name.startswith("lib") else name[0]
        return f"{mirror}/pool/main/{section}/{name}/{urllib.parse.quote(match[0])}"
    with _lock:
        for release in RELEASES:
            packages = state / f"{release}.xz"
            if not packages.exists():
                state.mkdir(parents=True, exist_ok=True)
                address = f"{mirror}/dists/{release}/main/binary-amd64/Packages.xz"
                downloads.download(address, packages.with_suffix(".part"))
                packages.with_suffix(".part").replace(packages)
            with lzma.open(packages, "rt", encoding="utf-8") as lines:
                for line in lines:
                    if line.startswith("Filename: ") and line.endswith(f"/{match[0]}\n"):
                        return f"{mirror}/{urllib.parse.quote(line.split()[1])}"
    raise LookupError(f"{mirror} lists no {match[0]}")


def _find_kind(match: re.Match[str]) -> str:
    """Return the key of SHOW for a file."""
    return "deb" if match["binary"] else "deb-src"


def _list_targets() -> str:
    # `apt-get indextargets` prints nothing before the first update, as in a new container.
    return run(["apt-get", "update", "--print-uris"]).output


def _parse_repositories(targets: str) -> list[tuple[str, str]]:
    """Parse the address and the release of each repository."""
    return sorted(set(re.findall(r"^'(\S+)/dists/(\S+)/InRelease'", targets, re.MULTILINE)))


def _configure(state: Path, kind: str) -> list[str]:
    """Configure apt with entries of ``kind`` on the host's mirrors; return apt's options.

    Args:
        state: a directory for apt's files.
        kind: a key of SHOW.

    Raises:
        LookupError: the host has no apt, or apt has no Debian mirror.
    """
    if shutil.which("apt-get") is None:
        raise LookupError("this host has no apt")
    entries = format_sources_list(_list_targets(), kind)
    if not entries.strip():
        raise LookupError("apt is not configured with a Debian mirror")
    lists = state / "lists"
    (lists / "partial").mkdir(parents=True, exist_ok=True)
    (state / "cache").mkdir(exist_ok=True)
    file = state / "sources.list"
    # apt rebuilds its cache if the list is newer.
    if not file.exists() or file.read_text("utf-8") != entries:
        file.write_text(entries, encoding="utf-8")
    settings = {
        "Dir::Etc::SourceList": file,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": lists,
        "Dir::Cache": state / "cache",
        # Some hosts, such as containers, disable this cache; without it each query reads all lists.
        "Dir::Cache::pkgcache": "pkgcache.bin",
        "Dir::Cache::srcpkgcache": "",
        # apt's user _apt may not write to the cache. Downloads are verified by hash anyway.
        "APT::Sandbox::User": "root",
    }
    return [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
