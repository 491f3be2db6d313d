"""What pip may have put in the place of a stack's packages."""

from types import SimpleNamespace

import pytest
from theano_fast.checks import packages
from theano_fast.checks.result import Options

CONSTRAINTS = """# A comment.
numpy ==1.26.4
theano ==1.0.5
theano-pymc <0
"""


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """The versions installed, and by whom, by name; in an environment with CONSTRAINTS."""
    (tmp_path / "etc").mkdir()
    (tmp_path / packages.CONSTRAINTS).write_text(CONSTRAINTS)
    monkeypatch.setattr(packages.sys, "prefix", str(tmp_path))
    found = {"numpy": ("1.26.4", "conda\n"), "theano": ("1.0.5", "conda\n")}

    def distribution(name):
        if name not in found:
            raise packages.metadata.PackageNotFoundError(name)
        version, by = found[name]
        return SimpleNamespace(version=version, read_text=lambda _: by)

    monkeypatch.setattr(packages.metadata, "distribution", distribution)
    return found


def check():
    return packages.run(Options(stack=None))


def test_the_stacks_own(installed):
    assert check().failures == ()
    assert check().summary == "numpy 1.26.4, theano 1.0.5"


@pytest.mark.parametrize(
    ("name", "other", "failure"),
    [
        ("numpy", ("2.4.6", "pip\n"), "numpy 2.4.6, by pip, is not the stack's 1.26.4"),
        # With a BLAS of its own.
        ("numpy", ("1.26.4", "uv"), "numpy 1.26.4, by uv, is not the stack's 1.26.4"),
        ("numpy", ("1.26.4", None), "numpy 1.26.4, by another, is not the stack's 1.26.4"),
        ("theano-pymc", ("1.1.2", "pip"), "theano-pymc 1.1.2 writes over files of the stack's"),
    ],
)
def test_another(installed, name, other, failure):
    installed[name] = other
    assert check().failures == (failure, packages.REMEDY)


def test_one_that_is_gone(installed):
    del installed["numpy"]
    assert check().failures[0] == "numpy 1.26.4 of the stack is gone"
