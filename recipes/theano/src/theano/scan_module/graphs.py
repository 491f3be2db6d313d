"""
Graphs of Scans copied, merged and hashed, each node once.

"""
from __future__ import absolute_import, print_function, division

from six.moves import zip as izip

from theano import gof


def copy_graph(variables, copies, strict, share_inputs):
    """
    Add a copy of each of the variables, and of all they depend on, to copies.

    Parameters
    ----------
    variables : list of Theano Variables
    copies : dict
        What is copied already, or is to be replaced: variable => its copy.
    strict : bool
        As for Apply.clone_with_new_inputs.
    share_inputs : bool
        If True, a variable without owner is its own copy; but a constant that
        belongs to a FunctionGraph is copied, as it cannot belong to two.

    """
    # A loop and not a recursion: scans are cloned often, and graphs are deep.
    left = list(variables)
    while left:
        var = left[-1]
        if var in copies:
            left.pop()
        elif var.owner is None:
            if not share_inputs or (isinstance(var, gof.Constant) and
                                    hasattr(var, 'fgraph')):
                copies[var] = var.clone()
            else:
                copies[var] = var
        else:
            node = var.owner
            missing = [inp for inp in node.inputs if inp not in copies]
            if missing:
                left.extend(missing)
            else:
                copied = node.clone_with_new_inputs(
                    [copies[inp] for inp in node.inputs], strict=strict)
                for out, copied_out in izip(node.outputs, copied.outputs):
                    copies.setdefault(out, copied_out)
    return copies


def merge_graph(inputs, outputs):
    """
    The outputs, computed without doing anything twice.

    Nodes with equal ops and the same inputs, and constants with equal
    signatures, become one, as MergeOptimizer makes them in a FunctionGraph.

    Parameters
    ----------
    inputs, outputs : lists of Theano Variables

    """
    merged = {}
    seen = {}

    def merge(var):
        if var not in merged:
            if isinstance(var, gof.Constant):
                var = seen.setdefault(var.merge_signature(), var)
            return var
        return merged[var]

    for node in gof.graph.io_toposort(inputs, outputs):
        new_inputs = [merge(inp) for inp in node.inputs]
        key = (node.op, tuple(new_inputs))
        if key not in seen:
            if new_inputs != node.inputs:
                seen[key] = node.clone_with_new_inputs(new_inputs)
            else:
                seen[key] = node
        merged.update(izip(node.outputs, seen[key].outputs))
    return [merge(out) for out in outputs]


def hash_computations(outputs, inputs=()):
    """
    Hash graphs so that those which equal_computations finds equal share it.

    Parameters
    ----------
    outputs : list of Theano Variables
    inputs : list of Theano Variables
        Where the graphs begin; they count by their position.

    Returns
    -------
    list of int
        One for each output.

    """
    hashes = dict((inp, hash((0, i))) for i, inp in enumerate(inputs))

    def hash_of(var):
        if var not in hashes:
            # Without owner: all others were met in the order of computation.
            try:
                hashes[var] = hash(var.signature()
                                   if isinstance(var, gof.Constant) else var)
            except TypeError:
                # The value of a constant need not be hashable.
                hashes[var] = hash(var.type)
        return hashes[var]

    for node in gof.graph.io_toposort(inputs, outputs):
        computed = hash((node.op, tuple([hash_of(inp) for inp in node.inputs])))
        for i, out in enumerate(node.outputs):
            hashes.setdefault(out, hash((computed, i)))
    return [hash_of(out) for out in outputs]
