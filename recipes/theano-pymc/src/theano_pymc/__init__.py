"""Import hook that adds Theano-PyMC's names to Theano as soon as a program imports it.

theano_pymc.pth loads this module when Python starts. An alias module, as theano.graph.basic, needs
no hook. Attributes of Theano's own modules and classes do, as theano.config.change_flags: a program
that imports Theano before PyMC3 uses them, so a line in PyMC3 would add them too late. A patch of
Theano would add them to every stack.
"""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

THEANO = str(Path(__file__).parent.parent / "theano" / "__init__.py")


class TheanoFinder:
    """Finder for the Theano beside this package; another one stays as it is."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return the spec of ``theano`` with a loader that adds the names, or None."""
        if name != "theano":
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.origin != THEANO:
            return None
        execute = spec.loader.exec_module

        def execute_and_add_names(module):
            execute(module)
            from theano_pymc import names

            names.add_names()

        spec.loader.exec_module = execute_and_add_names
        return spec


sys.meta_path.insert(0, TheanoFinder)
