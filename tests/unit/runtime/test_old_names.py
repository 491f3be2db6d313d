"""Names that Python and NumPy took away are restored, and no other is touched."""

import collections
import importlib
import inspect
import sys
from types import SimpleNamespace

import pytest
from theano_fast import old_names


@pytest.fixture
def package(monkeypatch, tmp_path):
    """An importable package, which the finder waits for, that has one of two names."""
    (tmp_path / "of_old.py").write_text("here = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    names = {"of_old": lambda: {"gone": 2, "here": 2}}
    monkeypatch.setattr(old_names, "PACKAGES", names)
    monkeypatch.setattr(sys, "meta_path", [old_names.Finder(), *sys.meta_path])
    yield "of_old"
    sys.modules.pop("of_old", None)


def test_names_are_added_and_none_replaced():
    module = SimpleNamespace(here=1)
    old_names.add(module, {"here": 2, "gone": 2})
    assert (module.here, module.gone) == (1, 2)


def test_packages_names_are_added_when_they_are_imported(package):
    module = importlib.import_module(package)
    assert (module.here, module.gone) == (1, 2)
    assert module.__spec__.origin.endswith("of_old.py")


def test_what_was_taken_away_is_what_it_was():
    def function(a, b=1, *rest, **others):
        """Have one of each."""

    found = old_names.getargspec(function)
    assert found == (["a", "b"], "rest", "others", (1,))
    assert found.keywords == "others"
    with pytest.raises(ValueError, match="keyword-only"):
        old_names.getargspec(lambda *, a: a)
    assert old_names.STANDARD["collections"][1]["Mapping"] is collections.abc.Mapping
    with pytest.raises(NotImplementedError, match="pytest"):
        old_names.Tester(__file__).test()


def test_nothing_is_restored_unasked():
    assert not hasattr(collections, "Iterable")
    assert not hasattr(inspect, "getargspec") or sys.version_info < (3, 11)
