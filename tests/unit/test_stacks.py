from __future__ import annotations

from pathlib import Path

import pytest

from builder import stacks
from builder.errors import ConfigurationError, UsageError

AXES = """
[axes]
theano = ["1.0.5"]
python = ["3.11"]
blas = ["openblas", "mkl"]
libm = ["system"]
device = ["cpu"]
"""
ROW = 'theano = "1.0.5"\npython = "3.11"\nblas = "{blas}"\nlibm = "system"\n'


def write(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "stacks.toml"
    file.write_text(text)
    return file


def test_the_projects_own_table_loads() -> None:
    names = [stack.name for stack in stacks.load_all()]
    assert "openblas" in names
    assert stacks.load("openblas").axes["blas"] == "openblas"


def test_an_unknown_name_lists_the_known_ones() -> None:
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
def test_a_wrong_row_is_refused(tmp_path: Path, row: str, reason: str) -> None:
    with pytest.raises(ConfigurationError, match=reason):
        stacks.load_all(write(tmp_path, f"{AXES}\n[stacks.x]\n{row}"))


def test_an_unknown_table_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="expected the tables"):
        stacks.load_all(write(tmp_path, AXES + "\n[extra]\na = 1\n"))
