"""Test the comparison of two builds, and the selection of recipes."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from builder.common import paths
from builder.common.errors import BuildFailed, UsageError
from builder.common.processes import Finished
from builder.package import canonical, package_cache, rebuilds
from builder.package.package_cache import Plan
from builder.stack.recipes import Output, Recipe

A, B = (Recipe(name, Path(name), (), (), (), ()) for name in ("a", "b"))
PLAN = Plan((A, B), {"a": frozenset(), "b": frozenset("a")}, {"a": "1" * 32, "b": "2" * 32}, {})


def build(content: bytes, key: str, cache: Path) -> None:
    """Store one package in a package cache, as a build does."""
    output = cache.parent / f"output-{key}" / "linux-64"
    output.mkdir(parents=True)
    (output / "x-1.0-h0_0.conda").write_bytes(content)
    package_cache.store_packages(output.parent, key)


@pytest.fixture
def second_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Replace the second build; return a dictionary of its outcome and its inputs.

    A test may set the outcome: the package's ``content`` and the exit code ``status``. The fake
    build adds its inputs: the command, environment and directory (``argv``, ``env``, ``cwd``), the
    files (``files``, ``copied``), and the cache entries (``seeded``).
    """
    record: dict[str, Any] = {"status": 0, "content": b"x"}

    def run_second_build(argv: list[str], *, env: dict[str, str], cwd: Path) -> int:
        record.update(argv=argv, env=env, cwd=cwd)
        record["files"] = {
            file: file.read_bytes() for file in cwd.parent.iterdir() if file.is_file()
        }
        record["copied"] = sorted(str(file.relative_to(cwd)) for file in cwd.rglob("*"))
        cache = Path(env["THEANO_FAST_CACHE"])
        record["seeded"] = sorted(entry.name for entry in (cache / "packages").iterdir())
        monkeypatch.setenv("THEANO_FAST_CACHE", str(cache))
        build(record["content"], "2" * 32, cache / "packages")
        monkeypatch.setenv("THEANO_FAST_CACHE", str(tmp_path / "cache"))
        return int(record["status"])

    def read_members(package: Path) -> Iterator[tuple[tarfile.TarInfo, bytes]]:
        yield tarfile.TarInfo("lib/same"), b""
        yield tarfile.TarInfo("lib/x"), package.read_bytes()

    (tmp_path / "checkout" / "builder").mkdir(parents=True)
    monkeypatch.setattr(paths, "ROOT", tmp_path / "checkout")
    monkeypatch.setattr(rebuilds, "run_on_terminal", run_second_build)
    monkeypatch.setattr(rebuilds, "run", lambda argv, **_: Finished("setpriv" in argv, ""))
    monkeypatch.setattr(canonical, "read_members", read_members)
    for key in PLAN.keys.values():
        build(b"x", key, paths.get_package_cache())
    return record


def test_built_and_hidden_files_of_the_checkout_are_not_copied(
    second_build: dict[str, Any], tmp_path: Path
) -> None:
    for name in ("build/made", "recipes/a/patches/build/a.patch", ".venv/tool", "builder/.hidden"):
        file = paths.ROOT / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    rebuilds.rebuild(PLAN, "openblas", [B], tmp_path / "reports")
    files = [name for name in second_build["copied"] if (paths.ROOT / name).is_file()]
    assert files == ["recipes/a/patches/build/a.patch"]


def test_packages_with_the_same_bytes_are_identical(
    second_build: dict[str, Any], tmp_path: Path
) -> None:
    [comparison] = rebuilds.rebuild(PLAN, "openblas", [B], tmp_path / "reports")
    assert comparison.identical
    assert comparison.differences == ()
    assert second_build["seeded"] == ["1" * 32]
    assert second_build["cwd"] != paths.ROOT
    assert second_build["env"]["HOME"].startswith(str(second_build["cwd"].parent))


def test_the_second_build_has_a_copy_of_amds_archive(
    second_build: dict[str, Any], tmp_path: Path
) -> None:
    archive = tmp_path / "aocl-libm-linux.tar.gz"
    archive.write_bytes(b"AMD's")
    rebuilds.rebuild(PLAN, "openblas-amdlibm", [B], tmp_path / "reports", archive)
    assert "--stack=openblas-amdlibm" in second_build["argv"]
    copy = second_build["cwd"].parent / archive.name
    assert f"--amdlibm-archive={copy}" in second_build["argv"]
    assert second_build["files"][copy] == b"AMD's"


def test_a_condition_that_the_host_cannot_change_is_reported(
    second_build: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rebuilds.rebuild(PLAN, "openblas", [B], tmp_path / "reports")
    assert "setpriv" not in second_build["argv"]
    assert "umask 077" in " ".join(second_build["argv"])
    assert (
        "the second build has the same user: this host does not permit a change"
        in capsys.readouterr().out
    )


def test_a_file_that_differs_is_named(second_build: dict[str, Any], tmp_path: Path) -> None:
    second_build["content"] = b"y"
    [comparison] = rebuilds.rebuild(PLAN, "openblas", [B], tmp_path / "reports")
    assert not comparison.identical
    assert comparison.differences == ("lib/x",)


def test_a_failure_of_the_second_build_is_reported(
    second_build: dict[str, Any], tmp_path: Path
) -> None:
    second_build["status"] = 7
    with pytest.raises(BuildFailed, match=r"the second build failed \(exit status 7\)"):
        rebuilds.rebuild(PLAN, "openblas", [B], tmp_path / "reports")


def test_a_recipe_is_selected_by_the_name_of_its_package() -> None:
    output = Output("libcblas", "1", "0", ())
    blas = Recipe("blas", Path("blas"), (output,), (), (), ())
    assert rebuilds.select_recipes([A, blas], "libcblas") == [blas]
    assert rebuilds.select_recipes([A, blas], "") == [A, blas]
    with pytest.raises(UsageError, match=r"'lapack'\n.*a, blas"):
        rebuilds.select_recipes([A, blas], "lapack")


NUMPY, SCIPY = (Recipe(name, Path(name), (), (), (), ()) for name in ("numpy", "scipy"))


def test_each_turn_keeps_one_expensive_recipe() -> None:
    recipes = [A, NUMPY, B, SCIPY]
    turns = [rebuilds.drop_expensive(recipes, turn, []) for turn in (2, 3, 4)]
    assert turns == [[A, NUMPY, B], [A, B, SCIPY], [A, NUMPY, B]]
    assert rebuilds.drop_expensive([A, B], 3, []) == [A, B]


def test_after_the_build_of_an_expensive_recipe_all_expensive_recipes_are_dropped() -> None:
    assert rebuilds.drop_expensive([A, NUMPY, SCIPY], 2, [SCIPY]) == [A]
    assert rebuilds.drop_expensive([A, NUMPY, SCIPY], 2, [A]) == [A, NUMPY]


def test_recipes_below_a_minute_of_cpu_time_are_never_dropped() -> None:
    names = ("libopenblas", "netlib-lapack", "numpy", "openssl", "python", "scipy", "gcc", "zlib")
    recipes = [Recipe(name, Path(name), (), (), (), ()) for name in names]
    # scipy is expensive and was just built; therefore, all expensive recipes are dropped.
    cheap = rebuilds.drop_expensive(recipes, 1, [SCIPY])
    assert [recipe.name for recipe in cheap] == ["gcc", "zlib"]
