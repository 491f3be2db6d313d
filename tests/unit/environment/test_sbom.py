"""Test the software bill of materials (SBOM) of the openblas stack."""

from __future__ import annotations

import json
from pathlib import Path

from builder.common import paths
from builder.environment import sbom
from builder.environment.envs import Lock
from builder.package import package_cache
from builder.package.channel import Package
from builder.source.sources import hash_file
from builder.stack import recipes, stacks


def make_bill() -> str:
    """Return the bill of materials of four packages of the stack openblas, as CycloneDX JSON."""
    stack = stacks.load("openblas")
    rendered = recipes.load_all(stack)
    needs = recipes.collect_dependencies(rendered)
    plan = package_cache.make_plan(rendered, needs, recipes.make_variant(stack))
    names = (
        "libffi-3.4.4-h0_0",
        "numpy-1.26.4-py_0",
        "theano-stack-1.0.5-0_openblas",
        "xz-5.4.1-h0_2",
    )
    locked = [Package(Path(f"{name}.conda"), "linux-64", "ab" * 32, 7) for name in names]
    return sbom.format_bill(plan, Lock("openblas", "theano-stack==1.0.5", tuple(locked)))


def test_packages_have_hash_licence_sources_and_patches() -> None:
    table = json.loads(make_bill())
    libffi, numpy, _, xz = table["components"]
    assert libffi["licenses"] == [{"expression": "MIT"}]
    assert libffi["hashes"] == [{"alg": "SHA-256", "content": "ab" * 32}]
    [source] = libffi["pedigree"]["ancestors"]
    assert source["hashes"][0]["content"].startswith("d66c56ad259a82cf")
    assert source["externalReferences"][0]["url"].endswith("/libffi-3.4.4.tar.gz")
    for patch in numpy["pedigree"]["patches"]:
        file, _, digest = patch["diff"]["url"].partition("#sha256=")
        assert hash_file(paths.ROOT / file) == digest
    scopes = {
        item["name"].partition("-")[0]: item.get("scope") for item in numpy["pedigree"]["ancestors"]
    }
    assert scopes["numpy"] is None
    assert scopes["Cython"] == "excluded"
    fixes = xz["pedigree"]["patches"]
    assert {fix["type"] for fix in fixes} == {"backport"}
    resolved = {}
    for fix in fixes:
        series, _, name = fix["diff"]["url"].partition("#debian/patches/")
        assert series in {item["name"] for item in xz["pedigree"]["ancestors"]}
        [resolved[name]] = fix["resolves"]
    issue = resolved["liblzma-Fix-a-buffer-overflow-in-lzma_index_append.patch"]
    assert (issue["type"], issue["id"]) == ("security", "CVE-2026-34743")
    assert issue["source"]["url"] == "https://nvd.nist.gov/vuln/detail/CVE-2026-34743"
    assert issue["references"] == ["https://security-tracker.debian.org/tracker/CVE-2026-34743"]


def test_the_same_lock_gives_the_same_bill() -> None:
    assert make_bill() == make_bill()
    assert json.loads(make_bill())["metadata"]["timestamp"].startswith("2020-07-28")
