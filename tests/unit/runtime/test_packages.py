"""Test that the check ``packages`` fails if an installer replaced one of the stack's packages."""

from types import SimpleNamespace

import pytest
from theano_fast.checks import packages
from theano_fast.checks.result import Options

CONSTRAINTS = """# A comment.
numpy ==1.26.4
theano ==1.0.5
theano-pymc ===1.1.2+theano.1.0.5
"""


@pytest.fixture
def installed(monkeypatch, tmp_path):
    """Replace the installed packages by fakes; return their (version, installer) by name."""
    (tmp_path / "etc").mkdir()
    (tmp_path / packages.CONSTRAINTS).write_text(CONSTRAINTS)
    monkeypatch.setattr(packages.sys, "base_prefix", str(tmp_path))
    distributions = {"numpy": ("1.26.4", "conda\n"), "theano": ("1.0.5", "conda\n")}

    def distribution(name):
        if name not in distributions:
            raise packages.metadata.PackageNotFoundError(name)
        version, installer = distributions[name]
        return SimpleNamespace(version=version, read_text=lambda _: installer)

    monkeypatch.setattr(packages.metadata, "distribution", distribution)
    return distributions


def check():
    return packages.run(Options(stack=None))


def test_the_stacks_packages_pass_the_check(installed):
    assert check().failures == ()
    assert check().summary == "numpy 1.26.4, theano 1.0.5"


@pytest.mark.parametrize(
    ("name", "other", "expected_words"),
    [
        ("numpy", ("2.4.6", "pip\n"), ("2.4.6", "pip", "1.26.4")),
        # The version is the same, but the wheel of NumPy has another BLAS.
        ("numpy", ("1.26.4", "uv"), ("1.26.4", "uv")),
        ("numpy", ("1.26.4", None), ("1.26.4", "unknown")),
        # theano-pymc contains the files of Theano, and overwrites them.
        ("theano-pymc", ("1.1.2", "pip"), ("1.1.2", "pip", "1.1.2+theano.1.0.5")),
    ],
)
def test_a_replaced_package_fails_the_check(installed, name, other, expected_words):
    installed[name] = other
    failure, remedy = check().failures
    assert failure.startswith(f"{name} ")
    assert all(word in failure for word in expected_words)
    assert remedy == packages.REMEDY


def test_the_stacks_own_theano_pymc_passes_the_check(installed):
    installed["theano-pymc"] = ("1.1.2+theano.1.0.5", "conda\n")
    assert check().failures == ()


def test_a_removed_package_fails_the_check(installed):
    del installed["numpy"]
    assert "numpy 1.26.4 is not installed" in check().failures[0]
