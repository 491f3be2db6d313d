"""Pytest plugin for Theano's own tests, which were written for nose.

It is installed with the tests. Stock Theano's tests also run with it, on pytest 8 or newer.
"""

import functools
import inspect
import sys
import types
import unittest

import numpy.testing
import pytest


def pytest_configure():
    """Supply names that the tests import and that other packages have removed."""
    _supply_nose()
    _supply_decorators()


def _supply_nose():
    """Supply the parts of nose that the tests use; nose has not been developed since 2015."""
    case = unittest.TestCase()

    def raises(*exceptions):
        def decorate(test):
            @functools.wraps(test)
            def wrapper(*arguments):
                with case.assertRaises(exceptions):
                    test(*arguments)

            return wrapper

        return decorate

    tools = {
        "assert_equal": case.assertEqual,
        "assert_equals": case.assertEqual,
        "assert_raises": case.assertRaises,
        "assert_true": case.assertTrue,
        "raises": raises,
    }
    for name, names in {
        "nose": {},
        "nose.tools": tools,
        "nose.plugins": {},
        "nose.plugins.attrib": {"attr": lambda *_, **__: lambda test: test},
        "nose.plugins.skip": {"SkipTest": unittest.SkipTest},
    }.items():
        module = types.ModuleType(name)
        vars(module).update(names)
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def _supply_decorators():
    """Supply the parts of numpy.testing.dec that the tests use; NumPy 1.25 removed it."""

    def skipif(condition, reason):
        return unittest.skipIf(condition() if callable(condition) else condition, reason)

    def knownfailureif(condition, reason):
        return unittest.expectedFailure if condition else lambda test: test

    numpy.testing.dec = types.SimpleNamespace(
        skipif=skipif, knownfailureif=knownfailureif, slow=lambda test: test
    )


class Case(pytest.Item):
    """A case of a yield test. It runs on the same instance as its generator."""

    def __init__(self, check, instance, **kwargs):
        super().__init__(**kwargs)
        self.check = check
        self.instance = instance

    def setup(self):
        """Run setUp; pytest itself runs setUp of unittest's classes only."""
        getattr(self.instance, "setUp", lambda: None)()

    def runtest(self):
        """Run the case."""
        self.check()


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item):
    """Run setUp of classes that do not derive from unittest.TestCase, as nose did."""
    if isinstance(item, pytest.Function) and not isinstance(item.instance, unittest.TestCase):
        getattr(item.instance, "setUp", lambda: None)()


def pytest_pycollect_makeitem(collector, name, obj):
    """Collect as nose did: yield tests, and classes made by a function; no class ``_NAME``."""
    if inspect.isclass(obj) and issubclass(obj, unittest.TestCase):
        if name.startswith("_"):
            return []
        if not hasattr(sys.modules[obj.__module__], name):
            # The classes of test_basic.makeTester look themselves up in their module.
            obj.__module__ = collector.obj.__name__
    if name.startswith("test") and inspect.isgeneratorfunction(obj):
        return [
            Case.from_parent(collector, name=f"{name}[{number}]", check=check, instance=instance)
            for number, (check, instance) in enumerate(_cases(collector, name))
        ]
    return None


def _cases(collector, name):
    """Collect the cases that a generator yields; an exception of the generator is the last case."""
    instance = None
    try:
        if isinstance(collector, pytest.Class):
            getattr(collector.obj, "setup_class", lambda: None)()
            instance = collector.obj()
            getattr(instance, "setUp", lambda: None)()
        generate = getattr(collector.obj if instance is None else instance, name)
        for case in generate():
            check, *arguments = case if isinstance(case, tuple) else (case,)
            yield functools.partial(_as_it_is_now(check), *arguments), instance
    except Exception as error:
        yield functools.partial(_raise, error), None


def _as_it_is_now(check):
    """Copy a function, with the present values of its closure's variables, which change later."""
    if not getattr(check, "__closure__", None) or not inspect.isfunction(check):
        return check
    cells = tuple(types.CellType(cell.cell_contents) for cell in check.__closure__)
    now = types.FunctionType(
        check.__code__, check.__globals__, check.__name__, check.__defaults__, cells
    )
    now.__kwdefaults__ = check.__kwdefaults__
    return now


def _raise(error):
    raise error
