"""Import hook that adds Theano-PyMC's names to Theano when a program imports Theano.

theano_pymc.pth loads this module when Python starts. Alias modules such as theano.graph.basic need no
hook. New attributes of Theano's modules and classes, such as theano.config.change_flags, need the hook:
a program may import Theano and use them before it imports PyMC3, so PyMC3 would add them too late. A
patch of Theano would add them in each stack.
"""

import sys
from importlib.machinery import PathFinder
from pathlib import Path

THEANO = str(Path(__file__).parent.parent / "theano" / "__init__.py")


class TheanoFinder:
    """Finder for the Theano in this package's directory. It ignores other installations of Theano."""

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
