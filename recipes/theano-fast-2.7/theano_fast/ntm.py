"""A Neural Turing Machine that learns the copy task, written with ``theano.scan``.

The model is that of Graves, Wayne and Danihelka, "Neural Turing Machines" (arXiv:1410.5401,
2014): an LSTM controller, heads with content and location addressing, erase and add writes.
Equation numbers below are that paper's.

It stands for the programs this distribution exists for: a large ``scan`` whose step is made of
small BLAS calls and fused Elemwise loops.
"""

from collections import OrderedDict, namedtuple

import numpy as np
import theano
import theano.tensor as T

SHIFTS = (-1, 0, 1)
# Keeps norms, quotients and powers differentiable at zero.
EPSILON = 1e-8


_Size = namedtuple("_Size", "length bits controller slots width read_heads write_heads")


class Size(_Size):
    """The extents of a machine and its task: vectors to copy, bits in one, units, slots, heads."""

    @property
    def steps(self):
        """The steps of a sequence: it is heard, ended by a delimiter, and answered."""
        return 2 * self.length + 1

    @property
    def heads(self):
        """The heads' names, write heads first, in the order of their use."""
        writing = tuple("write%d" % i for i in range(self.write_heads))
        return writing + tuple("read%d" % i for i in range(self.read_heads))


SMALL = Size(5, 4, controller=16, slots=12, width=6, read_heads=1, write_heads=1)
FULL = Size(43, 8, controller=100, slots=128, width=20, read_heads=4, write_heads=1)


# A machine's symbolic parts: shared parameters by name, and the loss of one sequence.
Machine = namedtuple("Machine", "size parameters inputs targets loss")


def shapes(size):
    """Return the shape of every parameter, by name; a weight's last row is its bias."""
    hidden, width, reads = size.controller, size.width, size.read_heads * size.width
    # In order, which is that of the draws.
    shape = OrderedDict()
    shape["controller"] = (size.bits + 1 + reads + hidden + 1, 4 * hidden)
    shape["output"] = (hidden + reads + 1, size.bits)
    shape["memory"] = (size.slots, width)
    for head in size.heads:
        emitted = [("key", width), ("beta", 1), ("gate", 1), ("shift", len(SHIFTS)), ("gamma", 1)]
        if head.startswith("write"):
            emitted += [("erase", width), ("add", width)]
        shape.update((head + "." + name, (hidden + 1, length)) for name, length in emitted)
        shape[head + ".weighting"] = (1, size.slots)
    return shape


def initial_values(size, seed):
    """Draw the parameters' initial values, in float64: uniform after Glorot and Bengio (2010).

    NumPy has frozen ``RandomState.uniform`` and it calls no libm, so that the values are the
    same on every machine.
    """
    draw = np.random.RandomState(seed).uniform
    values = OrderedDict()
    for name, shape in shapes(size).items():
        bound = np.sqrt(6.0 / sum(shape))
        values[name] = draw(-bound, bound, shape)
    return values


def copy_task(size, seed):
    """Draw a sequence of the copy task: (inputs, targets) in floatX.

    inputs are random bits, a delimiter on a channel of its own, and silence while the machine
    answers; targets are the vectors it has to answer.
    """
    bits = np.random.RandomState(seed).randint(0, 2, (size.length, size.bits))
    inputs = np.zeros((size.steps, size.bits + 1), theano.config.floatX)
    inputs[: size.length, :-1] = bits
    inputs[size.length, -1] = 1
    return inputs, bits.astype(theano.config.floatX)


def lstm(size, weights, received, cell):
    """Return the controller's next (cell, hidden): an LSTM with a forget gate."""
    gates = T.dot(T.concatenate(received), weights).reshape((4, size.controller))
    write, keep, show = (T.nnet.sigmoid(gates[i]) for i in range(3))
    cell = keep * cell + write * T.tanh(gates[3])
    return cell, show * T.tanh(cell)


def address(size, emitted, memory, previous):
    """Return a head's weighting over the slots, equations 5-9."""
    key = T.tanh(emitted["key"])
    beta, gate = T.nnet.softplus(emitted["beta"][0]), T.nnet.sigmoid(emitted["gate"][0])
    gamma, shift = 1 + T.nnet.softplus(emitted["gamma"][0]), softmax(emitted["shift"])

    norms = T.sqrt(T.sqr(memory).sum(axis=1) * T.sqr(key).sum() + EPSILON)
    content = softmax(beta * T.dot(memory, key) / norms)
    gated = gate * content + (1 - gate) * previous
    # Row i of the rotations is gated, turned by the i-th shift: the circular convolution is a
    # product with them.
    turned = np.concatenate([np.roll(np.arange(size.slots), offset) for offset in SHIFTS])
    rotations = gated[turned].reshape((len(SHIFTS), size.slots))
    sharpened = (T.dot(shift, rotations) + EPSILON) ** gamma
    return sharpened / sharpened.sum()


def softmax(values):
    """Return the softmax of a vector; Theano's own returns a matrix of one row."""
    return T.nnet.softmax(values)[0]


def write(emitted, memory, weighting):
    """Return the memory after a head has erased and added, equations 3 and 4."""
    erase, add = T.nnet.sigmoid(emitted["erase"]), T.tanh(emitted["add"])
    return memory * (1 - T.outer(weighting, erase)) + T.outer(weighting, add)


def answers(size, p, inputs, profile):
    """Return the machine's answers, (steps, bits) in (0, 1), to a sequence of inputs."""
    heads, one = size.heads, T.ones((1,))

    def step(x, cell, hidden, memory, *rest):
        weightings, reads = list(rest[: len(heads)]), rest[len(heads) :]
        cell, hidden = lstm(size, p["controller"], [x] + list(reads) + [hidden, one], cell)
        features = T.concatenate([hidden, one])
        reads = ()
        for i, head in enumerate(heads):
            prefix = head + "."
            emitted = {
                name[len(prefix) :]: T.dot(features, weight)
                for name, weight in p.items()
                if name.startswith(prefix) and not name.endswith("weighting")
            }
            weightings[i] = address(size, emitted, memory, weightings[i])
            if head.startswith("write"):
                memory = write(emitted, memory, weightings[i])
            else:
                reads += (T.dot(weightings[i], memory),)
        return [cell, hidden, memory] + weightings + list(reads)

    initial = [T.zeros((size.controller,)), T.zeros((size.controller,)), p["memory"]]
    initial += [softmax(p[head + ".weighting"][0]) for head in heads]
    initial += [T.zeros((size.width,)) for _ in range(size.read_heads)]
    states, _ = theano.scan(
        step, sequences=inputs, outputs_info=initial, name="ntm", profile=profile
    )
    ones = T.ones((size.steps, 1))
    shown = T.concatenate([states[1]] + states[3 + len(heads) :] + [ones], axis=1)
    return T.nnet.sigmoid(T.dot(shown, p["output"]))


def build(size, seed=1, profile=False):
    """Make a machine in floatX whose loss is the mean binary cross-entropy of its answers.

    profile makes the scan, and the scan of its gradient, keep a profile of their own.
    """
    parameters = OrderedDict(
        (name, theano.shared(value.astype(theano.config.floatX), name=name))
        for name, value in initial_values(size, seed).items()
    )
    inputs, targets = T.matrices("inputs", "targets")
    # Constant shapes spare the graph most of its integer arithmetic, and its compilation.
    sequence = T.specify_shape(inputs, (size.steps, size.bits + 1))
    answered = answers(size, parameters, sequence, profile)[size.steps - size.length :]
    loss = T.nnet.binary_crossentropy(answered, targets).mean()
    return Machine(size, parameters, inputs, targets, loss)
