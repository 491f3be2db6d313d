"""Cache of optimized graphs in the compiledir.

If a function's modules are already compiled, optimization takes most of the time of
`theano.function`. Optimization is deterministic, so its result can be cached. The cache key is the
hash of a description of everything that optimization reads. The description does not depend on the
process. The cache entry is a file that is named after the key and contains the optimized graph.

The description contains:

- the graph, node by node, with the state of each Op and Type and the content of each constant
- the options of inputs and outputs: `mutable`, `borrow` and updates
- the optimizer's query and the registered optimizers
- all flags except keys.UNRELATED_FLAGS
- the code of Theano, and the versions of Python, NumPy and SciPy

The description omits everything that optimization does not read: the values of shared variables,
the stack traces and names of variables, `auto_name`, and users' tags.

A graph is not cached in three cases:

- Its code could change without a change of the description. This is the case for Ops, Types and
  optimizers from outside of Theano, and for anonymous functions.
- It contains a constant that is larger than describing.MAX_CONSTANT.
- Its optimization logged a warning or an error, which the next process should log too.

`describing` describes a graph. `keys` adds all other inputs of optimization and makes the key.
`pickling` pickles and unpickles graphs. `files` reads, writes and removes the cache entries.
`claims` makes other processes wait while one process makes a function.
"""

from theano.gof.graph_cache.files import DIRECTORY, Entry, WarningCounter, remove_old
from theano.gof.graph_cache.keys import load

__all__ = ["DIRECTORY", "Entry", "WarningCounter", "load", "remove_old"]
