"""Recurrent networks that cuDNN's RNNBlock and theano.scan compute alike, from the same weights.

They are those of cuDNN's documentation of cudnnRNNMode_t. For inputs x and a state h, let
Wg = x W_g + bW_g and Rg = h R_g + bR_g for each gate g. Then the next state h' is

- rnn_relu, rnn_tanh: h' = max(Wh + Rh, 0), or tanh(Wh + Rh);
- lstm, of Hochreiter and Schmidhuber (1997) with the forget gate of Gers et al. (2000):
  i, f, o = sigmoid(Wg + Rg); c' = f c + i tanh(Wc + Rc); h' = o tanh(c');
- gru, of Cho et al. (arXiv:1406.1078, 2014), but that the reset gate applies after the product:
  r, z = sigmoid(Wg + Rg); h' = (1 - z) tanh(Wh + r Rh) + z h.

With the input mode skip, x itself stands for x W_g in the first layer; both biases are added.
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
        inputs: the features of an input.
        units: the features of a state, of each layer and direction.
        layers: how many; each reads what the one below it returns.
        bidirectional: also read from the last input to the first, and concatenate the outputs.
        input_mode: "linear", or "skip" for no input matrices in the first layer.
        dtype: "float32" or "float64"; None is theano.config.floatX.
        seed: of the initial weights, or a RandomState to draw them from. They are uniform in
            (-1 / sqrt(units), 1 / sqrt(units)).

    Attributes:
        weights: all matrices and biases, a shared vector in cuDNN's layout, whatever computes.
        size: its length.

    Raises:
        ValueError: an argument is none of these, or the input mode is skip and inputs not units.
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
        """Check the arguments, place and draw the weights."""
        self.dtype = self.dtype or theano.config.floatX
        _choose("mode", self.mode, tuple(GATES))
        _choose("input_mode", self.input_mode, ("linear", "skip"))
        _choose("dtype", self.dtype, ("float32", "float64"))
        for name in ("inputs", "units", "layers"):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < 1:
                raise ValueError(f"{name} is {value!r}, not a positive integer")
        if self.input_mode == "skip" and self.inputs != self.units:
            raise ValueError(
                f"input_mode 'skip' needs inputs = units, not {self.inputs} and {self.units}"
            )
        self._directions = ("forward", "backward")[: 2 if self.bidirectional else 1]
        self._places = {}
        for name, shape in self._shapes():
            start, self.size = self.size, self.size + math.prod(shape)
            self._places[name] = slice(start, self.size), shape
        random = seed if isinstance(seed, np.random.RandomState) else np.random.RandomState(seed)
        bound = self.units**-0.5
        drawn = random.uniform(-bound, bound, self.size).astype(self.dtype)
        self.weights = theano.shared(drawn, name=self.mode)

    def _shapes(self) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the weights' names and shapes in cuDNN's order, all gates of a kind together.

        NVIDIA promises no order. It is what cudnnGetRNNWeightParams of cuDNN 9.13 tells, with
        which tests/cuda compares it: the matrices of all layers and directions, then the biases.
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

    def _parts(self, weights: Any) -> dict[str, Any]:
        """Return the parts of an array of weights, views, by name."""
        return {
            f"{name}_{gate}": part.T
            for name, (place, shape) in self._places.items()
            for gate, part in zip(GATES[self.mode], weights[place].reshape(shape), strict=True)
        }

    def split(self) -> dict[str, Any]:
        """Return the matrices and biases by names like "0.forward.W_i", as np.savez takes them.

        A name is the layer's number, "forward" or "backward", and W, R, bW or bR with a gate:
        i, f, c, o (lstm: input, forget, new memory, output), r, z, h (gru: reset, update, new
        state) or h. Matrices are (inputs, units) and (units, units), as T.dot(x, W) takes them;
        biases are (units,). With the input mode skip the first layer has no W.
        """
        return self._parts(np.asarray(self.weights.get_value()))

    def join(self, parts: Mapping[str, Any]) -> None:
        """Set the weights from what split returned, here or in a layer of another dtype.

        Raises:
            ValueError: a part is missing, unknown, or of another shape.
        """
        weights = np.empty(self.size, self.dtype)
        views = self._parts(weights)
        if missing := sorted(set(views) - set(parts)):
            raise ValueError(f"parts are missing: {', '.join(missing)}")
        if unknown := sorted(set(parts) - set(views)):
            raise ValueError(f"parts are not of this layer: {', '.join(unknown)}")
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

        y is (time, batch, units * directions), the last layer's states in the order of x; h and c
        are the last states and cells, of the shape of h0.

        Args:
            x: (time, batch, inputs), of the layer's dtype. It needs one step at least.
            h0, c0: initial states, and of an lstm cells, (layers * directions, batch, units), both
                directions of a layer one after the other. None is zeros.
            backend: "cudnn" or "scan"; None is cudnn if a CUDA device and cuDNN are in use when
                this is called. Only scan can be compiled for the CPU.

        Raises:
            ValueError: a variable has another ndim or dtype, c0 is given and the mode is not lstm,
                or the backend is unknown or cannot be used.
            AssertionError: the compiled function got an array of another shape.
        """
        if c0 is not None and self.mode != "lstm":
            raise ValueError(f"c0 is given, and mode {self.mode!r} has no cells: only 'lstm' has")
        x = self._variable("x", x)
        x = T.opt.Assert(f"x must have {self.inputs} features")(x, T.eq(x.shape[2], self.inputs))
        shape = (self.layers * len(self._directions), x.shape[1], self.units)
        states = []
        for name, value in (("h0", h0), ("c0", c0))[: 2 if self.mode == "lstm" else 1]:
            if value is None:
                states.append(T.zeros(shape, self.dtype))
            else:
                check = T.opt.Assert(f"{name} must be ({shape[0]}, batch of x, {self.units})")
                state = self._variable(name, value)
                states.append(check(state, *(T.eq(state.shape[i], shape[i]) for i in range(3))))
        # What is known to be 1 would make the types of a state before and after a step differ.
        x, *states = (T.unbroadcast(variable, 0, 1, 2) for variable in (x, *states))
        reason = _missing() if backend != "scan" else ""
        backend = backend or ("scan" if reason else "cudnn")
        _choose("backend", backend, ("scan", "cudnn"))
        if backend == "scan":
            return self._scan(x, states)
        if reason:
            raise ValueError(f"the backend 'cudnn' cannot be used: {reason}")
        return self._cudnn(x, states)

    def _variable(self, name: str, value: Any) -> Any:
        variable = T.as_tensor_variable(value)
        if (variable.ndim, variable.dtype) != (3, self.dtype):
            raise ValueError(
                f"{name} has {variable.ndim} dimensions of {variable.dtype}, not 3 of {self.dtype}"
            )
        return variable

    def _cudnn(self, x: Any, states: list[Any]) -> tuple[Any, ...]:
        direction = "bidirectional" if self.bidirectional else "unidirectional"
        settings = (self.units, self.layers, self.mode, self.input_mode, direction)
        block = _block(self.dtype, *settings)
        if (size := block.get_param_size((1, self.inputs))) != self.size:
            raise ValueError(f"this cuDNN has {size} weights where the layer has {self.size}")
        results = block.apply(self.weights, x, *states)
        return tuple(map(T.as_tensor_variable, results))

    def _scan(self, x: Any, states: list[Any]) -> tuple[Any, ...]:
        last: list[list[Any]] = [[] for _ in states]
        for layer in range(self.layers):
            outputs = []
            for direction in self._directions:
                at = len(last[0])
                steps = self._pass(f"{layer}.{direction}", x, [state[at] for state in states])
                for kept, step in zip(last, steps, strict=True):
                    kept.append(step[-1])
                outputs.append(steps[0] if direction == "forward" else steps[0][::-1])
            x = T.concatenate(outputs, axis=2) if self.bidirectional else outputs[0]
        return x, *map(T.stack, last)

    def _pass(self, name: str, x: Any, states: list[Any]) -> list[Any]:
        """Return the states, and cells, in the order of the steps of a layer's one direction."""
        matrix, bias, inner = (self._rows(f"{name}.{kind}") for kind in ("R", "bW", "bR"))
        constants = [matrix.T]
        if self.mode == "gru":
            # The reset gate multiplies the new state's inner bias, in each step.
            bias = T.inc_subtensor(bias[: -self.units], inner[: -self.units])
            constants.append(inner[-self.units :])
        else:
            bias += inner
        if f"{name}.W" in self._places:
            # One product for all steps.
            flat = T.dot(x.reshape((-1, x.shape[2])), self._rows(f"{name}.W").T)
            seen = flat.reshape((x.shape[0], x.shape[1], bias.shape[0])) + bias
        else:
            seen = T.concatenate([x] * len(GATES[self.mode]), axis=2) + bias
        steps, _ = theano.scan(
            functools.partial(STEPS[self.mode], self.units),
            sequences=seen,
            outputs_info=states,
            non_sequences=constants,
            go_backwards=name.endswith("backward"),
            strict=True,
            name=f"{self.mode}.{name}",
        )
        return steps if isinstance(steps, list) else [steps]

    def _rows(self, name: str) -> Any:
        """Return the weights of a kind: a row, or a number, for each unit of each gate."""
        place, (gates, units, *columns) = self._places[name]
        rows = self.weights[place].reshape((gates * units, *columns))
        return T.unbroadcast(rows, *range(rows.ndim))


@functools.cache
def _block(*settings: Any) -> Any:
    """Return an RNNBlock, which is kept: graphs point into it and do not keep it."""
    return dnn.RNNBlock(*settings)


def _missing() -> str:
    """Return why RNNBlock cannot be used, or nothing."""
    try:
        gpuarray.get_context(None)
    except gpuarray.ContextNotDefined:
        return "no device is in use"
    return "" if dnn.dnn_available(None) else str(dnn.dnn_available.msg)


def _choose(name: str, value: Any, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"unknown {name} {value!r}; known are {', '.join(known)}")


def _gates(units: int, values: Any, count: int) -> list[Any]:
    return [values[:, gate * units : (gate + 1) * units] for gate in range(count)]


def _relu(units: int, seen: Any, h: Any, matrix: Any) -> Any:
    total = seen + T.dot(h, matrix)
    # T.nnet.relu has the slope 0.5 where everything is 0, as in padding.
    return T.switch(total > 0, total, 0)


def _tanh(units: int, seen: Any, h: Any, matrix: Any) -> Any:
    return T.tanh(seen + T.dot(h, matrix))


def _lstm(units: int, seen: Any, h: Any, c: Any, matrix: Any) -> tuple[Any, Any]:
    i, f, new, o = _gates(units, seen + T.dot(h, matrix), 4)
    c = T.nnet.sigmoid(f) * c + T.nnet.sigmoid(i) * T.tanh(new)
    return T.nnet.sigmoid(o) * T.tanh(c), c


def _gru(units: int, seen: Any, h: Any, matrix: Any, bias: Any) -> Any:
    (r, z, new), kept = _gates(units, seen, 3), _gates(units, T.dot(h, matrix), 3)
    z = T.nnet.sigmoid(z + kept[1])
    new = T.tanh(new + T.nnet.sigmoid(r + kept[0]) * (kept[2] + bias))
    return (1 - z) * new + z * h


STEPS: dict[str, Any] = {"rnn_relu": _relu, "rnn_tanh": _tanh, "lstm": _lstm, "gru": _gru}
