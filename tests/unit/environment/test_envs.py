"""Test lock files, the specs of a stack, and the installation of environments."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from rattler import MatchSpec

from builder.common import paths
from builder.common.errors import CommandFailed, EnvironmentFailed, NotReproducible, SolveFailed
from builder.environment import envs
from builder.environment.envs import Lock
from builder.package import solver
from builder.package.channel import Package
from builder.stack.recipes import Output, Recipe
from builder.stack.stacks import load

STACK = load("openblas")
PACKAGE = Package(Path("/c/numpy-1.26.4-h0_0.conda"), "linux-64", "ab" * 32, 5)
LOCK = Lock("openblas", ("theano-stack ==1.0.5 0_openblas",), (PACKAGE,))
METAPACKAGE = Recipe(
    "theano-stack",
    Path("/p"),
    (Output("theano-stack", "1.0.5", "0_openblas", ()),),
    (),
    (),
    (),
)


FILES = (envs.LOCK_NAME, "environment.yml")


@pytest.fixture(autouse=True)
def environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the directory of environments, which does not exist yet."""
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path / "envs")
    return tmp_path / "envs"


def test_the_spec_selects_the_build_of_the_stack() -> None:
    [spec] = envs.make_specs(STACK, METAPACKAGE)
    assert MatchSpec(spec).matches(METAPACKAGE.outputs[0].record)
    other_build = Output("theano-stack", "1.0.5", "0_openblas_amdlibm", ())
    assert not MatchSpec(spec).matches(other_build.record)


def test_programs_are_in_the_specs_and_in_the_environment_file() -> None:
    stack = replace(STACK, name="openblas+p", programs=("p ==2.0", "q"))
    specs = envs.make_specs(stack, METAPACKAGE)
    assert specs[1:] == stack.programs
    text = envs.format_environment_yml(Lock(stack.name, specs, ()))
    assert "\n  - theano-stack=1.0.5=0_openblas\n  - p=2.0\n  - q\n" in text
    assert text.startswith("# Written by: invoke lock --stack=openblas+p\n")


def test_the_pin_allows_any_version_and_build_number_of_the_stack() -> None:
    pinned = MatchSpec(envs.format_pin(LOCK).strip())
    assert pinned.matches(Output("theano-stack", "1.0.6", "7_openblas", ()).record)
    assert not pinned.matches(Output("theano-stack", "1.0.5", "0_mkl", ()).record)


def test_the_lock_file_has_hashes_and_no_path_of_the_host() -> None:
    text = envs.format_explicit(LOCK)
    assert "@EXPLICIT\n" in text
    assert f"CHANNEL/linux-64/numpy-1.26.4-h0_0.conda#sha256:{'ab' * 32}\n" in text
    assert "/c/" not in text
    assert text.startswith("# Written by: invoke lock --stack=openblas")


def test_the_environment_file_names_the_metapackage_and_one_channel() -> None:
    text = envs.format_environment_yml(LOCK)
    assert "\ndependencies:\n  - theano-stack=1.0.5=0_openblas\n" in text
    # The only channel is an address. conda would map a name to its own server, and conda 26.7
    # interprets the entry nodefaults as a name.
    assert "\nchannels:\n  - CHANNEL\ndependencies:" in text


@pytest.mark.parametrize(
    ("file_name", "format_lock", "conda", "install"),
    [
        (
            envs.LOCK_NAME,
            envs.format_explicit,
            "24.9",
            "conda create --name theano-openblas --file",
        ),
        ("environment.yml", envs.format_environment_yml, "25.9", "conda env create --file"),
    ],
)
def test_the_first_lines_have_the_commands_to_install_and_the_required_conda_version(
    file_name: str, format_lock: Callable[[Lock], str], conda: str, install: str
) -> None:
    lines = format_lock(LOCK).splitlines()
    commands = [line.removeprefix("#   ") for line in lines if line.startswith("#   ")]
    fill_in, target = commands[0].split(" > ")
    assert fill_in == f"sed 's|CHANNEL|file:///srv/channel|' {file_name}"
    assert commands[1:] == [f"{install} {target}"]
    assert f"conda {conda} or newer" in lines[1]


def test_writing_an_unchanged_lock_does_not_touch_the_files(tmp_path: Path) -> None:
    envs.write_lock(LOCK, tmp_path / "out")
    before = {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()}
    assert len(before) == 2
    envs.write_lock(LOCK, tmp_path / "out")
    assert {file: file.stat().st_mtime_ns for file in (tmp_path / "out").iterdir()} == before


def test_packages_that_differ_from_the_lock_file_are_named(tmp_path: Path) -> None:
    envs.write_lock(LOCK, tmp_path)
    envs.check_lock(LOCK, tmp_path)
    changed_lock = Lock(LOCK.stack, LOCK.specs, (replace(PACKAGE, sha256="cd" * 32),))
    with pytest.raises(NotReproducible) as failure:
        envs.check_lock(changed_lock, tmp_path)
    assert f"-CHANNEL/linux-64/numpy-1.26.4-h0_0.conda#sha256:{'ab' * 32}\n" in str(failure.value)
    assert f"+CHANNEL/linux-64/numpy-1.26.4-h0_0.conda#sha256:{'cd' * 32}\n" in str(failure.value)


def test_a_missing_lock_file_is_reported_as_a_difference(tmp_path: Path) -> None:
    with pytest.raises(NotReproducible, match=r"(?s)\+CHANNEL/.*invoke lock --stack=openblas"):
        envs.check_lock(LOCK, tmp_path)


def test_the_error_of_an_unsolvable_stack_has_the_solvers_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def solve(verb: str, **_: object) -> None:
        if verb == "solve":
            raise CommandFailed("nothing provides __glibc >=2.99")

    monkeypatch.setattr(solver, "call", solve)
    monkeypatch.setattr(envs.channel, "add_packages", lambda *_: None)
    with pytest.raises(SolveFailed, match=r"nothing provides __glibc >=2\.99"):
        envs.resolve_lock(STACK, METAPACKAGE, [PACKAGE])


def test_an_installed_environment_is_not_installed_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def install(verb: str, *, prefix: str, **_: object) -> None:
        calls.append(verb)
        (Path(prefix) / "conda-meta").mkdir()

    monkeypatch.setattr(solver, "call", install)
    assert envs.read_installed_digest("openblas") is None
    for _ in range(2):
        envs.create_environment(LOCK)
    assert calls == ["install"]
    assert envs.read_installed_digest("openblas") == LOCK.digest


def test_an_incomplete_environment_is_installed_again(
    monkeypatch: pytest.MonkeyPatch, environments: Path
) -> None:
    def fail(verb: str, *, prefix: str, **_: object) -> None:
        (Path(prefix) / "half").touch()
        raise CommandFailed("no room")

    monkeypatch.setattr(solver, "call", fail)
    with pytest.raises(EnvironmentFailed, match="no room"):
        envs.create_environment(LOCK)
    assert envs.read_installed_digest("openblas") is None

    def install(verb: str, *, prefix: str, **_: object) -> None:
        (Path(prefix) / "conda-meta").mkdir()

    monkeypatch.setattr(solver, "call", install)
    envs.create_environment(LOCK)
    assert not (environments / "openblas" / "half").exists()
    assert [entry.name for entry in environments.iterdir()] == ["openblas"]


def hash_tree(prefix: Path, content: str = "x", mode: int = 0o644) -> str:
    """Write an environment of one package with a file and a symlink; return its digest."""
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "conda-meta" / "x-1.0-0.json").write_text(
        json.dumps({"files": ["x", "link"], "url": str(prefix)})
    )
    (prefix / "x").write_text(content)
    (prefix / "x").chmod(mode)
    (prefix / "link").symlink_to("x")
    return envs.hash_environment(prefix)


def test_the_digest_depends_on_paths_modes_and_contents(tmp_path: Path) -> None:
    first = hash_tree(tmp_path / "a")
    assert hash_tree(tmp_path / "b") == first
    assert hash_tree(tmp_path / "c", content="y") != first
    assert hash_tree(tmp_path / "d", mode=0o755) != first
    # The digest ignores files that belong to no package.
    (tmp_path / "a" / "written-later").touch()
    assert envs.hash_environment(tmp_path / "a") == first


def test_a_lock_file_with_amds_library_names_the_flag_for_amds_archive() -> None:
    spec = "theano-stack ==1.0.5 0_openblas_amdlibm_aocl"
    lock = Lock("openblas-amdlibm-aocl", (spec,), (PACKAGE,))
    flags = "# Written by: invoke lock --stack=openblas-amdlibm --amdlibm-archive=FILE\n"
    assert envs.format_explicit(lock).startswith(flags)
    text = envs.format_environment_yml(lock)
    assert text.startswith(flags)
    assert "\n  - theano-stack=1.0.5=0_openblas_amdlibm_aocl\n" in text


def test_a_stack_that_is_not_built_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "ENVIRONMENTS", tmp_path)
    with pytest.raises(EnvironmentFailed, match="mkl is not built"):
        envs.require_installed("mkl")
    hint = "invoke build --stack=mkl-amdlibm --amdlibm-archive=FILE$"
    with pytest.raises(EnvironmentFailed, match=hint):
        envs.require_installed("mkl-amdlibm-aocl")
    monkeypatch.setattr(envs, "read_installed_digest", lambda stack: "digest")
    envs.require_installed("mkl")


def test_lock_files_for_a_channel_address_have_no_placeholder(tmp_path: Path) -> None:
    envs.write_lock(LOCK, tmp_path, "https://channel.example/theano")
    lock, environment = ((tmp_path / name).read_text() for name in FILES)
    assert lock.splitlines()[:2] == ["# platform: linux-64", "@EXPLICIT"]
    assert "\nhttps://channel.example/theano/linux-64/numpy-" in lock
    assert "  - https://channel.example/theano\n" in environment
    assert "CHANNEL" not in lock + environment
