"""Test the command of conda-build, the engine's environment variables, and requests."""

from __future__ import annotations

from pathlib import Path

from builder.package import engine
from builder.package.engine import Request

REQUEST = Request("/p/recipes/zlib", {"blas": ["openblas"]}, "/w/channel", "/w/out", "/w/result")

# The options that conda-build 26.3 accepts for a v1 recipe.
ACCEPTED = {
    "--channel",
    "--override-channels",
    "--output-folder",
    "--no-test",
    "--skip-existing",
    "--variant-config-files",
    "--exclusive-config-file",
    "--extra-meta",
    "--no-build-id",
    "--no-include-recipe",
    "--no-anaconda-upload",
    "--package-format",
    "--zstd-compression-level",
    "--quiet",
    "--debug",
}


def test_conda_build_gets_the_directories_of_the_request_and_options_that_it_accepts() -> None:
    command = engine.conda_build_command(REQUEST, Path("/w/variants.yaml"))
    assert command[:2] == ["conda-build", "/p/recipes/zlib"]
    assert "--channel=file:///w/channel" in command
    assert "--output-folder=/w/out" in command
    assert "--exclusive-config-file=/w/variants.yaml" in command
    assert {part.partition("=")[0] for part in command[2:]} <= ACCEPTED


def test_the_engine_has_its_own_package_cache() -> None:
    env = engine.make_environment(Path("/c/rattler"))
    assert env["SOURCE_DATE_EPOCH"] == str(engine.SOURCE_DATE_EPOCH)
    assert env["RATTLER_CACHE_DIR"] == "/c/rattler"


def test_a_request_is_unchanged_after_writing_and_reading(tmp_path: Path) -> None:
    engine.write_request(REQUEST, tmp_path / "request.json")
    assert engine.read_request(tmp_path / "request.json") == REQUEST
