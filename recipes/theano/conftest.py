"""Pytest plugin that runs Theano's own tests, which were written for nose.

It is installed with the tests. Stock Theano's tests also run with it, under pytest 8 or newer.
"""

import functools
import inspect
import sys
import types
import unittest

import numpy.testing
import pytest


def pytest_configure():
    """Define names that the tests import and that nose and NumPy do not provide any more."""
    _supply_nose()
    _supply_decorators()


def _supply_nose():
    """Define modules with the parts of nose that the tests use.

    nose itself does not run on this Python: its development ended in 2015.
    """
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
    """Define the decorators of numpy.testing.dec that the tests use; NumPy 1.25 removed them."""

    def skipif(condition, reason):
        return unittest.skipIf(condition() if callable(condition) else condition, reason)

    def knownfailureif(condition, reason):
        return unittest.expectedFailure if condition else lambda test: test

    numpy.testing.dec = types.SimpleNamespace(
        skipif=skipif, knownfailureif=knownfailureif, slow=lambda test: test
    )


class Case(pytest.Item):
    """A case of a yield test, which is a generator of test cases.

    Attributes:
        check: the function that runs the case, without arguments.
        instance: the instance of the test class on which the generator runs, or None.
    """

    def __init__(self, check, instance, **kwargs):
        super().__init__(**kwargs)
        self.check = check
        self.instance = instance

    def setup(self):
        """Run setUp, because pytest itself runs setUp only for subclasses of unittest.TestCase."""
        getattr(self.instance, "setUp", lambda: None)()

    def runtest(self):
        """Run the case."""
        self.check()


@pytest.hookimpl(trylast=True)
def pytest_runtest_setup(item):
    """Run setUp of test classes that do not derive from unittest.TestCase, as nose did."""
    if isinstance(item, pytest.Function) and not isinstance(item.instance, unittest.TestCase):
        getattr(item.instance, "setUp", lambda: None)()


def pytest_pycollect_makeitem(collector, name, obj):
    """Collect tests as nose did.

    Collect yield tests, and test classes that a function makes. Ignore classes whose names begin
    with an underscore.
    """
    if inspect.isclass(obj) and issubclass(obj, unittest.TestCase):
        if name.startswith("_"):
            return []
        if not hasattr(sys.modules[obj.__module__], name):
            # A class that test_basic.makeTester makes looks itself up in the module __module__. Set
            # __module__ to the module that contains the class, because makeTester sets test_basic.
            obj.__module__ = collector.obj.__name__
    if name.startswith("test") and inspect.isgeneratorfunction(obj):
        return [
            Case.from_parent(collector, name=f"{name}[{number}]", check=check, instance=instance)
            for number, (check, instance) in enumerate(_iterate_cases(collector, name))
        ]
    return None


def _iterate_cases(collector, name):
    """Yield the cases of a yield test, as pairs of a function and an instance.

    If the generator raises an exception, the last case raises it.

    Args:
        collector: the module or class that contains the yield test.
        name: the name of the yield test.
    """
    instance = None
    try:
        if isinstance(collector, pytest.Class):
            getattr(collector.obj, "setup_class", lambda: None)()
            instance = collector.obj()
            getattr(instance, "setUp", lambda: None)()
        generate = getattr(collector.obj if instance is None else instance, name)
        for case in generate():
            check, *arguments = case if isinstance(case, tuple) else (case,)
            yield functools.partial(_copy_with_closure(check), *arguments), instance
    except Exception as error:
        yield functools.partial(_raise, error), None


def _copy_with_closure(check):
    """Copy a function with the current values of its closure.

    The generator changes the variables of the closure before the case runs.
    """
    if not getattr(check, "__closure__", None) or not inspect.isfunction(check):
        return check
    cells = tuple(types.CellType(cell.cell_contents) for cell in check.__closure__)
    copy = types.FunctionType(
        check.__code__, check.__globals__, check.__name__, check.__defaults__, cells
    )
    copy.__kwdefaults__ = check.__kwdefaults__
    return copy


def _raise(error):
    raise error
