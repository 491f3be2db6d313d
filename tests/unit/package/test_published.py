"""Test the index files of a channel that `./invoke publish` writes."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard

from builder.package import published, solver
from builder.package.channel import Package


def write_package(directory: Path, version: str, number: int, subdir: str = "linux-64") -> Package:
    """Write a package of zlib that contains only the info files which the index reads."""
    stem = f"zlib-{version}-h0_{number}"
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w") as tar:
        for name, content in {
            "index": {
                "name": "zlib",
                "version": version,
                "build_number": number,
                "license": "Zlib",
            },
            "about": {"summary": f"compresses {version}"},
            "run_exports": {"weak": [f"zlib >={version}"]},
        }.items():
            text = json.dumps(content).encode()
            member = tarfile.TarInfo(f"info/{name}.json")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text))
    file = directory / f"{stem}.conda"
    with zipfile.ZipFile(file, "w") as archive:
        compressed = zstandard.ZstdCompressor().compress(stream.getvalue())
        archive.writestr(f"info-{stem}.tar.zst", compressed)
    return Package(file, subdir, "ab" * 32, file.stat().st_size)


def test_a_published_channel_has_all_index_files_and_all_versions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = []
    monkeypatch.setattr(solver, "call", lambda verb, **request: calls.append((verb, request)))
    channel = tmp_path / "channel"
    for version, number in (("1.2", 0), ("1.3", 1)):
        published.publish([write_package(tmp_path, version, number)], channel)
    assert calls == [("index", {"channel": str(channel), "every_form": True})] * 2
    exports = json.loads((channel / "linux-64" / "run_exports.json").read_text())
    assert exports["info"] == {"subdir": "linux-64", "version": 1}
    assert exports["packages.conda"]["zlib-1.2-h0_0.conda"] == {
        "run_exports": {"weak": ["zlib >=1.2"]}
    }
    compressed = (channel / "linux-64" / "run_exports.json.zst").read_bytes()
    assert json.loads(zstandard.ZstdDecompressor().decompress(compressed)) == exports
    entry = json.loads((channel / "channeldata.json").read_text())["packages"]["zlib"]
    assert entry["summary"] == "compresses 1.3"
    assert entry["reference_package"] == "linux-64/zlib-1.3-h0_1.conda"
    assert set(entry["run_exports"]) == {"1.2", "1.3"}
    assert not list(channel.rglob(".*.part"))


@pytest.mark.parametrize("subdir", ["linux-64", "noarch"])
def test_the_newest_version_describes_a_package(
    subdir: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a higher build number of an older version nor the last subdirectory describes it."""
    monkeypatch.setattr(solver, "call", lambda *_, **__: None)
    channel = tmp_path / "channel"
    builds = [("3.11.6", 0, subdir), ("3.11.6", 1, subdir), ("3.9.3", 5, "noarch")]
    published.publish([write_package(tmp_path, *build) for build in builds], channel)
    entry = json.loads((channel / "channeldata.json").read_text())["packages"]["zlib"]
    assert entry["version"] == "3.11.6"
    assert entry["summary"] == "compresses 3.11.6"
    assert entry["reference_package"] == f"{subdir}/zlib-3.11.6-h0_1.conda"
