"""Test that a module of builder/ imports only modules that precede it in LAYERS."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from builder.common import paths

# The modules of each folder of builder/; "" is builder/ itself. A module may import only the
# modules above it.
LAYERS = {
    "common": (
        "errors",
        "paths",
        "processes",
        "files",
        "log_excerpt",
        "progress",
        "elf",
    ),
    "stack": (
        "stacks",
        "toolchain",
        "recipes",
    ),
    "source": (
        "downloads",
        "debian",
        "pypi",
        "sources",
        "aocl",
    ),
    "timing": (
        "schedule",
        "forecast",
        "timings",
    ),
    "package": (
        "solver",
        "binaries",
        "canonical",
        "channel",
        "engine",
        "published",
        "bundles",
        "package_cache",
        "steps",
        "builds",
        "rebuilds",
    ),
    "environment": (
        "envs",
        "history",
        "sbom",
        "archives",
        "packs",
    ),
    "image": (
        "build_context",
        "daemon",
        "base",
        "oci",
        "images",
        "sif",
        "registry",
    ),
    "": (
        "options",
        "report",
        "verification",
        "pipeline",
        "image_pipeline",
        "packing",
        "bill",
        "publishing",
        "second_build",
        "checkout",
    ),
    "measure": (
        "references",
        "provenance",
        "bench",
        "bar_chart",
        "compile_time",
        "call_time",
        "benchmark_of_2017",
        "document_tables",
    ),
    "proof": (
        "nvidia",
        "opencl",
        "linked_packages",
        "pytest_results",
        "expected_failures",
        "pytest_events",
        "pytest_runs",
        "conformance",
        "program_times",
        "fuzzing",
        "own_tests",
        "hosts",
        "cpuinfo",
        "processors",
    ),
    "maintenance": (
        "support",
        "audit",
        "patches",
        "theano_changes",
        "compilers",
        "patch_states",
        "python_profile",
        "checks",
    ),
    "documents": (
        "reference",
        "messages",
        "site",
    ),
}
ORDER = [f"{folder}/{name}".strip("/") for folder, names in LAYERS.items() for name in names]
BUILDER = paths.ROOT / "builder"
MODULES = {
    str(file.relative_to(BUILDER).with_suffix("")): file for file in BUILDER.rglob("[!_]*.py")
}


def find_imports(file: Path) -> set[str]:
    """Return the modules of builder/ that a file imports, such as "common/paths"."""
    names = set()
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or (node.module or "").split(".")[0] != "builder":
            continue
        module = "/".join(str(node.module).split(".")[1:])
        names |= (
            {module} if module in MODULES else {f"{module}/{a.name}".strip("/") for a in node.names}
        )
    return names


def test_every_module_has_a_layer() -> None:
    assert sorted(ORDER) == sorted(MODULES)


@pytest.mark.parametrize("name", ORDER)
def test_a_module_imports_only_preceding_modules(name: str) -> None:
    assert find_imports(MODULES[name]) <= set(ORDER[: ORDER.index(name)])


@pytest.mark.parametrize("name", ORDER)
def test_only_processes_and_engine_import_subprocess(name: str) -> None:
    if name in ("common/processes", "package/engine"):
        return
    assert "import subprocess" not in MODULES[name].read_text(encoding="utf-8")


def test_no_module_of_the_builder_imports_invoke() -> None:
    # The imports are between the module's docstring and the next docstring.
    assert not [
        name
        for name, file in MODULES.items()
        if "invoke." in file.read_text("utf-8").split('"""')[2]
    ]
