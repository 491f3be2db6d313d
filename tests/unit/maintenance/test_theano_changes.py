"""Check that the page of changes to Theano has each patch once, with message, size and tests."""

import re

import pytest

from builder.common.errors import CommandFailed
from builder.maintenance import patches, theano_changes


def test_page_has_each_patch_once():
    names = re.findall(r"patches/(\S+)`: \d+ lines added", theano_changes.render())
    assert sorted(names) == sorted(patches.list_patches(theano_changes.RECIPE))


def test_patch_names_its_tests():
    tests = theano_changes.find_tests("results/integer-maxima.patch")
    assert [test.name for test in tests] == ["test_integer_maxima.py"]


def test_escape_keeps_plain_text():
    assert theano_changes.escape("a_b <c> [d]") == r"a\_b \<c> \[d]"


def test_stale_page_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(theano_changes, "PAGE", tmp_path / "theano-changes.md")
    with pytest.raises(CommandFailed, match="differs"):
        theano_changes.check()
    assert theano_changes.update() is True
    assert theano_changes.update() is False
    theano_changes.check()
