"""Test the list of an environment's symlinks, and that its tar archive is reproducible."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path

from builder.environment import archives


def test_symlinks_are_listed_even_if_they_are_broken_or_name_a_directory(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib64").symlink_to("lib")
    (tmp_path / "lib" / "gone").symlink_to("nothing")
    assert archives.list_files(tmp_path) == [tmp_path / "lib" / "gone", tmp_path / "lib64"]


def test_an_archive_depends_only_on_the_contents_of_its_files(tmp_path: Path) -> None:
    """Modification times and the permissions of group and others do not change an archive."""
    for name, time, mode in (("a", 1, 0o700), ("b", 2, 0o755)):
        root = tmp_path / name
        (root / "bin").mkdir(parents=True)
        (root / "bin" / "python3").write_text("#!")
        (root / "bin" / "python3").chmod(mode)
        os.utime(root / "bin" / "python3", (time, time))
        (root / "bin" / "python").symlink_to("python3")
        with (tmp_path / f"{name}.tar").open("wb") as stream:
            files = archives.list_files(root)
            archives.write_tar(stream, root, files, Path("/opt/theano-fast"), [Path("/work")])
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert tar.getmember("opt/theano-fast/bin/python").linkname == "python3"
        assert tar.getmember("opt/theano-fast/bin/python3").mode == 0o755
        assert tar.getmember("work").mode == 0o1777
        assert {member.uid for member in tar} == {0}
