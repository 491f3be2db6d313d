"""Test the restoration of names that Python, NumPy and Theano removed."""

import collections
import importlib
import inspect
import sys
from types import SimpleNamespace

import pytest
from theano_fast import old_names


@pytest.fixture
def package(monkeypatch, tmp_path):
    """Write the module of_old; yield its name.

    The module has the old name ``present`` and lacks the old name ``gone``. The module's own old
    name is of_older.
    """
    (tmp_path / "of_old.py").write_text("present = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    names = {"of_old": {"gone": lambda module: module.present + 1, "present": lambda _: 2}}
    monkeypatch.setattr(old_names, "PACKAGES", names)
    monkeypatch.setattr(old_names, "MODULES", {"of_older": "of_old"})
    monkeypatch.setattr(sys, "meta_path", [old_names.Finder(), *sys.meta_path])
    yield "of_old"
    sys.modules.pop("of_old", None)
    sys.modules.pop("of_older", None)


def test_missing_names_are_added_and_existing_names_are_kept():
    module = SimpleNamespace(present=1)
    old_names.add(module, {"present": 2, "gone": 2})
    assert (module.present, module.gone) == (1, 2)


def test_a_packages_names_are_added_when_it_is_imported(package):
    module = importlib.import_module(package)
    assert (module.present, module.gone) == (1, 2)
    assert module.__spec__.origin.endswith("of_old.py")


def test_a_module_is_found_under_its_old_name(package):
    assert importlib.import_module("of_older") is importlib.import_module(package)


def test_the_restored_names_are_listed():
    names = old_names.list_names()
    assert {"collections.Iterable", "numpy.bool", "numpy.testing.utils"} <= set(names)
    assert "theano.Updates" in names


def test_restored_functions_behave_like_the_removed_functions():
    def function(a, b=1, *values, **others):
        """Have a parameter of each kind that getargspec supported."""

    spec = old_names.getargspec(function)
    assert spec == (["a", "b"], "values", "others", (1,))
    assert spec.keywords == "others"
    with pytest.raises(ValueError, match="keyword-only"):
        old_names.getargspec(lambda *, a: a)
    assert old_names.STANDARD["collections"][1]["Mapping"] is collections.abc.Mapping
    with pytest.raises(NotImplementedError, match="pytest"):
        old_names.Tester(__file__).test()


def test_no_name_is_restored_by_default():
    assert not hasattr(collections, "Iterable")
    assert not hasattr(inspect, "getargspec") or sys.version_info < (3, 11)
