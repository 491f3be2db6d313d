"""
Linkers of ops of which C code is compiled with the package: thunks_ext.cpp.

"""
from __future__ import absolute_import, print_function, division

import itertools
import os
import re

import numpy as np

from theano import config, gof, scalar
from theano.compile import ops
from theano.gof import utils
from theano.gof.cc import CLinker, linker_types
from theano.gof.cmodule import DynamicModule
from theano.gof.type import Type
from theano.scalar import Scalar
from theano.tensor import basic, elemwise, opt, subtensor, thunks_ext
from theano.tensor import loops_cgen as cgen
from theano.tensor.type import TensorType

# What loops may use of Python's and NumPy's headers: theano_loops.h has it.
DTYPES = ['bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16',
          'uint32', 'uint64', 'float32', 'float64']
KNOWN = {'npy_' + dtype for dtype in DTYPES} | {
    'npy_intp', 'PyErr_SetString', 'PyExc_ZeroDivisionError'}
UNKNOWN = re.compile(r'\bstd\b|#\s*include\b|\b(?:_?Py|PY|NPY_|npy_|theano_)\w*')

# Words before parentheses that do not need <math.h>: theano_loops.h has the functions.
with open(os.path.join(os.path.dirname(gof.__file__), 'c_code', 'theano_loops.h')) as f:
    WITHOUT_MATH = set(re.findall(r'^THEANO_MATH_\d\((\w+)\)', f.read(), re.MULTILINE))
WITHOUT_MATH.update(['fill', 'for', 'if', 'loops', 'sizeof', 'switch', 'while',
                     'PyErr_SetString', '__builtin_inf'])
MATH = re.compile(r'\b(?:M_\w+|NAN|INFINITY|HUGE_VAL\w*|[A-Za-z_]\w*(?=\s*\())')


class LoopsModule(DynamicModule):
    """
    A module that is made of an Elemwise's loops.

    Parameters
    ----------
    headers : list of str
    support_code : list of str
        What the loops need.
    op : str
        C code that defines "op", a theano_elemwise_op.

    """
    def __init__(self, headers, support_code, op):
        super(LoopsModule, self).__init__()
        if not set(MATH.findall('\n'.join(support_code + [op]))) - WITHOUT_MATH:
            headers = [header for header in headers if header != '<math.h>']
        self.includes = headers + ['"theano_loops.h"']
        for code in support_code:
            self.add_support_code(code)
        self.op = op

    def macros_left(self):
        # <math.h> declares what modules without it do.
        return tuple(self.includes) + super(LoopsModule, self).macros_left()

    def print_functions(self, stream):
        print("""%(op)s
extern "C" __attribute__((visibility("default")))
PyObject *PyInit_%(name)s(void) {
    return theano_elemwise_module("%(name)s", &op);
}""" % dict(op=self.op, name=self.hash_placeholder), file=stream)


class LoopsLinker(CLinker):
    """
    Compile an Elemwise's loops, where they need neither Python nor NumPy.

    g++ takes a fourth of the time that it takes for all of an Elemwise.

    """
    def get_dynamic_module(self):
        if not hasattr(self, '_mod'):
            module = self.loops_module()
            if module is None:
                return super(LoopsLinker, self).get_dynamic_module()
            self._mod = module
        return self._mod

    def compile_arguments(self):
        arguments = super(LoopsLinker, self).compile_arguments()
        if isinstance(self.get_dynamic_module(), LoopsModule):
            arguments['preargs'] = arguments['preargs'] + ['-nodefaultlibs']
            arguments['libs'] = arguments['libs'] + ['m', 'c', 'gcc']
        return arguments

    def loops_module(self):
        """
        Return the LoopsModule, or None if the loops need more.

        """
        node, = self.node_order
        op, scalar_op = node.op, node.op.scalar_op
        if (self.no_recycling or op.openmp or not config.check_input or
                not is_known(scalar_op)):
            return None
        op.prepare_node(node, None, None, 'c')
        inputs = utils.uniq(node.inputs)
        inames = ['i%i' % inputs.index(variable) for variable in node.inputs]
        onames = ['o%i' % i for i in range(len(node.outputs))]
        name = 'node_<<<<HASH_PLACEHOLDER>>>>_0'
        sub = dict(id=0, fail='{return -1;}')
        if op.may_be_contiguous(node):
            try:
                scalar_op.c_code_contiguous(node, name, inames, onames, sub)
                return None
            except utils.MethodNotDefined:
                pass
        support_code = []
        for code, arguments in [(op.c_support_code, ()),
                                (op.c_support_code_apply, (node, name))]:
            try:
                support_code.append(code(*arguments))
            except utils.MethodNotDefined:
                pass
        task = op.task_code(node, name, inames, onames, sub, sub['fail'])
        ctypes = [variable.type.dtype_specs()[1]
                  for variable in inputs + node.outputs]
        if set(UNKNOWN.findall('\n'.join([task] + support_code + ctypes))) - KNOWN:
            return None
        return LoopsModule(
            [header for header in self.headers()
             if 'numpy' not in header and 'theano_tensor' not in header],
            support_code,
            self.description(node, inputs, onames, task, sub['fail'] in task))

    def description(self, node, inputs, onames, task, can_fail):
        """
        Return C code that defines "op".

        """
        overwritten = [inputs.index(node.inputs[node.op.inplace_pattern[i]])
                       if i in node.op.inplace_pattern else -1
                       for i in range(len(node.outputs))]
        arrays = [('i%i' % i, variable) for i, variable in enumerate(inputs)]
        for oname, variable, i in zip(onames, node.outputs, overwritten):
            if i < 0:
                arrays.append((oname, variable))
            else:
                task = '%s &%s_i = i%i_i;\n%s' % (
                    variable.type.dtype_specs()[1], oname, i, task)
        # The order of the last output that overwrites an input, or else of the
        # last one.
        like = ([i for i in overwritten if i >= 0] or [len(arrays) - 1])[-1]
        storages = utils.uniq(self.inputs + self.outputs + self.orphans)
        variables = inputs + node.outputs
        broadcast = [variable.broadcastable for _, variable in arrays]
        ctypes = [variable.type.dtype_specs()[1] for _, variable in arrays]
        return """
static int loops(char *const *data, const npy_intp *sizes,
                 const npy_intp *strides) {%(loops)s}
static const int storages[] = {%(storages)s};
static const int types[] = {%(types)s};
static const int overwritten[] = {%(overwritten)s};
static const char *const broadcast[] = {%(broadcast)s};
static const theano_elemwise_op op = {
    %(nd)i, %(n_inputs)i, %(n_outputs)i, %(n_storages)i, %(failure)i, %(like)i,
    storages, types, overwritten, broadcast, loops};
""" % dict(
            loops=cgen.make_loops([name for name, _ in arrays], ctypes,
                                  broadcast, '{%s}\n' % task, not can_fail),
            storages=', '.join(str(storages.index(each)) for each in variables),
            types=', '.join(str(np.dtype(each.dtype).num)
                            for each in variables),
            overwritten=', '.join(map(str, overwritten)),
            broadcast=', '.join('"%s"' % ''.join('01'[x] for x in pattern)
                                for pattern in broadcast),
            nd=node.outputs[0].ndim, n_inputs=len(inputs),
            n_outputs=len(node.outputs), n_storages=len(storages),
            failure=self.get_init_tasks()[1][-1][2], like=like)


def is_known(scalar_op):
    """
    Return whether an op and those in it are Theano's.

    Others may need headers that they do not name.

    """
    inner = getattr(scalar_op, 'fgraph', None)
    return (type(scalar_op).__module__.startswith('theano.') and
            all(is_known(node.op) for node in getattr(inner, 'apply_nodes', ())))


class ReductionLinker(LoopsLinker):
    """
    Compile a CAReduce's loops, where they need neither Python nor NumPy.

    """
    def loops_module(self):
        """
        Return the LoopsModule, or None if the loops need more.

        """
        node, = self.node_order
        op, scalar_op = node.op, node.op.scalar_op
        axes = range(node.inputs[0].ndim) if op.axis is None else op.axis
        if (self.no_recycling or not config.check_input or not len(axes) or
                not is_known(scalar_op)):
            return None
        input, output = node.inputs + node.outputs
        acc_dtype = getattr(op, 'acc_dtype', None) or output.dtype
        first = identity(scalar_op, input.dtype)
        if first is None:
            return None
        dtype, acc = [TensorType(each, ()).dtype_specs()[1]
                      for each in (input.dtype, acc_dtype)]
        task = op.task_code(node, 'acc_i', 'x_i', dict(fail='{return -1;}'))
        if set(UNKNOWN.findall('\n'.join([task, dtype, acc]))) - KNOWN:
            return None
        storages = utils.uniq(self.inputs + self.outputs + self.orphans)
        return LoopsModule(['<math.h>'], [], """
static int loops(char *const *data, const npy_intp *sizes,
                 const npy_intp *strides) {%(loops)s}
static const int storages[] = {%(storages)s};
static const int types[] = {%(types)s};
static void fill(char *data, npy_intp n) {
    for (npy_intp i = 0; i < n; i++)
        ((%(acc)s *)data)[i] = %(first)s;
}
static const theano_elemwise_op op = {
    %(nd)i, 1, 1, %(n_storages)i, %(failure)i, 0, storages, types, 0, 0, loops,
    "%(reduced)s", %(type)i, fill, %(not_empty)s};
""" % dict(
            loops=cgen.make_reduction(dtype, acc, '{%s}\n' % task),
            storages=', '.join(str(storages.index(each)) for each in (input, output)),
            types=', '.join(str(np.dtype(each.dtype).num) for each in (input, output)),
            acc=acc, first=literal(np.asarray(first).astype(acc_dtype), acc),
            nd=input.ndim, n_storages=len(storages),
            failure=self.get_init_tasks()[1][-1][2],
            reduced=''.join('01'[i in axes] for i in range(input.ndim)),
            type=np.dtype(acc_dtype).num,
            not_empty=('0' if hasattr(scalar_op, 'identity') else
                       '"%s"' % type(scalar_op).__name__.lower())))


def identity(scalar_op, dtype):
    """
    Return what is accumulated before the first element of a type, or None.

    """
    if hasattr(scalar_op, 'identity'):
        return scalar_op.identity
    sign = {scalar.maximum: -1, scalar.minimum: 1}.get(scalar_op)
    kind = np.dtype(dtype).kind
    if sign is None or kind == 'c':
        return None
    if kind == 'f':
        return sign * np.inf
    if kind == 'b':
        return sign > 0
    return getattr(np.iinfo(dtype), 'max' if sign > 0 else 'min')


def literal(value, ctype):
    """
    Return C code of a number.

    """
    if value.dtype.kind != 'f':
        return '(%s)0x%xull' % (ctype, int(value) % 2 ** 64)
    if np.isinf(value):
        return '%s__builtin_inf()' % ('-' if value < 0 else '')
    return repr(float(value))


linker_types[elemwise.Elemwise] = LoopsLinker
linker_types.update((op, ReductionLinker) for op in (
    elemwise.All, elemwise.Any, elemwise.CAReduce, elemwise.Prod,
    elemwise.ProdWithoutZeros, elemwise.Sum))


def index(entries, first_input):
    """
    Return what make_view of thunks_ext.cpp reads of a Subtensor's idx_list.

    """
    numbers = [len(entries)]
    inputs = itertools.count(first_input)

    def add(entry):
        if entry is None:
            numbers.extend((NONE, 0))
        elif isinstance(entry, Type):
            numbers.extend((INPUT, next(inputs)))
        else:
            numbers.extend((LITERAL, int(entry)))

    for entry in entries:
        numbers.append(isinstance(entry, slice))
        if isinstance(entry, slice):
            for each in (entry.start, entry.stop, entry.step):
                add(each)
        else:
            add(entry)
    return numbers


# The kinds of numbers in an index.
NONE, LITERAL, INPUT = range(3)


def ones(op):
    """
    Return how many, and which dimensions a Rebroadcast wants to be 1.

    """
    axes = [axis for axis, value in op.axis.items() if value]
    return [len(axes)] + axes


def text(string):
    """
    Return a text, of which C knows the end.

    """
    encoded = string.encode('utf-8') + b'\0'
    return np.frombuffer(encoded + b'\0' * (-len(encoded) % np.intp().nbytes), 'intp')


# What each ready op of thunks_ext.cpp reads of its op.
READY = {
    basic.Alloc: lambda op: [],
    basic.AllocEmpty: lambda op: [],
    opt.Assert: lambda op: text(op.msg),
    basic.Join: lambda op: [op.view],
    basic.Reshape: lambda op: [op.ndim],
    basic.ScalarFromTensor: lambda op: [],
    basic.Split: lambda op: [],
    elemwise.DimShuffle: lambda op: [
        op.inplace, len(op.input_broadcastable), len(op._new_order)] + op._new_order,
    opt.MakeVector: lambda op: [],
    ops.DeepCopyOp: lambda op: [],
    ops.Rebroadcast: ones,
    ops.Shape_i: lambda op: [op.i],
    ops.SpecifyShape: lambda op: [],
    subtensor.IncSubtensor: lambda op: (
        [op.inplace, op.set_instead_of_inc] + index(op.idx_list, 2)),
    subtensor.Subtensor: lambda op: index(op.idx_list, 1),
}
# Of these, inputs or outputs are numbers; those of others are arrays.
WITH_SCALARS = (basic.ScalarFromTensor, subtensor.IncSubtensor,
                subtensor.Subtensor)


class ReadyLinker(CLinker):
    """
    Compile nothing: the C code of the op's thunk is in the package.

    """
    def is_ready(self):
        """
        Return whether that code knows the types of the node's variables.

        """
        return not self.no_recycling and all(
            type(variable.type) is TensorType or
            type(variable.type) is Scalar and type(node.op) in WITH_SCALARS
            for node in self.node_order
            for variable in node.inputs + node.outputs)

    def add_missing(self, modules):
        if not self.is_ready():
            super(ReadyLinker, self).add_missing(modules)

    def cthunk_factory(self, error_storage, in_storage, out_storage,
                       storage_map=None, keep_lock=False):
        if not self.is_ready():
            return super(ReadyLinker, self).cthunk_factory(
                error_storage, in_storage, out_storage, storage_map, keep_lock)
        node, = self.node_order
        types = [np.dtype(variable.type.dtype).num
                 if type(variable.type) is TensorType else
                 ~np.dtype(variable.type.dtype).num
                 for variable in node.inputs + node.outputs]
        thunk = thunks_ext.make_thunk(
            type(node.op).__name__, np.array(READY[type(node.op)](node.op), 'intp'),
            np.array(types, 'intc'), self.get_init_tasks()[1][-1][2],
            error_storage, tuple(in_storage), tuple(out_storage))
        return thunk, thunks_ext


linker_types.update((op, ReadyLinker) for op in READY)
