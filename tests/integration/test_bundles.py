"""Write a bundle (one archive of the repository and its sources), and build from the bundle."""

from __future__ import annotations

import os
import subprocess
import tarfile
from pathlib import Path

import pytest
from support import Project, require

from builder.source.sources import hash_file


@pytest.mark.thorough
def test_a_build_from_a_bundle_needs_no_network(
    project: Project, tmp_path: Path, no_network: tuple[str, ...]
) -> None:
    """Two bundles have equal bytes; a checkout from a bundle builds with an empty cache."""
    require("git")
    for command in (["git", "init", "--quiet"], ["git", "add", "."]):
        subprocess.run(command, cwd=project.root, check=True)
    bundles = [tmp_path / "one.tar", tmp_path / "elsewhere" / "two.tar"]
    for bundle in bundles:
        bundle.parent.mkdir(exist_ok=True)
        status, output = project.invoke("fetch", "--stack=openblas", f"--bundle={bundle}")
        assert status == 0, output
        assert hash_file(bundle) in output.replace("\n", "")
    assert bundles[0].read_bytes() == bundles[1].read_bytes()

    with tarfile.open(bundles[0]) as tar:
        repository = [item for item in tar if item.name.startswith("theano-fast/")]
        tar.extractall(tmp_path / "carried", repository)
    checkout = tmp_path / "carried" / "theano-fast"
    clean = {key: value for key, value in os.environ.items() if not key.startswith("PIP_")}
    build = subprocess.run(
        [*no_network, "./invoke", "packages", "--stack=openblas", f"--bundle={bundles[0]}"],
        cwd=checkout,
        env={**clean, "THEANO_FAST_CACHE": str(tmp_path / "cache"), "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert build.returncode == 0, build.stdout + build.stderr
    assert list((checkout / "build" / "channel" / "linux-64").glob("zlib-*.conda"))
