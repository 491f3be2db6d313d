"""Download Debian's files by name from the configured mirrors; bootstrap root file systems."""

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

# Releases whose files recipes pin. A host with one of these releases can fetch the files of every
# release.
RELEASES = ("bullseye", "bookworm", "trixie")
# Suites that keep their files: releases that had their last point release and are still on mirrors.
# In other suites, a newer version of a file replaces the file, or the suite disappears from the
# mirrors.
STABLE_SUITES = frozenset({"bookworm"})
# The environment variable with the address of a Debian mirror, such as
# http://mirror.example/debian, for hosts whose apt has no Debian mirror.
MIRROR = "THEANO_FAST_DEBIAN_MIRROR"
KEYRING = Path("/usr/share/keyrings/debian-archive-keyring.gpg")
FILE = re.compile(
    r"(?P<package>[a-z0-9][a-z0-9.+-]+)_(?P<version>[^_]+)"
    r"(\.orig\.tar\.(gz|xz|bz2)|(?P<revision>\.debian\.tar\.xz)|_(amd64|all)\.(?P<binary>deb))"
)
# Maps the kind of an entry in sources.list to the apt-cache command that shows its packages:
# deb-src has source packages, deb has binary packages.
SHOW = {"deb-src": ("showsrc", "--only-source"), "deb": ("show",)}

_lock = threading.Lock()


def read_user_mirror() -> str:
    """Read the address of the mirror in the variable MIRROR; "" if it is not set."""
    return os.environ.get(MIRROR, "").rstrip("/")


def format_sources_list(targets: str, kind: str = "deb-src") -> str:
    """Format a sources.list: an entry for each release of RELEASES on each mirror.

    The mirrors are the user's mirror and the mirrors in apt's configuration.

    Args:
        targets: the output of ``apt-get update --print-uris``, which names the configured mirrors.
        kind: a key of SHOW.

    Returns:
        The entries, one per line, or only a newline if no mirror is configured.
    """
    signed = f"[signed-by={KEYRING}] " if KEYRING.exists() else ""
    # Trust the user's mirror without a signature: recipes pin the SHA-256 of each file.
    mirror = read_user_mirror()
    lines = {f"{kind} [trusted=yes] {mirror} {name} main" for name in RELEASES if mirror}
    for uri, release in _parse_repositories(targets):
        base, _, pocket = release.partition("-")
        if base in RELEASES and pocket in ("", "security"):
            suffix = f"-{pocket}" if pocket else ""
            lines |= {f"{kind} {signed}{uri} {name}{suffix} main" for name in RELEASES}
    return "\n".join(sorted(lines)) + "\n"


def list_entries(targets: str, release: str) -> list[str]:
    """Format the entries of a sources.list that name the binary packages of one release.

    The entries use the mirrors that apt's configuration names for this release, its updates and its
    security fixes.

    Args:
        targets: the output of ``apt-get update --print-uris``, which names the configured mirrors.
        release: a codename such as ``bookworm``.
    """
    pockets = {release, f"{release}-updates", f"{release}-security"}
    return [
        f"deb {uri} {name} main" for uri, name in _parse_repositories(targets) if name in pockets
    ]


def find_pool_directories(stanzas: str, file: str) -> list[str]:
    """Find the directories of a file on a mirror, such as ``pool/main/z/zlib``.

    Args:
        stanzas: the output of ``apt-cache showsrc`` or ``apt-cache show``.
        file: the name of the file.
    """
    name = re.escape(file)
    directories = re.findall(rf"^Filename: (\S+)/{name}$", stanzas, re.MULTILINE)
    for stanza in stanzas.split("\n\n"):
        if re.search(rf"^ [0-9a-f]{{64}} \d+ {name}$", stanza, re.MULTILINE):
            directories += re.findall(r"^Directory: (\S+)$", stanza, re.MULTILINE)
    return sorted(set(directories))


def download(file: str, destination: Path, state: Path) -> None:
    """Download a file of Debian from a mirror.

    Args:
        file: the name of the file, which matches FILE.
        state: the directory in which apt's index files are kept for later calls.

    Raises:
        LookupError: the host has no apt or no Debian mirror, or no mirror has the file.
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
    # Use a separate directory for each kind, so that apt does not load the large lists of binary
    # packages to fetch sources.
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
    # Try every mirror, because an index may list a file that the mirror no longer has.
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
    """Query apt's mirrors for the packages of ``files``; return the suites of each package's files.

    Args:
        files: names of files; files that are not Debian's are ignored.
        state: the directory in which apt's index files are kept for later calls.

    Returns:
        The names of suites, such as ``bookworm``, by file name. The files include other versions of
        the packages.

    Raises:
        LookupError: the host has no apt, apt has no Debian mirror, or a mirror does not answer.
        CommandFailed: apt-cache does not know a package.
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
    """Parse the suites of each file from the output of apt-cache; return them by file name.

    Args:
        stanzas: the output of ``apt-cache showsrc`` or ``apt-cache show``.
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
        file: the name of an archive ``*.debian.tar.xz``, which contains Debian's patches.
        candidates: names of files; files of other packages or upstream releases are ignored.

    Returns:
        The version; None if no candidate is newer than ``file``, or if the host has no dpkg.
    """
    match = FILE.fullmatch(file)
    # Only dpkg can compare Debian's versions.
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
        omit: glob patterns of the paths of files that are not installed.
        epoch: the latest modification time of files, in seconds since 1970.
        suite: the codename of the release; by default the host's release.
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
        # The mirror may be a snapshot of the past, in which the release file has expired.
        options += ['--aptopt=Acquire::Check-Valid-Until "false"']
        word = f" {release} "
        entries = [entry.replace(word, f" {suite} ") for entry in entries if word in entry]
    else:
        # Without this hook bookworm installs perl in order to merge /usr.
        options += ["--hook-dir=/usr/share/mmdebstrap/hooks/merged-usr"]
    options += [f"--dpkgopt=path-exclude={pattern}" for pattern in omit]
    # Licences require that their text accompanies the program.
    options += ["--dpkgopt=path-include=/usr/share/doc/*/copyright"]
    # Remove the files that mmdebstrap copies from the host.
    options += ['--customize-hook=rm -f "$1/etc/hostname" "$1/etc/resolv.conf"']
    run(
        ["mmdebstrap", *options, suite or release, target, *entries],
        env={**os.environ, "SOURCE_DATE_EPOCH": str(epoch)},
    )


def _find_address(match: re.Match[str], state: Path) -> str:
    """Find the address of a file on the user's mirror without apt.

    The path of a source follows from its name (Debian Policy's pool layout). The path of a binary
    package is in the package lists of RELEASES, because it contains the name of the source.

    Args:
        match: a match of FILE.
        state: the directory in which the package lists are kept for later calls.

    Raises:
        LookupError: the variable MIRROR is not set, or the mirror does not list the package.
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
    """Return the key of SHOW for a match of FILE."""
    return "deb" if match["binary"] else "deb-src"


def _list_targets() -> str:
    # `apt-get indextargets` prints nothing before the first update, as in a new container.
    return run(["apt-get", "update", "--print-uris"]).output


def _parse_repositories(targets: str) -> list[tuple[str, str]]:
    """Parse the address and the release of each repository in apt's configuration.

    Args:
        targets: the output of ``apt-get update --print-uris``.
    """
    return sorted(set(re.findall(r"^'(\S+)/dists/(\S+)/InRelease'", targets, re.MULTILINE)))


def _configure(state: Path, kind: str) -> list[str]:
    """Write a separate configuration of apt; return the options with which apt uses it.

    The configuration has entries of ``kind`` on the host's mirrors.

    Args:
        state: the directory for apt's files.
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
    # Do not rewrite the same content: apt rebuilds its cache if sources.list is newer.
    if not file.exists() or file.read_text("utf-8") != entries:
        file.write_text(entries, encoding="utf-8")
    settings = {
        "Dir::Etc::SourceList": file,
        "Dir::Etc::SourceParts": "-",
        "Dir::State::Lists": lists,
        "Dir::Cache": state / "cache",
        # Enable this cache, which some hosts, such as containers, disable. Without the cache, each
        # query reads all lists.
        "Dir::Cache::pkgcache": "pkgcache.bin",
        "Dir::Cache::srcpkgcache": "",
        # Do not change to apt's user _apt, which may not write to the cache. The hash of
        # each download is verified.
        "APT::Sandbox::User": "root",
    }
    return [part for key, value in settings.items() for part in ("-o", f"{key}={value}")]
