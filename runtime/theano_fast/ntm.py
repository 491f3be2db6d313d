"""Build a Neural Turing Machine that learns the copy task, with ``theano.scan``.

The model and the equation numbers below are those of Graves, Wayne and Danihelka, "Neural Turing
Machines" (arXiv:1410.5401, 2014): an LSTM controller, heads with content and location addressing,
erase and add writes.

It represents the programs that theano-fast is made for: a large ``scan`` whose step consists of
small BLAS calls and fused elementwise loops.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import theano
import theano.tensor as T

SHIFTS = (-1, 0, 1)
# This constant keeps norms, quotients and powers differentiable at zero.
EPSILON = 1e-8


@dataclass(frozen=True)
class Size:
    """The sizes of a machine and its task.

    ``length`` vectors of ``bits`` bits are copied. The controller has ``controller`` units, the
    memory ``slots`` rows of ``width`` numbers.
    """

    length: int
    bits: int
    controller: int
    slots: int
    width: int
    read_heads: int
    write_heads: int = 1

    @property
    def steps(self) -> int:
        """The steps of a sequence: the input vectors, a delimiter, and the answers."""
        return 2 * self.length + 1

    @property
    def heads(self) -> tuple[str, ...]:
        """The heads' names in the order of their use: write heads first."""
        writing = tuple(f"write{i}" for i in range(self.write_heads))
        return writing + tuple(f"read{i}" for i in range(self.read_heads))


SMALL = Size(length=5, bits=4, controller=16, slots=12, width=6, read_heads=1)
FULL = Size(length=43, bits=8, controller=100, slots=128, width=20, read_heads=4)


@dataclass(frozen=True)
class Machine:
    """A machine's symbolic parts: shared parameters by name, and the loss of one sequence."""

    size: Size
    parameters: dict[str, Any]
    inputs: Any
    targets: Any
    loss: Any


def shapes(size: Size) -> dict[str, tuple[int, int]]:
    """Return the shape of each parameter, by name; the last row of a weight matrix is its bias."""
    hidden, width, reads = size.controller, size.width, size.read_heads * size.width
    shape = {
        "controller": (size.bits + 1 + reads + hidden + 1, 4 * hidden),
        "output": (hidden + reads + 1, size.bits),
        "memory": (size.slots, width),
    }
    for head in size.heads:
        emitted = {"key": width, "beta": 1, "gate": 1, "shift": len(SHIFTS), "gamma": 1}
        if head.startswith("write"):
            emitted.update(erase=width, add=width)
        shape |= {f"{head}.{name}": (hidden + 1, length) for name, length in emitted.items()}
        shape[f"{head}.weighting"] = (1, size.slots)
    return shape


def initial_values(size: Size, seed: int) -> dict[str, Any]:
    """Draw the parameters' initial float64 values: uniform, after Glorot and Bengio (2010).

    The values are the same on every machine: NumPy does not change ``RandomState.uniform``, which
    calls no libm.
    """
    draw = np.random.RandomState(seed).uniform
    bounds = {name: np.sqrt(6.0 / sum(shape)) for name, shape in shapes(size).items()}
    return {name: draw(-bounds[name], bounds[name], shape) for name, shape in shapes(size).items()}


def copy_task(size: Size, seed: int) -> tuple[Any, Any]:
    """Draw a sequence of the copy task: (inputs, targets) in floatX.

    ``inputs`` are random bits, a delimiter on its own channel, and zeros while the machine
    answers. ``targets`` are the vectors of the correct answer.
    """
    bits = np.random.RandomState(seed).randint(0, 2, (size.length, size.bits))
    inputs = np.zeros((size.steps, size.bits + 1), theano.config.floatX)
    inputs[: size.length, :-1] = bits
    inputs[size.length, -1] = 1
    return inputs, bits.astype(theano.config.floatX)


def lstm(size: Size, weights: Any, received: list[Any], cell: Any) -> tuple[Any, Any]:
    """Return the controller's next (cell, hidden): an LSTM with a forget gate."""
    gates = T.dot(T.concatenate(received), weights).reshape((4, size.controller))
    write, keep, show = (T.nnet.sigmoid(gates[i]) for i in range(3))
    cell = keep * cell + write * T.tanh(gates[3])
    return cell, show * T.tanh(cell)


def address(size: Size, emitted: dict[str, Any], memory: Any, previous: Any) -> Any:
    """Return a head's weighting over the slots, equations 5-9."""
    key = T.tanh(emitted["key"])
    beta, gate = T.nnet.softplus(emitted["beta"][0]), T.nnet.sigmoid(emitted["gate"][0])
    gamma, shift = 1 + T.nnet.softplus(emitted["gamma"][0]), softmax(emitted["shift"])

    norms = T.sqrt(T.sqr(memory).sum(axis=1) * T.sqr(key).sum() + EPSILON)
    content = softmax(beta * T.dot(memory, key) / norms)
    gated = gate * content + (1 - gate) * previous
    # The circular convolution is a product with the rotations: row i is ``gated``, rotated by the
    # i-th shift.
    turned = np.concatenate([np.roll(np.arange(size.slots), offset) for offset in SHIFTS])
    rotations = gated[turned].reshape((len(SHIFTS), size.slots))
    sharpened = (T.dot(shift, rotations) + EPSILON) ** gamma
    return sharpened / sharpened.sum()


def softmax(values: Any) -> Any:
    """Return the softmax of a vector; Theano's softmax takes the rows of a matrix."""
    return T.nnet.softmax(T.shape_padleft(values))[0]


def write(emitted: dict[str, Any], memory: Any, weighting: Any) -> Any:
    """Return the memory after a head's erase and add, equations 3 and 4."""
    erase, add = T.nnet.sigmoid(emitted["erase"]), T.tanh(emitted["add"])
    return memory * (1 - T.outer(weighting, erase)) + T.outer(weighting, add)


def answers(size: Size, p: dict[str, Any], inputs: Any, profile: bool) -> Any:
    """Return the machine's answers, (steps, bits) in (0, 1), to a sequence of inputs."""
    heads, one = size.heads, T.ones((1,))

    def step(x: Any, cell: Any, hidden: Any, memory: Any, *head_states: Any) -> list[Any]:
        weightings, reads = list(head_states[: len(heads)]), head_states[len(heads) :]
        cell, hidden = lstm(size, p["controller"], [x, *reads, hidden, one], cell)
        features = T.concatenate([hidden, one])
        reads = ()
        for i, head in enumerate(heads):
            prefix = f"{head}."
            emitted = {
                name.removeprefix(prefix): T.dot(features, weight)
                for name, weight in p.items()
                if name.startswith(prefix) and not name.endswith("weighting")
            }
            weightings[i] = address(size, emitted, memory, weightings[i])
            if head.startswith("write"):
                memory = write(emitted, memory, weightings[i])
            else:
                reads += (T.dot(weightings[i], memory),)
        return [cell, hidden, memory, *weightings, *reads]

    initial = [T.zeros((size.controller,)), T.zeros((size.controller,)), p["memory"]]
    initial += [softmax(p[f"{head}.weighting"][0]) for head in heads]
    initial += [T.zeros((size.width,)) for _ in range(size.read_heads)]
    states, _ = theano.scan(
        step, sequences=inputs, outputs_info=initial, name="ntm", profile=profile
    )
    ones = T.ones((size.steps, 1))
    shown = T.concatenate([states[1], *states[3 + len(heads) :], ones], axis=1)
    return T.nnet.sigmoid(T.dot(shown, p["output"]))


def build(size: Size, seed: int = 1, profile: bool = False) -> Machine:
    """Make a machine in floatX; its loss is the mean binary cross-entropy of its answers.

    Args:
        size: of the machine and the task.
        seed: of the initial values.
        profile: profile the scan and the scan of its gradient.
    """
    parameters = {
        name: theano.shared(value.astype(theano.config.floatX), name=name)
        for name, value in initial_values(size, seed).items()
    }
    inputs, targets = T.matrices("inputs", "targets")
    # Constant shapes remove most integer arithmetic from the graph.
    sequence = T.specify_shape(inputs, (size.steps, size.bits + 1))
    answered = answers(size, parameters, sequence, profile)[size.steps - size.length :]
    loss = T.nnet.binary_crossentropy(answered, targets).mean()
    return Machine(size, parameters, inputs, targets, loss)
