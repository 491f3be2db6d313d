"""Convert the openblas image to a SIF file, and run it with Apptainer as an ordinary user."""

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

# This variable names a root file system with Apptainer, such as Debian unstable. The default is /.
VARIABLE = "THEANO_FAST_APPTAINER"
NO_APPTAINER = (
    f"apptainer is not on PATH: install it, or name a root file system that has it in {VARIABLE}"
    " (mmdebstrap --include=apptainer,squashfs-tools,squashfuse,fuse2fs sid DIRECTORY)"
)
# A script that runs Apptainer in the root file system `root`, as user 1000. Apptainer does not work
# in a chroot, so the script calls pivot_root. Apptainer also needs an account of its user and a
# /dev/fuse that the user may open, so the script mounts `passwd` and `fuse` from `directory`.
SHIM = """#!/bin/sh
exec unshare --mount --propagation=private sh -euc '
    cd "{directory}"
    mount --rbind "{root}" root
    mount --bind passwd root/etc/passwd
    mount -t proc proc root/proc
    mount --rbind /sys root/sys
    mount --rbind /dev root/dev
    mount --bind fuse root/dev/fuse
    mount -t tmpfs -o mode=1777 tmpfs root/tmp
    mount -t tmpfs tmpfs root/home
    mkdir "root{directory}" root/tmp/old root/home/user
    mount --bind home root/home/user
    mount --bind . "root{directory}"
    cd root
    pivot_root . tmp/old
    umount -l tmp/old
    cd "{directory}"
    exec setpriv --reuid=1000 --regid=1000 --clear-groups \
        env -i HOME=/home/user PATH=/usr/local/bin:/usr/bin:/bin TMPDIR="{directory}" apptainer "$@"
' sh "$@"
"""
COMPILES = """
import theano, theano.tensor as tt
x = tt.dvector()
print(theano.function([x], tt.exp(x) + 1, mode="FAST_RUN")([0.0]), theano.config.compiledir)
"""

Apptainer = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def apptainer(directory: Path, monkeypatch: pytest.MonkeyPatch) -> Apptainer:
    """Return a function that runs Apptainer as an ordinary user whose home is in ``directory``."""
    root = Path(os.environ.get(VARIABLE, "/"))
    if not any((root / folder / "apptainer").exists() for folder in ("usr/bin", "usr/local/bin")):
        pytest.skip(NO_APPTAINER)
    require("unshare", "setpriv", root=True)
    for name in ("bin", "home", "other", "root"):
        (directory / name).mkdir()
    for name in ("home", "other"):
        os.chown(directory / name, 1000, 1000)
    (directory / "passwd").write_text(
        "root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n"
    )
    os.mknod(directory / "fuse", stat.S_IFCHR, os.makedev(10, 229))
    (directory / "fuse").chmod(0o666)
    shim = directory / "bin" / "apptainer"
    shim.write_text(SHIM.format(root=root.resolve(), directory=directory))
    shim.chmod(0o755)
    monkeypatch.setenv("PATH", f"{directory}/bin:{os.environ['PATH']}")

    def run(*argv: str | Path) -> subprocess.CompletedProcess[str]:
        command = ["apptainer", *map(str, argv)]
        return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)

    return run


def test_a_sif_behaves_like_the_image(
    docker: DockerClient, image: Image, directory: Path, apptainer: Apptainer
) -> None:
    """The SIF file passes the same checks, is read-only, and caches modules in a home directory."""
    archive, file = directory / "openblas.tar", directory / "openblas.sif"
    images.save_image(docker, image, archive)
    archive.chmod(0o644)
    sif.build_sif(archive, file)

    # `apptainer exec` ignores the image's entrypoint, so this command runs without it.
    verified = apptainer("exec", file, "theano-fast", "verify", "--json", directory / "report.json")
    assert verified.returncode == 0, verified.stdout + verified.stderr
    statuses = [
        {check["name"]: check["status"] for check in checked["checks"]}
        for checked in (
            json.loads((directory / "report.json").read_text()),
            report.read(report.get_image_file("openblas"))["verify"],
        )
    ]
    assert statuses[0] == statuses[1]
    tested = apptainer("test", file)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    assert "openblas: verified" in tested.stdout
    assert apptainer("run", file, "theano-fast", "--version").stdout == "theano-fast 0.1.0\n"
    assert "Read-only" in apptainer("exec", file, "touch", "/opt/theano-fast/new").stderr

    for options, compiledir in (
        ([], "/home/user/.theano/openblas/"),
        (["--home", directory / "other"], f"{directory}/other/.theano/openblas/"),
        (["--contain"], "/home/user/.theano/openblas/"),
        (["--no-home"], "/"),
    ):
        done = apptainer("exec", *options, file, "python", "-c", COMPILES)
        assert done.stdout.startswith(f"[2.] {compiledir}"), done.stderr
        assert ("modules are not cached" in done.stderr) == (compiledir == "/"), done.stderr
    assert list((directory / "home").glob(".theano/openblas/*"))
