"""
Optimized graphs, kept in the compiledir from process to process.

Optimizing a graph takes most of the time of a `theano.function` whose C code
is compiled already, and gives the same graph each time. What it starts from is
described by a text that does not depend on the process; the hash of that text
is the name of a file with the graph that came out of it.

The description contains the graph, node by node, with the state of each Op and
Type and the content of each constant; what may be done to inputs and outputs
(`mutable`, `borrow`, updates); the optimizer's query and what was registered
for queries; all flags; the code of Theano and the versions of Python, NumPy and
SciPy. It leaves out what optimization does not read: the values of shared
variables, where variables were created, `auto_name`, the tags of users.

A graph is not kept if something in it could change without its description
changing (Ops, Types and optimizers from outside of Theano, functions without a
name of their own), if a constant of it is large, or if optimization logged a
warning or an error, which the next process is to see as well.

"""
from __future__ import absolute_import, print_function, division

import contextlib
import functools
import hashlib
import io
import logging
import os
import pickle
import sys
import time
import types
import zlib
from collections import OrderedDict

import numpy as np

import theano
from theano import config
from theano.configparser import _config_var_list
from theano.gof import graph, optdb, opt
from theano.gof.destroyhandler import DestroyHandler
from theano.gof.fg import FunctionGraph
from theano.gof.utils import replace_file
from theano.misc.frozendict import frozendict
from theano.misc.ordered_set import OrderedSet

_logger = logging.getLogger('theano.gof.graph_cache')

DIRECTORY = 'optimized_graphs'
CHECKSUM_SIZE = 20
# In bytes, of one constant and of all files.
MAX_CONSTANT = 2 ** 24
MAX_TOTAL = 2 ** 29

# Flags that do not change what optimization does.
OTHER_FLAGS = frozenset(['base_compiledir', 'compiledir', 'compiledir_format'])

# What flags are where optimization only returns a graph: with others, it is
# watched, or depends on the device and its driver.
UNWATCHED = {
    'check_stack_trace': 'off',
    'compute_test_value': 'off',
    'compute_test_value_opt': 'off',
    'optimizer_verbose': False,
    'profile_optimizer': False,
    'device': 'cpu',
    'init_gpu_device': '',
    'contexts': '',
}

# Attributes of Variable.tag and Apply.tag that Theano reads. Others are their
# users', for the graphs that these build.
TAGS = ('indestructible', 'is_rng', 'nan_guard_mode_check', 'context_name', 'target',
        'unique_value')

PLAIN = frozenset([type(None), bool, int, float, complex, str, bytes,
                   type(Ellipsis), type(NotImplemented)])
NAMED = (type, types.FunctionType, types.BuiltinFunctionType)
TRUSTED = ('theano', 'numpy', 'scipy', 'builtins', 'collections', 'copyreg',
           'operator', 'functools')


class NotDescribable(Exception):
    """
    Something has no description, or none that changes whenever it does.

    """


def digest(text):
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


@functools.lru_cache(maxsize=None)
def surroundings():
    """
    Return a text that changes with the code of Theano and the versions of what
    it computes with.

    """
    import scipy
    code = hashlib.blake2b()
    root = os.path.dirname(theano.__file__)
    for directory, subdirectories, names in os.walk(root):
        subdirectories[:] = sorted(set(subdirectories) - {'tests', '__pycache__'})
        for name in sorted(names):
            if name.endswith('.py'):
                path = os.path.join(directory, name)
                code.update(os.path.relpath(path, root).encode())
                with open(path, 'rb') as f:
                    code.update(f.read())
    return ' '.join([code.hexdigest(), sys.version, np.__version__, scipy.__version__])


class Describer(object):
    """
    Describes what a graph consists of.

    Attributes
    ----------
    traces : list of lists
        Where the variables that it met were created. Equal descriptions met
        their variables in the same order.

    """

    def __init__(self):
        # By id, together with what has it, so that nothing else gets it.
        self.known = {}
        self.traces = []

    def describe(self, thing):
        """
        Return a text, or raise NotDescribable.

        """
        kind = type(thing)
        if kind in PLAIN:
            return repr(thing)
        if kind is tuple or kind is list:
            return '%s(%s)' % (kind.__name__, ','.join(map(self.describe, thing)))
        if kind is dict:
            return '{%s}' % ','.join(sorted(
                self.describe(key) + ':' + self.describe(value)
                for key, value in thing.items()))
        if kind is set or kind is frozenset:
            return '%s(%s)' % (kind.__name__, ','.join(sorted(map(self.describe, thing))))
        if id(thing) not in self.known:
            self.known[id(thing)] = digest(self.describe_object(thing)), thing
        return self.known[id(thing)][0]

    def describe_object(self, thing):
        """
        Return the text of what has a class of its own: as pickle sees it, but
        for what has a graph inside and what differs from process to process.

        """
        if isinstance(thing, NAMED):
            return describe_name(thing)
        if isinstance(thing, np.ndarray) and not thing.dtype.hasobject:
            if thing.nbytes > MAX_CONSTANT:
                raise NotDescribable('an array of %d bytes' % thing.nbytes)
            return 'array(%s,%s,%s,%s)' % (
                describe_name(type(thing)), thing.dtype.descr, thing.shape,
                hashlib.blake2b(thing.tobytes()).hexdigest())
        if isinstance(thing, (graph.Variable, graph.Apply, FunctionGraph)):
            raise NotDescribable(thing)
        if hasattr(type(thing), 'constructor_arguments'):
            inputs, outputs, others = thing.constructor_arguments()
            return ','.join([describe_name(type(thing)), self.describe_graph(inputs, outputs),
                             self.describe(others)])
        if isinstance(thing, OrderedSet):
            return describe_name(type(thing)) + self.describe(list(thing))
        if isinstance(thing, frozendict):
            return describe_name(type(thing)) + self.describe(dict(thing))
        if (not is_trusted(type(thing)) or
                isinstance(thing, theano.compile.ops.FromFunctionOp)):
            raise NotDescribable(thing)
        try:
            reduced = thing.__reduce_ex__(2)
        except (AttributeError, KeyError, NotImplementedError, TypeError,
                pickle.PicklingError):
            raise NotDescribable(thing)
        if isinstance(reduced, str):
            return describe_name(type(thing)) + reduced
        function, arguments, state, items, pairs = (tuple(reduced) + (None,) * 3)[:5]
        if isinstance(thing, opt.Optimizer) and isinstance(state, dict):
            # The first is different each time, the second an order of creation.
            state = {key: value for key, value in state.items()
                     if key not in ('name', '_optimizer_idx')}
        return ','.join([describe_name(function), self.describe(arguments),
                         self.describe(state), self.describe(list(items or ())),
                         self.describe(list(pairs or ()))])

    def describe_variable(self, variable):
        self.traces.append(get_traces(variable))
        tags = variable.tag.__dict__
        data = self.describe(variable.data) if isinstance(variable, graph.Constant) else ''
        return '%s %s %r %s %s' % (
            self.describe(type(variable)), self.describe(variable.type), variable.name,
            data, [(tag, self.describe(tags[tag])) for tag in TAGS if tag in tags])

    def describe_graph(self, inputs, outputs):
        """
        Return the hash of a graph's description.

        """
        if len(set(inputs)) < len(inputs):
            raise NotDescribable(inputs)
        lines = [self.describe_variable(variable) for variable in inputs]
        numbers = {variable: i for i, variable in enumerate(inputs)}

        def number(variable):
            if variable not in numbers:
                if not isinstance(variable, graph.Constant):
                    raise NotDescribable(variable)
                numbers[variable] = len(numbers)
                lines.append(self.describe_variable(variable))
            return numbers[variable]

        for node in graph.io_toposort(inputs, outputs):
            given = [number(variable) for variable in node.inputs]
            tags = node.tag.__dict__
            lines.append('%s %s %s' % (
                self.describe(node.op), given,
                [(tag, self.describe(tags[tag])) for tag in TAGS if tag in tags]))
            for variable in node.outputs:
                numbers[variable] = len(numbers)
                lines.append(self.describe_variable(variable))
        lines.append(str([number(variable) for variable in outputs]))
        return digest('\n'.join(lines))


def get_traces(variable):
    return getattr(variable.tag, 'trace', None) or []


def is_trusted(thing):
    """
    Return whether a class or function is Theano's, or one that comes with a
    version that `surroundings` names.

    """
    packages = (thing.__module__ or '').split('.')
    return packages[0] in TRUSTED and 'tests' not in packages


def describe_name(thing):
    """
    Return the name by which a class or function can be imported.

    """
    found = sys.modules.get(thing.__module__)
    for name in thing.__qualname__.split('.'):
        found = getattr(found, name, None)
    if found is not thing or not is_trusted(thing):
        raise NotDescribable(thing)
    return thing.__module__ + '.' + thing.__qualname__


def take_tag(thing):
    return {name: value for name, value in thing.tag.__dict__.items() if name in TAGS}


class Pickler(pickle.Pickler):
    """
    Pickles graphs as lists of nodes: graphs of any depth, also those inside of
    Ops. Where a variable was created becomes a place in `Describer.traces`.

    """

    def __init__(self, file, traces):
        super(Pickler, self).__init__(file, protocol=4)
        self.places = {id(trace): (i, j) for i, each in enumerate(traces)
                       for j, trace in enumerate(each)}

    def persistent_id(self, thing):
        if type(thing) is list:
            return self.places.get(id(thing))

    def reducer_override(self, thing):
        if isinstance(thing, (graph.Variable, graph.Apply, FunctionGraph)):
            raise pickle.PicklingError('%s is not part of the graph' % thing)
        if hasattr(type(thing), 'constructor_arguments'):
            inputs, outputs, others = thing.constructor_arguments()
            nodes = graph.io_toposort(inputs, outputs)
            return make_op, (type(thing), [self.take(variable) for variable in inputs],
                             self.flatten(inputs, outputs, nodes), others)
        return NotImplemented

    def take(self, variable):
        """
        Return what a variable is remade from.

        """
        if isinstance(variable, theano.compile.SharedVariable):
            raise pickle.PicklingError('%s has a value' % variable)
        tag = take_tag(variable)
        tag['trace'] = [trace for trace in get_traces(variable) if id(trace) in self.places]
        return type(variable), variable.type, variable.name, tag

    def flatten(self, inputs, outputs, nodes):
        """
        Return a graph without its inputs: constants, nodes, and the numbers of
        outputs, where inputs, constants and outputs of nodes are numbered in
        this order.

        """
        nodes = list(nodes)
        used = list(outputs) + [variable for node in nodes for variable in node.inputs]
        constants = list(OrderedDict.fromkeys(
            variable for variable in used if isinstance(variable, graph.Constant)))
        variables = list(inputs) + constants + [
            variable for node in nodes for variable in node.outputs]
        number = {variable: i for i, variable in enumerate(variables)}
        return ([(self.take(constant), constant.data) for constant in constants],
                [(node.op, [number[variable] for variable in node.inputs],
                  [self.take(variable) for variable in node.outputs], take_tag(node))
                 for node in nodes],
                [number[variable] for variable in outputs])


class Unpickler(pickle.Unpickler):

    def __init__(self, file, traces):
        super(Unpickler, self).__init__(file)
        self.traces = traces

    def persistent_load(self, place):
        traces = self.traces[place[0]]
        # Variables of the same description may have been copied from fewer.
        return traces[place[1]] if place[1] < len(traces) else []


def make_variable(kind, type_, name, tag):
    # Not by the constructor of its class: that of a constant looks at the data.
    variable = kind.__new__(kind)
    graph.Variable.__init__(variable, type_, name=name)
    variable.tag.__dict__.update(tag)
    return variable


def make_graph(inputs, constants, nodes, outputs):
    """
    Return the outputs of a graph that `Pickler.flatten` took apart.

    """
    variables = list(inputs)
    for taken, data in constants:
        variables.append(make_variable(*taken))
        variables[-1].data = data
    for op, given, made, tag in nodes:
        node = graph.Apply(op, [variables[i] for i in given],
                           [make_variable(*taken) for taken in made])
        node.tag.__dict__.update(tag)
        variables.extend(node.outputs)
    return [variables[i] for i in outputs]


def make_op(kind, inputs, flat, others):
    inputs = [make_variable(*taken) for taken in inputs]
    return kind(inputs, make_graph(inputs, *flat), *others)


class Warnings(logging.Handler):
    """
    Counts what Theano logs as a warning or worse.

    """

    def __init__(self):
        super(Warnings, self).__init__(logging.WARNING)
        self.count = 0

    def emit(self, record):
        self.count += 1

    def __enter__(self):
        logging.getLogger('theano').addHandler(self)
        return self

    def __exit__(self, *exc_info):
        logging.getLogger('theano').removeHandler(self)


class Entry(object):
    """
    The place of one graph among those that are kept.

    Parameters
    ----------
    name : str
        The hash of its description.
    traces : list
        `Describer.traces`, after it was described.

    """

    def __init__(self, name, traces):
        self.path = os.path.join(config.compiledir, DIRECTORY, name)
        self.traces = traces

    def load(self, inputs):
        """
        Return the optimized FunctionGraph, or None if it is not kept yet.

        Parameters
        ----------
        inputs : list of Variables
            What the function's graph computes from; clones of them become the
            inputs of the optimized one.

        """
        try:
            with open(self.path, 'rb') as f:
                checksum, pickled = f.read(CHECKSUM_SIZE), f.read()
            # Those not loaded for long will be removed.
            os.utime(self.path)
        except OSError as error:
            _logger.debug('no graph: %s', error)
            return None
        if checksum != make_checksum(pickled):
            _logger.info('%s is damaged: its graph is optimized again', self.path)
            return None
        destroys, update_mapping, flat = Unpickler(
            io.BytesIO(zlib.decompress(pickled)), self.traces).load()
        inputs = [variable.clone() for variable in inputs]
        fgraph = FunctionGraph(inputs, make_graph(inputs, *flat), clone=False,
                               update_mapping=update_mapping)
        if destroys:
            fgraph.attach_feature(DestroyHandler())
        return fgraph

    def store(self, fgraph):
        """
        Keep an optimized FunctionGraph, if it can be written.

        """
        pickled = io.BytesIO()
        pickler = Pickler(pickled, self.traces)
        try:
            pickler.dump((hasattr(fgraph, 'destroyers'), fgraph.update_mapping,
                          pickler.flatten(fgraph.inputs, fgraph.outputs, fgraph.toposort())))
            # A fifth of the bytes; a higher level makes few less.
            pickled = zlib.compress(pickled.getvalue(), 1)
            os.makedirs(os.path.dirname(self.path), exist_ok=True)
            replace_file(self.path, make_checksum(pickled) + pickled)
        except (AttributeError, OSError, RecursionError, TypeError,
                pickle.PicklingError) as error:
            _logger.info('an optimized graph is not kept: %s', error)


def make_checksum(content):
    return hashlib.blake2b(content, digest_size=CHECKSUM_SIZE).digest()


def remove_old(compiledir, age):
    """
    Remove the graphs that nobody loaded or stored for `age` seconds, and the
    oldest of those that are more than MAX_TOTAL bytes together.

    """
    files = []
    try:
        for entry in os.scandir(os.path.join(compiledir, DIRECTORY)):
            status = entry.stat()
            files.append((status.st_mtime, status.st_size, entry.path))
    except OSError as error:
        # There is none, or another process removes them.
        _logger.debug('no graphs: %s', error)
    total = 0
    for mtime, size, path in sorted(files, reverse=True):
        total += size
        if total > MAX_TOTAL or time.time() - mtime > age:
            with contextlib.suppress(OSError):
                os.unlink(path)


def find(inputs, outputs, mode, accept_inplace):
    """
    Return the Entry of the graph that a function is made from, or None if it is
    not one to keep.

    Parameters
    ----------
    inputs : list of SymbolicInputs
    outputs : list of SymbolicOutputs
    mode : Mode
    accept_inplace : bool

    """
    if (not config.cache_optimizations or optdb.history is None or
            # Others optimize in ways of their own; functions of other linkers are
            # looked at more than they are called.
            type(mode) is not theano.compile.mode.Mode or
            not isinstance(mode.linker, theano.gof.vm.VM_Linker) or
            not isinstance(mode.provided_optimizer, optdb.Query)):
        return None
    flags = {flag.fullname: flag.__get__(True, None) for flag in _config_var_list
             if flag.fullname not in OTHER_FLAGS}
    if any(flags[name] != value for name, value in UNWATCHED.items()):
        return None
    updates = [each.update for each in inputs if each.update]
    describer = Describer()
    try:
        description = [
            surroundings(), optdb.history, sorted(flags.items()), accept_inplace,
            describer.describe(mode.provided_optimizer),
            describer.describe_graph([each.variable for each in inputs],
                                     [each.variable for each in outputs] + updates),
            [(each.mutable, each.borrow, bool(each.update), each.shared) for each in inputs],
            [each.borrow for each in outputs]]
    except (NotDescribable, RecursionError) as error:
        _logger.debug('a graph is not kept for %s', error)
        return None
    return Entry(digest(repr(description)), describer.traces)
