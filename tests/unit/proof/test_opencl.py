"""Test the search for the host's OpenCL libraries, and the check of the OpenCL device."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common.errors import CommandFailed, HostToolMissing
from builder.common.processes import Finished
from builder.proof import opencl

# The output of ldconfig -p.
LISTING = """4 libs found in cache `/etc/ld.so.cache'
\tlibclblast.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libclblast.so.1
\tlibOpenCL.so.1 (libc6,x86-64) => /lib/x86_64-linux-gnu/libOpenCL.so.1
\tlibstdc++.so.6 (libc6,x86-64) => /lib/x86_64-linux-gnu/libstdc++.so.6
\tlibOpenCL.so.1 (libc6) => /lib/i386-linux-gnu/libOpenCL.so.1
"""


def set_listing(listing: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl.processes, "run", lambda _: Finished(0, listing))


def test_libraries_are_symlinked_under_their_names_without_a_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_listing(LISTING, monkeypatch)
    # The second call finds the symlinks of an interrupted run.
    for _ in range(2):
        variables = opencl.make_environ(tmp_path)
    links = Path(variables["LD_LIBRARY_PATH"]).iterdir()
    assert {link.name: str(link.readlink()) for link in links} == {
        "libOpenCL.so": "/lib/x86_64-linux-gnu/libOpenCL.so.1",
        "libclblast.so": "/lib/x86_64-linux-gnu/libclblast.so.1",
    }
    assert variables["LD_PRELOAD"] == "/lib/x86_64-linux-gnu/libstdc++.so.6"


def test_the_error_names_a_missing_library_and_its_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_listing(LISTING.replace("libclblast.so.1", "libclblast.so.2"), monkeypatch)
    with pytest.raises(HostToolMissing, match=r"no libclblast\.so\.1\n.*apt-get .* libclblast1"):
        opencl.make_environ(tmp_path)


class Device:
    """A fake OpenCL device on which each program ends with the next exit code of ``statuses``."""

    def __init__(self, *statuses: int) -> None:
        self.statuses = list(statuses)

    def run(self, _: object, *, check: bool = True, **__: object) -> Finished:
        status = self.statuses.pop(0)
        if check and status:
            raise CommandFailed("No OpenCL platform")
        return Finished(status, "")


def test_a_device_that_does_not_compute_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opencl.processes, "run", Device(1, 1).run)
    with pytest.raises(HostToolMissing, match=r"No OpenCL platform\n.*pocl-opencl-icd"):
        opencl.check_device(Path("python"), {})


@pytest.mark.parametrize("statuses", [[0], [-11, 0]])
def test_one_crash_is_not_an_error(statuses: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    device = Device(*statuses)
    monkeypatch.setattr(opencl.processes, "run", device.run)
    opencl.check_device(Path("python"), {})
    assert device.statuses == []
