"""Test the project name that is parsed from the name of a wheel or sdist."""

from __future__ import annotations

import pytest

from builder.source import pypi


@pytest.mark.parametrize(
    ("file", "project"),
    [
        ("numpy-1.26.4.tar.gz", "numpy"),
        ("Theano-1.0.5.tar.gz", "theano"),
        ("pyproject_metadata-0.7.1-py3-none-any.whl", "pyproject-metadata"),
        ("backports.zstd-1.0-py3-none-any.whl", "backports-zstd"),
    ],
)
def test_the_normalized_project_name_is_parsed_from_the_file_name(file: str, project: str) -> None:
    assert pypi.parse_project(file) == project
