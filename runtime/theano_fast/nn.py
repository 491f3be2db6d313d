"""Compute recurrent networks with cuDNN's RNNBlock or theano.scan, from the same weights.

cuDNN's documentation of cudnnRNNMode_t defines the networks. For inputs x and a state h, let
Wg = x W_g + bW_g and Rg = h R_g + bR_g for each gate g. Then the next state h' is

- rnn_relu, rnn_tanh: h' = max(Wh + Rh, 0), or tanh(Wh + Rh);
- lstm, of Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000):
  i, f, o = sigmoid(Wg + Rg); c' = f c + i tanh(Wc + Rc); h' = o tanh(c');
- gru, of Cho et al. (arXiv:1406.1078, 2014), except that the reset gate multiplies Rh, not h:
  r, z = sigmoid(Wg + Rg); h' = (1 - z) tanh(Wh + r Rh) + z h.

In the input mode skip, x replaces x W_g in the first layer. Both biases are still added.
"""

import functools
import math
from collections.abc import Iterator, Mapping
from dataclasses import InitVar, dataclass, field
from typing import Any

import numpy as np
import theano
import theano.tensor as T
from theano import gpuarray
from theano.gpuarray import dnn

# The gates' names, in cuDNN's order.
GATES = {"rnn_relu": "h", "rnn_tanh": "h", "lstm": "ifco", "gru": "rzh"}


@dataclass(eq=False)
class RNN:
    """A recurrent network of one or more layers, in one or both directions of time.

    Args:
        mode: "rnn_relu", "rnn_tanh", "lstm" or "gru".
        inputs: the number of features of an input.
        units: the number of features of a state in each layer and direction.
        layers: the number of layers; each reads the outputs of the layer below.
        bidirectional: also read from the last input to the first, and concatenate the outputs.
        input_mode: "linear", or "skip" for no input matrices in the first layer.
        dtype: "float32" or "float64"; None is theano.config.floatX.
        seed: the seed of the initial weights, or a RandomState. The weights are uniform in
            (-1 / sqrt(units), 1 / sqrt(units)).

    Attributes:
        weights: all matrices and biases, a shared vector in cuDNN's layout for both backends.
        size: the length of this vector.

    Raises:
        ValueError: an argument has another value, or input_mode is skip and inputs != units.
    """

    mode: str
    inputs: int
    units: int
    layers: int = 1
    bidirectional: bool = False
    input_mode: str = "linear"
    dtype: Any = None
    seed: InitVar[Any] = 1
    weights: Any = field(init=False, repr=False)
    size: int = field(init=False, repr=False, default=0)

    def __post_init__(self, seed: Any) -> None:
        """Check the arguments, lay out the weights and draw them."""
        self.dtype = self.dtype or theano.config.floatX
        _check_choice("mode", self.mode, tuple(GATES))
        _check_choice("input_mode", self.input_mode, ("linear", "skip"))
        _check_choice("dtype", self.dtype, ("float32", "float64"))
        for name in ("inputs", "units", "layers"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} is {value!r}, not a positive integer")
        if self.input_mode == "skip" and self.inputs != self.units:
            raise ValueError(
                f"input_mode 'skip' needs inputs = units, not {self.inputs} and {self.units}"
            )
        self._directions = ("forward", "backward")[: 2 if self.bidirectional else 1]
        # Maps the name of an array to its slice of the vector of weights, and to its shape.
        self._slices = {}
        for name, shape in self._list_shapes():
            start, self.size = self.size, self.size + math.prod(shape)
            self._slices[name] = slice(start, self.size), shape
        random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
        bound = self.units**-0.5
        drawn = random.uniform(-bound, bound, self.size).astype(self.dtype)
        self.weights = theano.shared(drawn, name=self.mode)

    def _list_shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the name and shape of each array of weights, such as "0.forward.W".

        An array contains all gates. The order is cuDNN's: the matrices of all layers and
        directions, then their biases. NVIDIA does not document this order; tests/cuda compares it
        with cudnnGetRNNWeightParams of cuDNN 9.13.
        """
        for kinds in (("W", "R"), ("bW", "bR")):
            for layer in range(self.layers):
                below = self.units * len(self._directions) if layer else self.inputs
                columns = {"W": (below,), "R": (self.units,)}
                for direction in self._directions:
                    for kind in kinds:
                        if layer or kind != "W" or self.input_mode == "linear":
                            shape = (len(GATES[self.mode]), self.units, *columns.get(kind, ()))
                            yield f"{layer}.{direction}.{kind}", shape

    def _split_weights(self, weights: Any) -> dict[str, Any]:
        """Divide the vector of all weights into views; return them by the names of ``split``."""
        return {
            f"{name}_{gate}": part.T
            for name, (indices, shape) in self._slices.items()
            for gate, part in zip(GATES[self.mode], weights[indices].reshape(shape), strict=True)
        }

    def split(self) -> dict[str, Any]:
        """Return the matrices and biases by names such as "0.forward.W_i", for np.savez.

        A name consists of the layer's number, "forward" or "backward", the kind (W, R, bW or bR)
        and the gate. The gates are:

        - lstm: i, f, c, o (input, forget, new memory, output);
        - gru: r, z, h (reset, update, new state);
        - rnn_relu, rnn_tanh: h (new state).

        A matrix W has the shape (inputs, units), for T.dot(x, W). R has the shape (units, units).
        Biases have the shape (units,). In the input mode skip, the first layer has no W.
        """
        return self._split_weights(np.asarray(self.weights.get_value()))

    def join(self, parts: Mapping[str, Any]) -> None:
        """Set the weights from the result of split, also from a layer with another dtype.

        Raises:
            ValueError: a part is missing, is unknown, or has a wrong shape.
        """
        weights = np.empty(self.size, self.dtype)
        views = self._split_weights(weights)
        if missing := sorted(set(views) - set(parts)):
            raise ValueError(f"parts of this layer are missing: {', '.join(missing)}")
        if unknown := sorted(set(parts) - set(views)):
            raise ValueError(f"parts do not belong to this layer: {', '.join(unknown)}")
        for name, view in views.items():
            part = np.asarray(parts[name])
            if part.shape != view.shape:
                raise ValueError(f"the part {name} has the shape {part.shape}, not {view.shape}")
            view[...] = part
        self.weights.set_value(weights)

    def __call__(
        self, x: Any, h0: Any = None, c0: Any = None, backend: str | None = None
    ) -> tuple[Any, ...]:
        """Return the symbolic outputs (y, h), or (y, h, c) of an lstm, for a sequence x.

        y has the last layer's states in the order of x, in the shape (time, batch, units *
        directions). h and c are the last states and cells, in the shape of h0.

        Args:
            x: the inputs in the layer's dtype, (time, batch, inputs), with at least one time step.
            h0: initial states, (layers * directions, batch, units). The two directions of a layer
                are adjacent. None means zeros.
            c0: initial cells of an lstm, like h0.
            backend: "cudnn" or "scan". None selects "cudnn" if a CUDA device and cuDNN are in use
                during this call, otherwise "scan". Only "scan" can be compiled for the CPU.

        Raises:
            ValueError: a variable has another ndim or dtype, c0 is given and the mode is not lstm,
                or the backend is unknown or cannot be used.
            AssertionError: the compiled function got an array of another shape.
        """
        if c0 is not None and self.mode != "lstm":
            raise ValueError(f"c0 is given, but only mode 'lstm' has cells, not mode {self.mode!r}")
        x = self._convert_variable("x", x)
        x = T.opt.Assert(f"x must have {self.inputs} features")(x, T.eq(x.shape[2], self.inputs))
        shape = (self.layers * len(self._directions), x.shape[1], self.units)
        states = []
        for name, value in (("h0", h0), ("c0", c0))[: 2 if self.mode == "lstm" else 1]:
            if value is None:
                states.append(T.zeros(shape, self.dtype))
            else:
                check = T.opt.Assert(f"{name} must be ({shape[0]}, batch of x, {self.units})")
                state = self._convert_variable(name, value)
                states.append(check(state, *(T.eq(state.shape[i], shape[i]) for i in range(3))))
        # scan requires that a step does not change a state's type, so make no axis broadcastable.
        x, *states = (T.unbroadcast(variable, 0, 1, 2) for variable in (x, *states))
        reason = _find_obstacle() if backend != "scan" else ""
        backend = backend or ("scan" if reason else "cudnn")
        _check_choice("backend", backend, ("scan", "cudnn"))
        if backend == "scan":
            return self._apply_scan(x, states)
        if reason:
            raise ValueError(f"the backend 'cudnn' cannot be used: {reason}")
        return self._apply_cudnn(x, states)

    def _convert_variable(self, name: str, value: Any) -> Any:
        variable = T.as_tensor_variable(value)
        if (variable.ndim, variable.dtype) != (3, self.dtype):
            raise ValueError(
                f"{name} has {variable.ndim} dimensions of {variable.dtype}, not 3 of {self.dtype}"
            )
        return variable

    def _apply_cudnn(self, x: Any, states: list[Any]) -> tuple[Any, ...]:
        direction = "bidirectional" if self.bidirectional else "unidirectional"
        settings = (self.units, self.layers, self.mode, self.input_mode, direction)
        block = _make_block(self.dtype, *settings)
        if (size := block.get_param_size((1, self.inputs))) != self.size:
            raise ValueError(f"the layer has {self.size} weights, but this cuDNN expects {size}")
        results = block.apply(self.weights, x, *states)
        return tuple(map(T.as_tensor_variable, results))

    def _apply_scan(self, x: Any, states: list[Any]) -> tuple[Any, ...]:
        # The values after the last step: a list of states, and for an lstm a list of cells.
        last_states: list[list[Any]] = [[] for _ in states]
        for layer in range(self.layers):
            outputs = []
            for direction in self._directions:
                index = len(last_states[0])
                initial = [state[index] for state in states]
                steps = self._scan_direction(f"{layer}.{direction}", x, initial)
                for values, step in zip(last_states, steps, strict=True):
                    values.append(step[-1])
                outputs.append(steps[0] if direction == "forward" else steps[0][::-1])
            x = T.concatenate(outputs, axis=2) if self.bidirectional else outputs[0]
        return x, *map(T.stack, last_states)

    def _scan_direction(self, name: str, x: Any, states: list[Any]) -> list[Any]:
        """Return the states of all steps, and for an lstm also the cells.

        Args:
            name: a layer's number and direction, such as "0.forward".
            x: the layer's inputs.
            states: the initial state, and for an lstm the initial cell.
        """
        matrix, bias, inner = (self._get_rows(f"{name}.{kind}") for kind in ("R", "bW", "bR"))
        constants = [matrix.T]
        if self.mode == "gru":
            # Add bR of the gates r and z here. Each step adds bR of the new state, because the
            # reset gate multiplies it.
            bias = T.inc_subtensor(bias[: -self.units], inner[: -self.units])
            constants.append(inner[-self.units :])
        else:
            bias += inner
        if f"{name}.W" in self._slices:
            # Multiply the inputs of all steps at once.
            flat = T.dot(x.reshape((-1, x.shape[2])), self._get_rows(f"{name}.W").T)
            input_sums = flat.reshape((x.shape[0], x.shape[1], bias.shape[0])) + bias
        else:
            input_sums = T.concatenate([x] * len(GATES[self.mode]), axis=2) + bias
        steps, _ = theano.scan(
            functools.partial(STEPS[self.mode], self.units),
            sequences=input_sums,
            outputs_info=states,
            non_sequences=constants,
            go_backwards=name.endswith("backward"),
            strict=True,
            name=f"{self.mode}.{name}",
        )
        return steps if isinstance(steps, list) else [steps]

    def _get_rows(self, name: str) -> Any:
        """Return an array of the weights: a matrix, or a bias.

        The array has a row (a matrix) or an element (a bias) for each unit of each gate, in the
        order of the gates.

        Args:
            name: a name of _list_shapes, such as "0.forward.W".
        """
        indices, (gates, units, *columns) = self._slices[name]
        rows = self.weights[indices].reshape((gates * units, *columns))
        return T.unbroadcast(rows, *range(rows.ndim))


@functools.cache
def _make_block(*settings: Any) -> Any:
    """Make an RNNBlock, once for each combination of settings.

    The cache keeps the block alive: graphs contain pointers into the block, but no reference to it.
    """
    return dnn.RNNBlock(*settings)


def _find_obstacle() -> str:
    """Return the reason why cuDNN's RNNBlock cannot be used, "" if it can be used."""
    try:
        gpuarray.get_context(None)
    except gpuarray.ContextNotDefined:
        return "no device is in use"
    return "" if dnn.dnn_available(None) else str(dnn.dnn_available.msg)


def _check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise ValueError(f"unknown {name} {value!r}; choose one of {', '.join(choices)}")


def _split_gates(units: int, values: Any, count: int) -> list[Any]:
    return [values[:, gate * units : (gate + 1) * units] for gate in range(count)]


# Each function below computes one step. ``input_sums`` has x W_g and the biases of all gates,
# without the ``bias`` of _gru.
def _relu(units: int, input_sums: Any, h: Any, matrix: Any) -> Any:
    total = input_sums + T.dot(h, matrix)
    # At 0, the slope of T.nnet.relu is 0.5, and cuDNN's slope is 0. With padding, sums are often 0.
    return T.switch(total > 0, total, 0)


def _tanh(units: int, input_sums: Any, h: Any, matrix: Any) -> Any:
    return T.tanh(input_sums + T.dot(h, matrix))


def _lstm(units: int, input_sums: Any, h: Any, c: Any, matrix: Any) -> tuple[Any, Any]:
    i, f, new, o = _split_gates(units, input_sums + T.dot(h, matrix), 4)
    c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(new)
    return T.nnet.sigmoid(o) * T.tanh(c), c


def _gru(units: int, input_sums: Any, h: Any, matrix: Any, bias: Any) -> Any:
    r, z, new = _split_gates(units, input_sums, 3)
    state_r, state_z, state_new = _split_gates(units, T.dot(h, matrix), 3)
    z = T.nnet.sigmoid(z + state_z)
    new = T.tanh(new + T.nnet.sigmoid(r + state_r) * (state_new + bias))
    return (1 - z) * new + z * h


STEPS: dict[str, Any] = {"rnn_relu": _relu, "rnn_tanh": _tanh, "lstm": _lstm, "gru": _gru}
