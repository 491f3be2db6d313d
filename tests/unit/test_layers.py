"""Modules import only modules before them in LAYERS."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from builder import paths

LAYERS = (
    "errors",
    "paths",
    "run",
    "lending",
    "nvidia",
    "opencl",
    "complaints",
    "progress",
    "outcomes",
    "expectations",
    "events",
    "testruns",
    "stacks",
    "toolchain",
    "recipes",
    "downloads",
    "debian",
    "pypi",
    "sources",
    "aocl",
    "solver",
    "channel",
    "canonical",
    "engine",
    "bundles",
    "packages",
    "schedule",
    "forecast",
    "timings",
    "steps",
    "builds",
    "patches",
    "rebuilds",
    "envs",
    "history",
    "sbom",
    "context",
    "daemon",
    "base",
    "oci",
    "images",
    "report",
    "pipeline",
    "imaging",
    "audit",
    "references",
    "bench",
    "picture",
    "compilation",
    "speed",
    "conformance",
    "fuzzing",
    "testing",
    "checks",
)
MODULES = sorted((paths.ROOT / "builder").glob("[!_]*.py"))


def imported(file: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "builder":
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("builder."):
            names.add(str(node.module).split(".")[1])
    return names


def test_every_module_has_a_layer() -> None:
    assert sorted(LAYERS) == [file.stem for file in MODULES]


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.stem)
def test_imports_go_downward(file: Path) -> None:
    below = set(LAYERS[: LAYERS.index(file.stem)])
    assert imported(file) <= below


@pytest.mark.parametrize("file", MODULES, ids=lambda file: file.stem)
def test_only_run_and_engine_start_programs(file: Path) -> None:
    if file.stem in ("run", "engine", "builds", "testruns"):
        return
    assert "import subprocess" not in file.read_text(encoding="utf-8")


def test_only_tasks_imports_invoke() -> None:
    assert not [
        file.name for file in MODULES if "invoke." in file.read_text("utf-8").split('"""')[2]
    ]
