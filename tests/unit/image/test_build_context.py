"""Test the two archives of a Docker build context; a fake solver installs the packages."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest

from builder.common.errors import CommandFailed, EnvironmentFailed
from builder.environment import envs
from builder.environment.envs import Lock
from builder.image import build_context
from builder.package import solver
from builder.package.channel import Package

SITE = "lib/python3.11/site-packages"


def make_package(name: str, digest: str = "ab") -> Package:
    return Package(Path(f"/c/{name}-1.0-h0_0.conda"), "noarch", digest * 32, 5)


LOCK = Lock(
    "openblas",
    "x",
    (make_package("numpy"), make_package("theano-fast"), make_package("theano-stack")),
)


@pytest.fixture
def installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> list[str]:
    """Replace the installation of packages; return the prefixes of all installations.

    The fake installation writes a module, a conda record and a licence for each package.
    """
    calls = []
    unpacked = tmp_path_factory.mktemp("pkgs")

    def install(verb: str, *, prefix: str, files: list[str], **request: object) -> None:
        calls.append(str(request["final_prefix"]))
        for file in files:
            name = Path(file).stem
            module = Path(prefix, SITE, f"{name}.py")
            record = Path(prefix, "conda-meta", f"{name}.json")
            for path in (module, record):
                path.parent.mkdir(parents=True, exist_ok=True)
            module.write_text(f"# {name}\n")
            texts = unpacked / name / "info" / "licenses"
            texts.mkdir(parents=True, exist_ok=True)
            (texts / "COPYING").write_text(f"as you like, {name}")
            members = {
                "files": [f"{SITE}/{name}.py"],
                "url": file,
                "extracted_package_dir": str(unpacked / name),
            }
            record.write_text(json.dumps(members))

    def compile_all(argv: list[str | Path], **_: object) -> None:
        for module in map(Path, Path(argv[-1]).read_text().splitlines()):
            compiled = module.parent / "__pycache__" / f"{module.stem}.cpython-311.pyc"
            compiled.parent.mkdir(exist_ok=True)
            compiled.write_bytes(b"pyc")

    monkeypatch.setattr(solver, "call", install)
    monkeypatch.setattr(envs, "run", compile_all)
    return calls


def list_names(archive: Path) -> set[str]:
    with tarfile.open(archive) as tar:
        return {member.name for member in tar if not member.isdir()}


def test_the_layers_contain_each_file_once_with_its_bytecode(
    installed: list[str], tmp_path: Path
) -> None:
    build_context.write_context(LOCK, tmp_path / "openblas")
    first, last = (
        list_names(tmp_path / "openblas" / f"{layer}.tar") for layer in ("dependencies", "stack")
    )
    assert installed == ["/opt/theano-fast"]
    assert first == {
        "opt/theano-fast/conda-meta/numpy-1.0-h0_0.json",
        f"opt/theano-fast/{SITE}/numpy-1.0-h0_0.py",
        f"opt/theano-fast/{SITE}/__pycache__/numpy-1.0-h0_0.cpython-311.pyc",
        "opt/theano-fast/share/licenses/numpy/COPYING",
    }
    assert len(last) == 8
    assert not first & last
    assert sorted(entry.name for entry in (tmp_path / "openblas").iterdir()) == [
        "dependencies.tar",
        "stack.tar",
    ]


def test_records_contain_no_path_of_the_host(installed: list[str], tmp_path: Path) -> None:
    build_context.write_context(LOCK, tmp_path / "openblas")
    with tarfile.open(tmp_path / "openblas" / "stack.tar") as tar:
        stream = tar.extractfile("opt/theano-fast/conda-meta/theano-stack-1.0-h0_0.json")
        assert stream is not None
        record = json.load(stream)
    assert record["url"] == "file:///noarch/theano-stack-1.0-h0_0.conda"
    assert "extracted_package_dir" not in record


def test_a_change_in_the_stack_packages_keeps_the_dependencies_archive(
    installed: list[str], tmp_path: Path
) -> None:
    build_context.write_context(LOCK, tmp_path / "openblas")
    archive = tmp_path / "openblas" / "dependencies.tar"
    archive.write_bytes(b"unchanged")
    changed = (
        make_package("numpy"),
        make_package("theano-fast", "cd"),
        make_package("theano-stack"),
    )
    build_context.write_context(Lock("openblas", "x", changed), tmp_path / "openblas")
    assert archive.read_bytes() == b"unchanged"
    build_context.write_context(
        Lock("openblas", "x", (make_package("numpy", "cd"),)), tmp_path / "openblas"
    )
    assert archive.read_bytes() != b"unchanged"


def test_a_failed_installation_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: object, **__: object) -> None:
        raise CommandFailed("no room")

    monkeypatch.setattr(solver, "call", fail)
    with pytest.raises(EnvironmentFailed, match="no room"):
        build_context.write_context(LOCK, tmp_path / "openblas")
    assert not list((tmp_path / "openblas").iterdir())
