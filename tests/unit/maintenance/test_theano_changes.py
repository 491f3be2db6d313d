"""Test the generated page of changes to Theano, docs/theano-changes.md."""

import re

import pytest

from builder.common.errors import CommandFailed
from builder.maintenance import patches, theano_changes


def test_page_has_each_patch_once():
    names = re.findall(r"patches/(\S+)`: \d+ lines? added", theano_changes.render())
    assert sorted(names) == sorted(patches.list_patches(theano_changes.RECIPE))


def test_tests_of_a_patch_are_found():
    tests = theano_changes.find_tests("results/integer-maxima.patch")
    assert [test.name for test in tests] == ["test_integer_maxima.py"]


def test_escape_changes_only_markup():
    assert theano_changes.escape("a_b <c> [d]") == r"a\_b \<c> \[d]"


def test_missing_page_is_refused_and_then_written_once(tmp_path, monkeypatch):
    monkeypatch.setattr(theano_changes, "PAGE", tmp_path / "theano-changes.md")
    with pytest.raises(CommandFailed, match="differs"):
        theano_changes.check()
    assert theano_changes.update() is True
    assert theano_changes.update() is False
    theano_changes.check()
