"""Test that unpack writes the prefix into an environment's files, even after an interrupt."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from theano_fast import unpack

PLACEHOLDER = "/placeholder" * 15

Archive = Callable[[Path], None]


@pytest.fixture
def unpack_archive() -> Archive:
    """Return a function that writes the files of an archive into a directory."""

    def write(prefix: Path) -> None:
        files = {
            "etc/theanorc": f"-L{PLACEHOLDER}/lib -I{PLACEHOLDER}/include\n".encode(),
            "lib/binary": f"\x7fELF\0{PLACEHOLDER}/a:{PLACEHOLDER}/b\0end".encode(),
            "lib/module.py": f"HOME = '{PLACEHOLDER}'\n".encode(),
        }
        state = {"placeholder": PLACEHOLDER, "files": sorted(files)}
        files[str(unpack.LIST)] = json.dumps(state).encode()
        for name, content in files.items():
            (prefix / name).parent.mkdir(parents=True, exist_ok=True)
            (prefix / name).write_bytes(content)
        (prefix / "etc/theanorc").chmod(0o640)

    return write


def test_the_placeholder_is_replaced_in_every_kind_of_file(
    unpack_archive: Archive, tmp_path: Path
) -> None:
    prefix = tmp_path / "p"
    unpack_archive(prefix)
    length = (prefix / "lib/binary").stat().st_size
    assert "unpacked" in unpack.unpack(prefix)
    assert (prefix / "etc/theanorc").read_text() == f"-L{prefix}/lib -I{prefix}/include\n"
    assert (prefix / "etc/theanorc").stat().st_mode & 0o777 == 0o640
    binary = (prefix / "lib/binary").read_bytes()
    assert len(binary) == length
    assert binary.rstrip(b"\0").split(b"\0")[1] == f"{prefix}/a:{prefix}/b".encode()
    assert binary.endswith(b"\0end")
    module = prefix / "lib/module.py"
    bytecode = Path(importlib.util.cache_from_source(str(module))).read_bytes()
    assert bytecode[4:8] == (3).to_bytes(4, "little")
    assert bytecode[8:16] == importlib.util.source_hash(module.read_bytes())


def test_after_an_interrupt_unpack_continues_and_then_does_nothing(
    unpack_archive: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    unpack_archive(tmp_path)
    monkeypatch.setattr(unpack, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        unpack.unpack(tmp_path)
    monkeypatch.undo()
    assert "before" not in unpack.unpack(tmp_path)
    assert "already" in unpack.unpack(tmp_path)


def test_an_environment_that_was_moved_after_unpack_is_refused(
    unpack_archive: Archive, tmp_path: Path
) -> None:
    unpack_archive(tmp_path / "a")
    unpack.unpack(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(unpack.UnpackError, match="unpack the archive again"):
        unpack.unpack(tmp_path / "b")


def test_a_prefix_longer_than_the_placeholder_is_refused(
    unpack_archive: Archive, tmp_path: Path
) -> None:
    prefix = tmp_path / ("x" * len(PLACEHOLDER))
    unpack_archive(prefix)
    with pytest.raises(unpack.UnpackError, match=f"longer than {len(PLACEHOLDER)} bytes"):
        unpack.unpack(prefix)
    assert PLACEHOLDER in (prefix / "etc/theanorc").read_text()


def test_the_error_without_a_list_of_files_has_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert unpack.main() == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
