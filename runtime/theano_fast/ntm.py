"""Build a Neural Turing Machine that learns the copy task, with ``theano.scan``.

The model is from Graves, Wayne and Danihelka, "Neural Turing Machines" (arXiv:1410.5401,
2014). It has an LSTM controller, and heads that address the memory by content and location. Write
heads erase and add. Equation numbers below refer to this paper.

The model represents typical Theano programs: a large ``scan`` whose step consists of small BLAS
calls and fused elementwise loops.

The stacks with Theano 0.8.2 contain this module too, so it must also run on Python 2.7.
"""

from collections import OrderedDict, namedtuple

import numpy as np
import theano
import theano.tensor as T

SHIFTS = (-1, 0, 1)
# This term keeps norms, quotients and powers differentiable at zero.
EPSILON = 1e-8


_Size = namedtuple("_Size", "length bits controller slots width read_heads write_heads")


class Size(_Size):
    """The sizes of a machine and its task.

    The machine copies ``length`` vectors of ``bits`` bits. The controller has ``controller`` units;
    the memory has ``slots`` rows of ``width`` numbers.
    """

    @property
    def steps(self):
        """The number of steps of a sequence: the input vectors, a delimiter, and the answers."""
        return 2 * self.length + 1

    @property
    def heads(self):
        """The names of the heads in the order of their use, write heads first."""
        writing = tuple("write%d" % i for i in range(self.write_heads))
        return writing + tuple("read%d" % i for i in range(self.read_heads))


SMALL = Size(5, 4, controller=16, slots=12, width=6, read_heads=1, write_heads=1)
FULL = Size(43, 8, controller=100, slots=128, width=20, read_heads=4, write_heads=1)


# A machine and its symbolic variables: ``parameters`` are shared variables by name, ``loss`` is the
# loss of one sequence.
Machine = namedtuple("Machine", "size parameters inputs targets loss")


def list_shapes(size):
    """Return the shape of each parameter by name. The last row of a weight matrix is its bias."""
    hidden, width, reads = size.controller, size.width, size.read_heads * size.width
    # The order matters: initial_values draws the parameters in this order.
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
    """Draw initial float64 values of the parameters, uniform as in Glorot and Bengio (2010).

    The values are the same on each machine: NumPy does not change ``RandomState.uniform``, which
    calls no function of libm.
    """
    draw = np.random.RandomState(seed).uniform
    values = OrderedDict()
    for name, shape in list_shapes(size).items():
        bound = np.sqrt(6.0 / sum(shape))
        values[name] = draw(-bound, bound, shape)
    return values


def copy_task(size, seed):
    """Draw a sequence of the copy task: (inputs, targets) in floatX.

    ``inputs``, of shape (steps, bits + 1), contain random bits, then a delimiter on a separate
    channel, then zeros while the machine answers. ``targets``, of shape (length, bits), are the
    expected answers.
    """
    bits = np.random.RandomState(seed).randint(0, 2, (size.length, size.bits))
    inputs = np.zeros((size.steps, size.bits + 1), theano.config.floatX)
    inputs[: size.length, :-1] = bits
    inputs[size.length, -1] = 1
    return inputs, bits.astype(theano.config.floatX)


def compute_lstm(size, weights, received, cell):
    """Return the next (cell, hidden state) of the controller, an LSTM with a forget gate.

    ``received`` are the vectors that the controller reads: the input, the read vectors, the hidden
    state and a constant 1 for the bias.
    """
    gates = T.dot(T.concatenate(received), weights).reshape((4, size.controller))
    write, keep, show = (T.nnet.sigmoid(gates[i]) for i in range(3))
    cell = keep * cell + write * T.tanh(gates[3])
    return cell, show * T.tanh(cell)


def address(size, emitted, memory, previous):
    """Return the weighting of a head over the slots of the memory, equations 5-9.

    ``emitted`` are the controller's outputs for the head, ``previous`` is its last weighting.
    """
    key = T.tanh(emitted["key"])
    beta, gate = T.nnet.softplus(emitted["beta"][0]), T.nnet.sigmoid(emitted["gate"][0])
    gamma, shift = 1 + T.nnet.softplus(emitted["gamma"][0]), softmax(emitted["shift"])

    norms = T.sqrt(T.sqr(memory).sum(axis=1) * T.sqr(key).sum() + EPSILON)
    content = softmax(beta * T.dot(memory, key) / norms)
    gated = gate * content + (1 - gate) * previous
    # Row i of the rotations is ``gated``, rotated by the i-th shift. The circular convolution is
    # the product of ``shift`` and this matrix.
    indices = np.concatenate([np.roll(np.arange(size.slots), offset) for offset in SHIFTS])
    rotations = gated[indices].reshape((len(SHIFTS), size.slots))
    sharpened = (T.dot(shift, rotations) + EPSILON) ** gamma
    return sharpened / sharpened.sum()


def softmax(values):
    """Return the softmax of a vector. Theano's softmax computes the rows of a matrix."""
    return T.nnet.softmax(T.shape_padleft(values))[0]


def write(emitted, memory, weighting):
    """Return the memory after a write head has erased and added, equations 3 and 4."""
    erase, add = T.nnet.sigmoid(emitted["erase"]), T.tanh(emitted["add"])
    return memory * (1 - T.outer(weighting, erase)) + T.outer(weighting, add)


def compute_answers(size, p, inputs, profile):
    """Return the answers to a sequence of inputs, of shape (steps, bits), with values in (0, 1)."""
    heads, one = size.heads, T.ones((1,))

    def step(x, cell, hidden, memory, *states):
        weightings, reads = list(states[: len(heads)]), states[len(heads) :]
        cell, hidden = compute_lstm(size, p["controller"], [x] + list(reads) + [hidden, one], cell)
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
    """Build a machine in floatX. Its loss is the mean binary cross-entropy of its answers.

    If ``profile`` is True, the scan and its gradient's scan have separate profiles.
    """
    parameters = OrderedDict(
        (name, theano.shared(value.astype(theano.config.floatX), name=name))
        for name, value in initial_values(size, seed).items()
    )
    inputs, targets = T.matrices("inputs", "targets")
    # With constant shapes, the optimizer removes most of the graph's integer arithmetic, so Theano
    # need not compile it.
    sequence = T.specify_shape(inputs, (size.steps, size.bits + 1))
    answered = compute_answers(size, parameters, sequence, profile)[size.steps - size.length :]
    loss = T.nnet.binary_crossentropy(answered, targets).mean()
    return Machine(size, parameters, inputs, targets, loss)
