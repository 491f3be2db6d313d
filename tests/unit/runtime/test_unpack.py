from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest
from theano_fast import unpack

OLD = "/placeholder" * 15

Archive = Callable[[Path], None]


@pytest.fixture
def make() -> Archive:
    """Return a function that writes an archive's files into a directory."""

    def write(prefix: Path) -> None:
        files = {
            "etc/theanorc": f"-L{OLD}/lib -I{OLD}/include\n".encode(),
            "lib/binary": f"\x7fELF\0{OLD}/a:{OLD}/b\0end".encode(),
            "lib/module.py": f"HOME = '{OLD}'\n".encode(),
        }
        state = {"placeholder": OLD, "files": sorted(files)}
        files[str(unpack.LIST)] = json.dumps(state).encode()
        for name, content in files.items():
            (prefix / name).parent.mkdir(parents=True, exist_ok=True)
            (prefix / name).write_bytes(content)
        (prefix / "etc/theanorc").chmod(0o640)

    return write


def test_the_placeholder_is_replaced_in_every_kind_of_file(make: Archive, tmp_path: Path) -> None:
    prefix = tmp_path / "p"
    make(prefix)
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


def test_an_interrupted_unpacking_continues(
    make: Archive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path)
    monkeypatch.setattr(unpack, "replace", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        unpack.unpack(tmp_path)
    monkeypatch.undo()
    assert "before" not in unpack.unpack(tmp_path)
    assert "already" in unpack.unpack(tmp_path)


def test_a_moved_environment_is_refused(make: Archive, tmp_path: Path) -> None:
    make(tmp_path / "a")
    unpack.unpack(tmp_path / "a")
    (tmp_path / "a").rename(tmp_path / "b")
    with pytest.raises(unpack.UnpackError, match="unpack the archive again"):
        unpack.unpack(tmp_path / "b")


def test_a_longer_path_is_refused(make: Archive, tmp_path: Path) -> None:
    prefix = tmp_path / ("x" * len(OLD))
    make(prefix)
    with pytest.raises(unpack.UnpackError, match=f"longer than {len(OLD)} bytes"):
        unpack.unpack(prefix)
    assert OLD in (prefix / "etc/theanorc").read_text()


def test_a_missing_list_is_a_one_line_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.prefix", str(tmp_path))
    assert unpack.main() == 1
    assert len(capsys.readouterr().err.splitlines()) == 1
