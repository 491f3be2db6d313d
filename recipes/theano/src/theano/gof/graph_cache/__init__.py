"""Optimized graphs, kept in the compiledir from process to process.

Optimizing a graph takes most of the time of a `theano.function` whose C code is compiled already,
and gives the same graph each time. What it starts from is described by a text that does not depend
on the process; the hash of that text is the name of a file with the graph that came out of it.

The description contains the graph, node by node, with the state of each Op and Type and the content
of each constant; what may be done to inputs and outputs (`mutable`, `borrow`, updates); the
optimizer's query and what was registered for queries; all flags; the code of Theano and the
versions of Python, NumPy and SciPy. It leaves out what optimization does not read: the values of
shared variables, where variables were created and how they are named, `auto_name`, the tags of
users.

A graph is not kept if something in it could change without its description changing (Ops, Types and
optimizers from outside of Theano, functions without a name of their own), if a constant of it is
large, or if optimization logged a warning or an error, which the next process is to see as well.

`describing` writes the text of a graph, `keys` that of all that decides what becomes of it;
`pickling` takes graphs apart and puts them together; `files` keeps them; `claims` has one process
make each; `logged` watches the log.
"""

from theano.gof.graph_cache.files import DIRECTORY, Entry, remove_old
from theano.gof.graph_cache.keys import find
from theano.gof.graph_cache.logged import Warnings

__all__ = ["DIRECTORY", "Entry", "Warnings", "find", "remove_old"]
