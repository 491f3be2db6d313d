"""Update a conda environment with the command of docs/conda.md."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest
import zstandard
from commands import EXAMPLE, Conda, list_installed, read_lock, read_page, run_first_lines

from builder.common import paths
from builder.environment import envs
from builder.package import channel as channels
from builder.package import solver

NAME = "theano-openblas"


def rebuild_package(package: Path, target: Path) -> str:
    """Write a copy of a package with a higher build number to ``target``; return its file name."""
    with zipfile.ZipFile(package) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    (info,) = (name for name in members if name.startswith("info-"))
    old_info = io.BytesIO(zstandard.ZstdDecompressor().decompressobj().decompress(members[info]))
    new_info = io.BytesIO()
    with tarfile.open(fileobj=old_info) as tar, tarfile.open(fileobj=new_info, mode="w") as out:
        for entry in tar:
            stream = tar.extractfile(entry)
            content = stream.read() if stream else b""
            if entry.name == "info/index.json":
                index = json.loads(content)
                index["build_number"] += 1
                build = index["build"].rpartition("_")[0] + f"_{index['build_number']}"
                index["build"] = build
                content = json.dumps(index).encode()
                entry.size = len(content)
            out.addfile(entry, io.BytesIO(content))
    name = f"{index['name']}-{index['version']}-{build}"
    with zipfile.ZipFile(target / f"{name}.conda", "w") as archive:
        for member, content in members.items():
            if member == info:
                archive.writestr(f"info-{name}.tar.zst", zstandard.compress(new_info.getvalue()))
            elif member.startswith("pkg-"):
                archive.writestr(f"pkg-{name}.tar.zst", content)
            else:
                archive.writestr(member, content)
    return f"{name}.conda"


@pytest.mark.parametrize("name", [envs.LOCK_NAME, "environment.yml"])
def test_update_installs_a_newer_build(
    user: Conda, channel: Path, name: str, tmp_path: Path
) -> None:
    """The update changes nothing, until the channel has a newer build of zlib.

    ``name`` is the file from which conda creates the environment.
    """
    channel_copy = tmp_path / "channel"
    before = set(read_lock("openblas"))
    for subdir in ("linux-64", "noarch"):
        (channel_copy / subdir).mkdir(parents=True)
        for file in (channel / subdir).glob("*.conda"):
            if file.name in before:
                channels.link_or_copy(file, channel_copy / subdir / file.name)
    solver.call("index", channel=str(channel_copy))
    address = f"file://{channel_copy}"
    file = shutil.copy(paths.LOCKS / "openblas" / name, tmp_path)
    run_first_lines(user, Path(file), address)
    prefix = user.get_prefix(NAME)
    assert list_installed(prefix) == before
    (update,) = read_page("Update")
    user.run(update.replace(EXAMPLE, address), tmp_path)
    assert list_installed(prefix) == before

    (old,) = (file for file in before if file.startswith("zlib-"))
    new = rebuild_package(channel_copy / "linux-64" / old, channel_copy / "linux-64")
    solver.call("index", channel=str(channel_copy))
    user.run(update.replace(EXAMPLE, address), tmp_path)
    assert list_installed(prefix) == before - {old} | {new}
