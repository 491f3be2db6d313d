"""
What is known of the order of integers before any value is.

Lengths, and the ends of slices, are computed from shapes, with comparisons of
which many have the same outcome for all shapes: that n + 1 is less than 0, for
one. Who builds a graph from such comparisons has them built on one another.

"""
from __future__ import absolute_import, print_function, division

import numpy as np

import theano.tensor
from theano import scalar
from theano.compile.ops import Shape_i
from theano.gof import utils
from theano.tensor import basic
from theano.tensor.elemwise import DimShuffle, Elemwise

# A sum is {term: factor}. Terms are numbers; this one stands for 1 itself.
ONE = 0

# No two of these are compared by C as if the negative one was not.
DTYPES = ('bool', 'int8', 'int16', 'int32', 'int64', 'uint8', 'uint16')

# Ops of which the output is the input.
SAME = (basic.ScalarFromTensor, basic.TensorFromScalar, DimShuffle)

COMPARISONS = (scalar.LT, scalar.LE, scalar.GT, scalar.GE)


def add(one, other, factor=1):
    """
    Return one sum plus a multiple of another one.

    """
    result = dict(one)
    for term, value in other.items():
        value = result.get(term, 0) + factor * value
        if value or term == ONE:
            result[term] = value
        else:
            result.pop(term, None)
    return result


def times(sum, factor):
    return add({ONE: 0}, sum, factor)


def is_integer(x):
    return x.type.ndim == 0 and x.type.dtype in DTYPES


def scalar_op(x):
    """
    Return the scalar op that computes a variable without dimensions, or None.

    """
    if x.owner and isinstance(x.owner.op, Elemwise):
        return x.owner.op.scalar_op


def arguments(x):
    """
    Return the integers of which an integer is computed by what is known here.

    """
    if (x.owner and (scalar_op(x) or isinstance(x.owner.op, SAME)) and
            all(is_integer(each) for each in x.owner.inputs)):
        return x.owner.inputs
    return []


def shape(x):
    """
    Return which Shape_i of which variable another one is, or None.

    """
    op, inputs = x.owner.op, x.owner.inputs
    if isinstance(op, Shape_i):
        return op, inputs[0]
    if (isinstance(op, theano.tensor.Subtensor) and inputs[0].owner and
            isinstance(inputs[0].owner.op, basic.Shape)):
        i, = theano.tensor.get_idx_list(inputs, op.idx_list)
        i = basic.extract_constant(i, only_process_constants=True)
        of, = inputs[0].owner.inputs
        if not isinstance(i, basic.Variable):
            return Shape_i(int(i) + (of.type.ndim if i < 0 else 0)), of


class Order(object):
    """
    Prove what holds for integers, whatever the values of the graph's inputs.

    A sum of what is not negative, such as shapes, is not negative. Where a switch,
    a maximum or a minimum is in a sum, each of its cases is looked at, with what
    is known in that case. What is not proved can be true all the same.

    """
    # How many sums are looked at for an answer.
    budget = 100
    # How many variables lead to one that is looked at.
    reach = 50

    def __init__(self):
        self.sums = {}
        # By the items of a sum: the first variable that is it.
        self.variables = {}
        # By what it stands for: the term.
        self.terms = {1: ONE}
        # By term: whether it is not negative, and its cases, pairs of the sums
        # that are not negative in that case, and of what the term is.
        self.natural = {ONE: True}
        self.cases = {}

    def sum(self, x):
        """
        Return an integer variable as a sum.

        """
        # Without recursion: there are long chains of slices.
        todo = [x]
        while todo:
            each = todo[-1]
            if each not in self.sums:
                missing = [arg for arg in arguments(each) if arg not in self.sums]
                if missing and len(todo) < self.reach:
                    todo.extend(missing)
                    continue
                sum = self.sums[each] = (self.term(each, each)[0] if missing else
                                         self._sum(each))
                self.variables.setdefault(frozenset(sum.items()), each)
            todo.pop()
        return self.sums[x]

    def _sum(self, x):
        if isinstance(x, basic.Constant):
            return {ONE: int(x.data)}
        inputs, op = arguments(x), scalar_op(x)
        if not inputs:
            return self.term(x, x.owner and shape(x) or x)[0]
        if op is None:
            return self.sum(inputs[0])
        # What is narrower can overflow in programs that are not wrong.
        if x.type.dtype == 'int64':
            if isinstance(op, (scalar.Identity, scalar.Cast)):
                return self.sum(inputs[0])
            if isinstance(op, scalar.Add):
                result = {ONE: 0}
                for each in inputs:
                    result = add(result, self.sum(each))
                return result
            if isinstance(op, scalar.Sub):
                return add(self.sum(inputs[0]), self.sum(inputs[1]), -1)
            if isinstance(op, scalar.Neg):
                return times(self.sum(inputs[0]), -1)
        sums = [self.sum(each) for each in inputs]
        if isinstance(op, scalar.Mul) and len(sums) == 2 and x.type.dtype == 'int64':
            for one, other in (sums, sums[::-1]):
                if list(one) == [ONE]:
                    return times(other, one[ONE])
        result, term = self.term(
            x, (op,) + tuple(frozenset(each.items()) for each in sums))
        if isinstance(op, scalar.Switch):
            self.cases[term] = [(self.facts(inputs[0], True), sums[1]),
                                (self.facts(inputs[0], False), sums[2])]
        elif isinstance(op, (scalar.Maximum, scalar.Minimum)):
            facts = [self.difference(*inputs), self.difference(*inputs[::-1])]
            if isinstance(op, scalar.Minimum):
                facts.reverse()
            self.cases[term] = [([fact], sum) for fact, sum in zip(facts, sums)]
        return result

    def term(self, x, what):
        """
        Return a variable as a sum of one term, and the term, which is the same for
        what is the same.

        """
        term = self.terms.setdefault(what, len(self.terms))
        self.natural[term] = (
            not x.type.dtype.startswith('int') or
            isinstance(what, tuple) and isinstance(what[0], Shape_i))
        return {ONE: 0, term: 1}, term

    def facts(self, condition, value):
        """
        Return sums that are not negative if a condition has that value.

        """
        op = scalar_op(condition)
        if op is None:
            return []
        inputs = condition.owner.inputs
        if isinstance(op, scalar.AND if value else scalar.OR):
            return [fact for each in inputs for fact in self.facts(each, value)]
        if not all(is_integer(each) for each in inputs):
            return []
        if isinstance(op, COMPARISONS):
            less, more = inputs
            strict = isinstance(op, (scalar.LT, scalar.GT))
            if isinstance(op, (scalar.GT, scalar.GE)) == value:
                less, more = more, less
            return [self.difference(more, less, int(strict == value))]
        if isinstance(op, scalar.EQ if value else scalar.NEQ):
            return [self.difference(*inputs), self.difference(*inputs[::-1])]
        return []

    def missing(self, sum):
        """
        Return a term for which a sum can be negative, or False.

        """
        self.left -= 1
        for term, factor in sum.items():
            if factor < 0 or factor > 0 and not self.natural[term]:
                return (term,)

    def follows(self, sum, facts, n=3):
        """
        Return whether a sum is not negative because at most n of the facts are not.

        """
        missing = self.missing(sum)
        if not missing:
            return True
        term, = missing
        return n > 0 and any(
            self.follows(add(sum, fact, -1), facts[:i] + facts[i + 1:], n - 1)
            for i, fact in enumerate(facts) if fact.get(term, 0) * sum[term] > 0)

    def holds(self, sum, facts=[]):
        """
        Return whether it is proved that a sum is not negative.

        """
        if self.left < 0:
            return False
        # Facts that cannot be are of a case that there is not.
        if self.follows(sum, facts) or facts and self.follows({ONE: -1}, facts):
            return True
        term = self.last([sum] + facts)
        return term is not None and all(
            self.holds(case[0], case[1:])
            for case in self.split(term, [sum] + facts))

    def last(self, sums):
        """
        Return the last term of some sums that has cases, which are of terms before it,
        or None.

        """
        return max((term for sum in sums for term in sum if term in self.cases),
                   default=None)

    def split(self, term, sums):
        """
        Return what sums are in each case of a term, and after them its facts.

        """
        return [[instead(sum, term, value) for sum in sums] + facts
                for facts, value in self.cases[term]]

    def difference(self, more, less, more_than=0):
        """
        Return the sum that is not negative if one is more than another by so much.

        """
        return add(add(self.sum(more), self.sum(less), -1), {ONE: -more_than})

    def same(self, one, other, facts=[]):
        return (self.holds(self.difference(one, other), facts) and
                self.holds(self.difference(other, one), facts))

    def known(self, x):
        """
        Return the variable that an integer comparison, a maximum, a minimum or a switch
        is known to be, or None.

        """
        op = scalar_op(x)
        if op is None or op.nin != (3 if isinstance(op, scalar.Switch) else 2):
            return None
        inputs = x.owner.inputs[-2:]
        if not all(is_integer(each) for each in [x] + inputs):
            return None
        self.left = self.budget
        if isinstance(op, scalar.Switch):
            condition = x.owner.inputs[0]
            facts = [self.facts(condition, value) for value in (True, False)]
            for i in range(2):
                # The condition is not met, or if so, there is no difference.
                if self.holds({ONE: -1}, facts[i]) or self.same(*inputs, facts[i]):
                    return inputs[1 - i]
        elif isinstance(op, (scalar.Maximum, scalar.Minimum)):
            for i in range(2):
                if self.holds(self.difference(inputs[i], inputs[1 - i])):
                    return inputs[i if isinstance(op, scalar.Maximum) else 1 - i]
        elif isinstance(op, (scalar.EQ, scalar.NEQ)):
            if self.same(*inputs):
                return basic.constant(np.bool_(isinstance(op, scalar.EQ)))
            if any(self.holds(self.difference(*each, more_than=1))
                   for each in (inputs, inputs[::-1])):
                return basic.constant(np.bool_(isinstance(op, scalar.NEQ)))
        elif isinstance(op, COMPARISONS):
            for value in (True, False):
                facts = self.facts(x, value)
                if len(facts) == 1 and self.holds(facts[0]):
                    return basic.constant(np.bool_(value))
        return None

    def switch(self, condition, if_true, if_false):
        """
        Return the simplest variable that is known to be that switch of integers.

        """
        result = basic.switch(condition, if_true, if_false)
        known = self.known(result)
        return result if known is None else known

    def outcomes(self, sums, facts=[]):
        """
        Return what sums can be, in the order of switches, maxima and minima in them,
        and after them the facts of that case.

        """
        n = len(sums)
        cases = [sums + facts]
        while self.left >= 0:
            term = self.last(sum for case in cases for sum in case[:n])
            if term is None:
                break
            cases = [case for each in cases for case in self.split(term, each)
                     if not self.follows({ONE: -1}, case[n:])]
        return cases

    def simplest(self, x):
        """
        Return the sum, or the lesser or the greater of two, that an int64 is known to
        be, or itself.

        """
        x = basic.as_tensor_variable(x)
        if not is_integer(x) or x.type.dtype != 'int64':
            return x
        self.left = self.budget
        cases = self.outcomes([self.sum(x)])
        sums = utils.uniq([case[0] for case in cases])
        if len(sums) == 1:
            return self.variable(sums[0])
        if len(sums) == 2:
            for op, sign in (basic.maximum, 1), (basic.minimum, -1):
                more = add(times(sums[0], sign), sums[1], -sign)
                if all(self.holds(more if case[0] == sums[0] else times(more, -1),
                                  case[1:]) for case in cases):
                    return op(*[self.variable(each) for each in sums])
        return x

    def slice(self, start, stop):
        """
        Return a start and a stop that give the same elements, not negative ones, if
        they are known to be sums wherever there is an element, or the given ones.

        """
        self.left = self.budget
        start, stop = [basic.as_tensor_variable(end) for end in (start, stop)]
        room = self.difference(stop, start, 1)
        cases = self.outcomes([self.sum(start), self.sum(stop), room], [room])
        ends = utils.uniq([case[:2] for case in cases])
        if len(ends) == 1:
            ends = [self.variable(sum) if self.holds(sum) else
                    basic.maximum(self.variable(sum), np.int64(0)) for sum in ends[0]]
            if self.holds(self.difference(*ends), [self.difference(start, stop)]):
                return ends
        return start, stop

    def variable(self, sum):
        """
        Return an int64 that is a sum.

        """
        if list(sum) == [ONE]:
            return basic.constant(np.int64(sum[ONE]))
        x = self.variables.get(frozenset(sum.items()))
        if x is None:
            parts = [self.variable({ONE: 0, term: 1}) if factor == 1 else
                     self.variable({ONE: 0, term: 1}) * np.int64(factor)
                     for term, factor in sum.items() if term != ONE]
            if sum[ONE]:
                parts.append(self.variable({ONE: sum[ONE]}))
            x = basic.add(*parts) if len(parts) > 1 else parts[0]
        return basic.cast(x, 'int64')


def instead(sum, term, value):
    """
    Return a sum with another one in place of a term.

    """
    if term not in sum:
        return sum
    rest = dict(sum)
    return add(rest, value, rest.pop(term))
