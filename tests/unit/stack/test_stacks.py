"""Test stacks.toml: its validation, and stacks with programs or AMD's release."""

from __future__ import annotations

from pathlib import Path

import pytest

from builder.common import paths
from builder.common.errors import ConfigurationError, UsageError
from builder.stack import stacks

AXES = """
[axes]
theano = ["1.0.5"]
python = ["3.11"]
blas = ["openblas", "mkl"]
libm = ["system"]
device = ["cpu"]

[programs]
p = ["p ==1.0", "q"]
r = ["r"]
"""
ROW = 'theano = "1.0.5"\npython = "3.11"\nblas = "{blas}"\nlibm = "system"\n'


def write(tmp_path: Path, text: str) -> Path:
    """Write a file stacks.toml; return its path."""
    file = tmp_path / "stacks.toml"
    file.write_text(text)
    return file


def test_stacks_toml_can_be_loaded() -> None:
    names = [stack.name for stack in stacks.load_all()]
    assert "openblas" in names
    assert stacks.load("openblas").axes["blas"] == "openblas"


def test_an_unknown_name_lists_all_stacks() -> None:
    with pytest.raises(UsageError, match=r"choose one of: .*openblas"):
        stacks.load("openblass")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (ROW.format(blas="mkl"), "must set each axis once"),
        (ROW.format(blas="mkl") + 'device = "cpu"\ngpu = "yes"\n', "must set each axis once"),
        (ROW.format(blas="atlas") + 'device = "cpu"\n', "'atlas' is not one of openblas, mkl"),
    ],
)
def test_a_stack_with_a_missing_axis_or_an_unknown_value_is_refused(
    tmp_path: Path, row: str, reason: str
) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        stacks.load_all(write(tmp_path, f"{AXES}\n[stacks.x]\n{row}"))


def test_an_unknown_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected the tables"):
        stacks.load_all(write(tmp_path, AXES + "\n[extra]\na = 1\n"))


def test_a_stack_with_amds_release_has_its_own_name_and_flags() -> None:
    stack = stacks.load("openblas-amdlibm")
    stack_with_release = stacks.replace_amdlibm(stack, "ab")
    assert stack_with_release.name == "openblas-amdlibm-aocl"
    assert stack_with_release.amdlibm_archive == "ab"
    assert stack_with_release.axes == stack.axes
    assert (
        stacks.format_flags(stack_with_release.name)
        == "--stack=openblas-amdlibm --amdlibm-archive=FILE"
    )
    assert stacks.format_flags(stack.name) == "--stack=openblas-amdlibm"


def test_a_stack_with_programs_has_its_own_name(tmp_path: Path) -> None:
    row = ROW.format(blas="mkl") + 'device = "cpu"\n'
    file = write(tmp_path, f"{AXES}\n[stacks.x]\n{row}")
    stack = stacks.load("x+r+p+r", file)
    assert (stack.name, stack.base) == ("x+p+r", "x")
    assert stack.programs == ("p ==1.0", "q", "r")
    assert stacks.load("x", file).programs == ()
    with pytest.raises(UsageError, match=r"unknown program s\n.*p, r"):
        stacks.load("x+s", file)
    with pytest.raises(UsageError, match="unknown stack 'y'"):
        stacks.load("y+p", file)


def test_each_program_has_tests() -> None:
    for name in stacks.list_programs():
        assert (paths.ROOT / stacks.find_test_file(name)).is_file()
    assert stacks.find_test_file("keras-2.2") == stacks.find_test_file("keras")


def test_an_environment_has_one_version_of_a_program() -> None:
    assert stacks.load("openblas+keras-2.2+pymc3").programs == ("keras ==2.2.4", "pymc3 ==3.9.3")
    with pytest.raises(UsageError, match=r"--with=keras,keras-2\.2: .* only one version"):
        stacks.load("openblas+keras-2.2+keras")


def test_a_stack_may_have_programs_and_amds_release() -> None:
    stack_with_release = stacks.replace_amdlibm(stacks.load("openblas-amdlibm+keras"), "ab")
    assert (stack_with_release.name, stack_with_release.base) == (
        "openblas-amdlibm-aocl+keras",
        "openblas-amdlibm-aocl",
    )
    assert (
        stacks.format_flags(stack_with_release.name)
        == "--stack=openblas-amdlibm+keras --amdlibm-archive=FILE"
    )


def test_a_stack_without_amdlibm_refuses_amds_release() -> None:
    with pytest.raises(UsageError, match=r"(?s)stack mkl is system.*openblas-amdlibm, mkl-amdlibm"):
        stacks.replace_amdlibm(stacks.load("mkl"), "ab")
