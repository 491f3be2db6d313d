"""The image as a SIF, with Apptainer itself, as an ordinary user."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from python_on_whales import DockerClient
from support import require

from builder import report
from builder.image import images, sif
from builder.image.images import Image

# A root file system that has Apptainer, as of Debian's unstable; this machine's by default.
VARIABLE = "THEANO_FAST_APPTAINER"
NONE = (
    f"no apptainer: have it on PATH, or name in {VARIABLE} a root file system that has it"
    " (mmdebstrap --include=apptainer,squashfs-tools,squashfuse,fuse2fs sid DIRECTORY)"
)
# Apptainer wants a root that is no chroot's, an account, and a /dev/fuse that its user may open.
SHIM = """#!/bin/sh
exec unshare --mount --propagation=private sh -euc '
    cd "{place}"
    mount --rbind "{root}" root
    mount --bind passwd root/etc/passwd
    mount -t proc proc root/proc
    mount --rbind /sys root/sys
    mount --rbind /dev root/dev
    mount --bind fuse root/dev/fuse
    mount -t tmpfs -o mode=1777 tmpfs root/tmp
    mount -t tmpfs tmpfs root/home
    mkdir "root{place}" root/tmp/old root/home/user
    mount --bind home root/home/user
    mount --bind . "root{place}"
    cd root
    pivot_root . tmp/old
    umount -l tmp/old
    cd "{place}"
    exec setpriv --reuid=1000 --regid=1000 --clear-groups \
        env -i HOME=/home/user PATH=/usr/local/bin:/usr/bin:/bin TMPDIR="{place}" apptainer "$@"
' sh "$@"
"""
COMPILES = """
import theano, theano.tensor as tt
x = tt.dvector()
print(theano.function([x], tt.exp(x) + 1, mode="FAST_RUN")([0.0]), theano.config.compiledir)
"""

Apptainer = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def apptainer(place: Path, monkeypatch: pytest.MonkeyPatch) -> Apptainer:
    """Run Apptainer in a directory that any user may write to, as a user whose home is in it."""
    root = Path(os.environ.get(VARIABLE, "/"))
    if not any(
        (root / directory / "apptainer").exists() for directory in ("usr/bin", "usr/local/bin")
    ):
        pytest.skip(NONE)
    require("unshare", "setpriv", root=True)
    for name in ("bin", "home", "other", "root"):
        (place / name).mkdir()
    for name in ("home", "other"):
        os.chown(place / name, 1000, 1000)
    (place / "passwd").write_text(
        "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"
    )
    os.mknod(place / "fuse", stat.S_IFCHR, os.makedev(10, 229))
    (place / "fuse").chmod(0o666)
    shim = place / "bin" / "apptainer"
    shim.write_text(SHIM.format(root=root.resolve(), place=place))
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{place}/bin:{os.environ['PATH']}")

    def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
        command = ["apptainer", *map(str, argv)]
        return subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)

    return run


def test_a_sif_is_what_the_image_is(
    docker: DockerClient, image: Image, place: Path, apptainer: Apptainer
) -> None:
    archive, file = place / "openblas.tar", place / "openblas.sif"
    images.save(docker, image, archive)
    archive.chmod(0o644)
    sif.build(archive, file)

    # The entrypoint is passed over.
    verified = apptainer("exec", file, "theano-fast", "verify", "--json", place / "report.json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    statuses = [
        {check["name"]: check["status"] for check in known["checks"]}
        for known in (
            json.loads((place / "report.json").read_text()),
            report.read(report.image_file("openblas"))["verify"],
        )
    ]
    assert statuses[0] == statuses[1]
    tested = apptainer("test", file)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "openblas: verified" in tested.stdout
    assert apptainer("run", file, "theano-fast", "--version").stdout == "theano-fast 0.1.0\n"
    assert "Read-only" in apptainer("exec", file, "touch", "/opt/theano-fast/new").stderr

    for options, kept in (
        ([], "/home/user/.theano/openblas/"),
        (["--home", place / "other"], f"{place}/other/.theano/openblas/"),
        (["--contain"], "/home/user/.theano/openblas/"),
        (["--no-home"], "/"),
    ):
        done = apptainer("exec", *options, file, "python", "-c", COMPILES)
        assert done.stdout.startswith(f"[2.] {kept}"), done.stderr
        assert ("what is compiled is not kept" in done.stderr) == (kept == "/"), done.stderr
    assert list((place / "home").glob(".theano/openblas/*"))
