"""Test the archives that `./invoke pack` writes: placeholders, bytes and verification."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from builder.common import processes
from builder.common.errors import VerifyFailed
from builder.common.processes import Finished
from builder.environment import archives, packs
from builder.environment.envs import Lock

LOCK = Lock("openblas", "x", ())
TOP = "theano-fast-openblas"


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Write the archive of an environment with three files and a symlink; return its path."""

    def install(lock: Lock, prefix: Path, final_prefix: Path, what: str) -> None:
        for name, content in {
            "bin/python": "any",
            "etc/theanorc": f"-L{final_prefix}/lib",
            "lib/module.pyc": f"{final_prefix}/lib/module.py",
        }.items():
            (prefix / name).parent.mkdir()
            (prefix / name).write_text(content)
        (prefix / "link").symlink_to("etc/theanorc")

    monkeypatch.setattr(archives, "install_relocated", install)
    file = tmp_path / "openblas.tar.gz"
    packs.write_archive(LOCK, "2.36", file)
    return file


def test_an_archive_lists_the_files_that_contain_the_placeholder(archive: Path) -> None:
    with tarfile.open(archive) as tar:
        assert {name.partition("/")[0] for name in tar.getnames()} == {TOP}
        script = tar.getmember(f"{TOP}/{packs.UNPACK}")
        stream = tar.extractfile(f"{TOP}/{packs.LIST}")
        assert stream is not None
        files = json.load(stream)
    assert script.mode == 0o755
    assert files == {"files": ["etc/theanorc"], "placeholder": str(packs.PLACEHOLDER)}
    assert len(bytes(packs.PLACEHOLDER)) == 255


def test_an_archive_is_reproducible(archive: Path) -> None:
    before = archive.read_bytes()
    packs.write_archive(LOCK, "2.36", archive)
    assert archive.read_bytes() == before
    assert list(archive.parent.iterdir()) == [archive]


def test_the_unpacked_archive_is_verified(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def run(argv: list[str | Path], *, check: bool = True, **_: object) -> Finished:
        commands.append([Path(part).name for part in argv[-2:]])
        return Finished(1 if "verify" in argv else 0, "blas failed")

    monkeypatch.setattr(processes, "run", run)
    with pytest.raises(VerifyFailed, match="blas failed"):
        packs.verify_archive(archive, "openblas")
    assert [words[-1] for words in commands] == [archive.name, "theano-fast-unpack", "verify"]
