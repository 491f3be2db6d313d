"""Test the checks of a package's binaries, and the package's glibc dependency."""

from __future__ import annotations

import pytest
from elf_file import RWE, make_library

from builder.common import elf
from builder.package import binaries

OLDEST_GLIBC = (2, 28)
NEW = {"libc.so.6": {"GLIBC_2.34": ["dlopen", "dlsym", "dlclose", "dlerror"]}}


def find_violations(image: bytes, file: str = "lib/x.so", *libraries: str) -> list[str]:
    """Return the violations of a package with one binary and dependencies with ``libraries``."""
    return list(
        binaries.find_violations({file: elf.read_requirements(image)}, OLDEST_GLIBC, libraries)
    )


def test_a_newer_glibc_is_rejected() -> None:
    assert find_violations(make_library(versions=NEW)) == [
        "lib/x.so needs GLIBC_2.34 (dlopen, dlsym, dlclose, ...); packages must run on glibc 2.28"
    ]
    assert find_violations(make_library(versions={"libc.so.6": {"GLIBC_2.28": ["fcntl64"]}})) == []
    # Versions are compared as numbers: 2.4 is older than 2.28. Only versions of glibc count.
    assert (
        find_violations(make_library(versions={"libc.so.6": {"GLIBC_2.4": ["__stack_chk_fail"]}}))
        == []
    )
    assert (
        find_violations(make_library(versions={"libstdc++.so.6": {"GLIBCXX_3.4.30": ["_Z"]}})) == []
    )
    assert find_violations(make_library(versions=NEW, weak=["GLIBC_2.34"])) == []


@pytest.mark.parametrize("version", ["GLIBC_PRIVATE", "GLIBC_ABI_DT_RELR"])
def test_a_version_without_a_number_is_newer_than_every_glibc(version: str) -> None:
    [violation] = find_violations(make_library(versions={"libc.so.6": {version: []}}))
    assert violation.startswith(f"lib/x.so needs {version} ")


def test_a_missing_library_is_rejected() -> None:
    image = make_library(needed=["libz.so.1", "libc.so.6", "libmvec.so.1"])
    assert find_violations(image) == ["lib/x.so needs libz.so.1, which no dependency contains"]
    assert find_violations(image, "lib/x.so", "libz.so.1") == []


@pytest.mark.parametrize(
    ("file", "path", "inside"),
    [
        ("lib/x.so", "$ORIGIN", True),
        ("lib/x.so", "$ORIGIN/", True),
        ("lib/x.so", "${ORIGIN}/../lib", True),
        ("lib/python3.11/lib-dynload/x.so", "$ORIGIN/../..", True),
        ("bin/x", "$ORIGIN/../lib", True),
        ("lib/x.so", "$ORIGIN/../../lib", False),
        ("x.so", "$ORIGIN/..", False),
        ("lib/x.so", "$ORIGIN//..", True),
        ("lib/x.so", "$ORIGIN//../..", False),
        ("lib/x.so", "/usr/lib", False),
        ("lib/x.so", "lib", False),
        # An empty entry means the working directory.
        ("lib/x.so", "", False),
    ],
)
def test_a_search_path_stays_below_the_prefix(file: str, path: str, inside: bool) -> None:
    result = find_violations(make_library(search=(elf.DT_RUNPATH, f"$ORIGIN:{path}")), file)
    assert result == (
        [] if inside else [f"{file} searches {path!r} for libraries, which is outside the prefix"]
    )


def test_executable_stacks_text_relocations_and_newer_processors_are_rejected() -> None:
    assert find_violations(make_library(stack=RWE)) == ["lib/x.so needs an executable stack"]
    assert find_violations(make_library(entries=[(elf.DT_TEXTREL, 0)])) == [
        "lib/x.so has text relocations"
    ]
    assert find_violations(make_library(levels=7)) == ["lib/x.so needs a processor of x86-64-v3"]
    assert find_violations(make_library(levels=1)) == []


def test_the_dependency_on_glibc_is_the_newest_required_version() -> None:
    old = {"libc.so.6": {"GLIBC_2.3.4": ["a"], "GLIBC_2.14": ["memcpy"], "GLIBC_2.4": ["b"]}}
    required = {"lib/y.so": elf.read_requirements(make_library(versions=old))}
    assert binaries.find_newest_glibc(required) == ((2, 14), "GLIBC_2.14", "lib/y.so", ("memcpy",))
    assert binaries.make_glibc_specs(required) == ["__glibc >=2.14,<3.0.a0"]
    required["lib/x.so"] = elf.read_requirements(make_library(versions=NEW))
    assert binaries.make_glibc_specs(required) == ["__glibc >=2.34,<3.0.a0"]
    assert binaries.make_glibc_specs({"lib/z.so": elf.read_requirements(make_library())}) == []
