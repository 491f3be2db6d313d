"""A channel as clients of any kind expect one that is served: all the forms of its index."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import zstandard

from builder.package import canonical, solver
from builder.package.channel import SUBDIRS, Package


def write(packages: Iterable[Package], directory: Path) -> None:
    """Put packages into the channel at ``directory``, beside those that it has, and index all.

    Beside ``repodata.json`` there are its compressed form and shards, ``run_exports.json`` of each
    subdirectory, as CEP 12 defines it, and conda-index's ``channeldata.json``.
    """
    for subdir in SUBDIRS:
        (directory / subdir).mkdir(parents=True, exist_ok=True)
    for package in packages:
        # A copy: what is published does not change with the cache.
        part = directory / package.subdir / f".{package.file.name}.part"
        shutil.copyfile(package.file, part)
        part.replace(directory / package.path)
    solver.call("index", channel=str(directory), every_form=True)
    found = {subdir: _information(directory / subdir) for subdir in SUBDIRS}
    for subdir, files in found.items():
        exports = {name: {"run_exports": known["run_exports"]} for name, known in files.items()}
        content = {"info": {"subdir": subdir, "version": 1}, "packages": {}}
        text = json.dumps({**content, "packages.conda": exports}, sort_keys=True).encode()
        _write(directory / subdir / "run_exports.json", text)
        compressed = zstandard.ZstdCompressor(19).compress(text)
        _write(directory / subdir / "run_exports.json.zst", compressed)
    channeldata = json.dumps(_channeldata(found), indent=2, sort_keys=True) + "\n"
    _write(directory / "channeldata.json", channeldata.encode())


def _information(directory: Path) -> dict[str, dict[str, Any]]:
    """What the packages of a subdirectory say of themselves, by file name."""
    found = {}
    for file in sorted(directory.glob("*.conda")):
        said = canonical.metadata(file)
        found[file.name] = {
            key: said.get(f"{key}.json", {}) for key in ("index", "about", "run_exports")
        }
    return found


def _channeldata(found: dict[str, dict[str, dict[str, Any]]]) -> dict[str, Any]:
    packages: dict[str, Any] = {}
    for subdir, files in found.items():
        for name, known in sorted(files.items(), key=lambda item: item[1]["index"]["build_number"]):
            index, about = known["index"], known["about"]
            entry = packages.setdefault(index["name"], {"subdirs": [], "run_exports": {}})
            entry["subdirs"] = sorted({*entry["subdirs"], subdir})
            entry["run_exports"][index["version"]] = known["run_exports"]
            entry |= {
                "version": index["version"],
                "license": index.get("license"),
                "summary": about.get("summary"),
                "home": about.get("home"),
                "reference_package": f"{subdir}/{name}",
            }
    return {"channeldata_version": 1, "subdirs": list(SUBDIRS), "packages": packages}


def _write(file: Path, content: bytes) -> None:
    part = file.with_name(f".{file.name}.part")
    part.write_bytes(content)
    part.replace(file)
