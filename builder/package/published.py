"""Publish packages in a channel for a web server, with all index files that clients read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import zstandard
from rattler import Version

from builder.common.files import write_atomically
from builder.package import canonical, solver
from builder.package.channel import SUBDIRS, Package

# The content of a package's index.json, about.json and run_exports.json, by name without suffix.
Descriptions = dict[str, dict[str, Any]]


def publish(packages: Iterable[Package], directory: Path) -> None:
    """Add packages to the channel at ``directory``, and index all packages there.

    Each subdirectory gets ``repodata.json``, its compressed form and its shards, and
    ``run_exports.json`` (CEP 12). The channel gets ``channeldata.json`` in conda-index's format.

    Raises:
        CommandFailed: the channel cannot be indexed.
    """
    for subdir in SUBDIRS:
        (directory / subdir).mkdir(parents=True, exist_ok=True)
    for package in packages:
        # Do not link the file: changes in the cache must not change published packages.
        part = directory / package.subdir / f".{package.file.name}.part"
        shutil.copyfile(package.file, part)
        part.replace(directory / package.path)
    solver.call("index", channel=str(directory), every_form=True)
    subdirs = {subdir: _read_descriptions(directory / subdir) for subdir in SUBDIRS}
    for subdir, files in subdirs.items():
        document = {
            "info": {"subdir": subdir, "version": 1},
            "packages": {},
            "packages.conda": {
                name: {"run_exports": descriptions["run_exports"]}
                for name, descriptions in files.items()
            },
        }
        text = json.dumps(document, sort_keys=True).encode()
        write_atomically(directory / subdir / "run_exports.json", text)
        compressed = zstandard.ZstdCompressor(19).compress(text)
        write_atomically(directory / subdir / "run_exports.json.zst", compressed)
    channeldata = json.dumps(_make_channeldata(subdirs), indent=2, sort_keys=True) + "\n"
    write_atomically(directory / "channeldata.json", channeldata)


def _read_descriptions(directory: Path) -> dict[str, Descriptions]:
    """Read the descriptions of all packages in a subdirectory, by file name."""
    files = {}
    for file in sorted(directory.glob("*.conda")):
        metadata = canonical.read_metadata(file)
        files[file.name] = {
            key: metadata.get(f"{key}.json", {}) for key in ("index", "about", "run_exports")
        }
    return files


def _make_channeldata(subdirs: Mapping[str, Mapping[str, Descriptions]]) -> dict[str, Any]:
    """Make the content of ``channeldata.json``: an entry for each name of a package.

    The newest version, and of its builds the one with the highest build number, determines the
    version and the description.

    Args:
        subdirs: the descriptions of packages, by subdirectory and file name.
    """
    rows = [
        (subdir, file, descriptions)
        for subdir, files in subdirs.items()
        for file, descriptions in files.items()
    ]

    def get_version_and_number(row: tuple[str, str, Descriptions]) -> tuple[Version, int]:
        index = row[2]["index"]
        return Version(index["version"]), index["build_number"]

    packages: dict[str, Any] = {}
    # A later row of a package replaces the version and the description of an earlier row.
    for subdir, file, descriptions in sorted(rows, key=get_version_and_number):
        index, about = descriptions["index"], descriptions["about"]
        entry = packages.setdefault(index["name"], {"subdirs": [], "run_exports": {}})
        entry["subdirs"] = sorted({*entry["subdirs"], subdir})
        entry["run_exports"][index["version"]] = descriptions["run_exports"]
        entry |= {
            "version": index["version"],
            "license": index.get("license"),
            "summary": about.get("summary"),
            "home": about.get("home"),
            "reference_package": f"{subdir}/{file}",
        }
    return {"channeldata_version": 1, "subdirs": list(SUBDIRS), "packages": packages}
