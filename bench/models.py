"""Define the sizes, initial values and data of the measured models.

This module imports no framework, because the programs of all frameworks import it. The Neural
Turing Machine is the model of ``theano-fast verify`` (``runtime/theano_fast/ntm.py``).
"""

from __future__ import annotations

import importlib.util
import string
from pathlib import Path
from typing import Any

import numpy as np

RUNTIME = Path(__file__).resolve().parent.parent / "runtime" / "theano_fast"

# The directory for the compile caches of frameworks that have no cache by default.
CACHE = Path.home() / ".cache"

# The dtype of all numbers except classes: float64 or float32 (compilation.py sets it).
DTYPE = "float64"

# The learning rate of the full-size Neural Turing Machine in ``theano-fast verify``.
RATE = 1e-4

# The sizes of the models. A batch of the LSTM has "batch" sequences of "steps" vectors of
# "features" numbers.
LSTM = {"steps": 50, "batch": 16, "features": 32, "units": 128, "layers": 3}
MLP = {"batch": 64, "features": 256, "units": 256, "layers": 20, "classes": 10}
# Images of side x side pixels with one channel. The filters are 3 x 3 pixels, and a max-pooling of
# 2 x 2 pixels follows each convolution.
CONV = {"batch": 32, "side": 28, "classes": 10}
# The number of filters of each convolution.
FILTERS = (16, 32)
# Self-attention over "positions" tokens of "width" features, then a layer of "hidden" units.
TRANSFORMER = {"batch": 8, "positions": 64, "width": 128, "heads": 4, "hidden": 512}
# A variational autoencoder of images. The encoder and the decoder have "hidden" units each. The
# encoder computes the distribution of "latent" normal variables.
VAE = {"batch": 64, "pixels": 784, "hidden": 400, "latent": 20}
# The seed of the random streams that draw the normal variables.
SEED = 3
# Each of the ten operations is applied to vectors and to matrices. So the 200 functions have 20
# different graphs. Each graph is compiled ten times.
TINY = {"functions": 200}
TINY_OPS = ("abs", "cos", "exp", "log", "sigmoid", "sin", "softplus", "sqr", "sqrt", "tanh")


def load_runtime_module(name: str) -> Any:
    """Load a module of ``runtime/theano_fast`` from its file.

    The module must not import its own package, which may not be installed.
    """
    spec = importlib.util.spec_from_file_location(name, RUNTIME / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_ntm_size(ntm: Any, graph: str) -> Any:
    """Return the ``ntm.Size`` of a Neural Turing Machine's graph.

    Args:
        ntm: the runtime's module ``ntm``.
        graph: ``ntm``, ``ntm-small``, or ``ntm`` and a number of read heads, as in ``ntm1``.
    """
    heads = graph[len("ntm") :]
    if heads.isdigit():
        return ntm.FULL._replace(read_heads=int(heads))
    return {"ntm": ntm.FULL, "ntm-small": ntm.SMALL}[graph]


def select_size(graph: str) -> str:
    """Set the size of a graph from the number at the end of its name; return the name without it.

    For example, lstm6 has 6 layers, mlp200 has 200 layers, and tiny2000 has 2,000 functions. Other
    names, such as ntm1, are returned unchanged.
    """
    name = graph.rstrip(string.digits)
    sizes = {"lstm": (LSTM, "layers"), "mlp": (MLP, "layers"), "tiny": (TINY, "functions")}
    if name == graph or name not in sizes:
        return graph
    size, key = sizes[name]
    size[key] = int(graph[len(name) :])
    return name


def make_shapes(graph: str) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of a graph, by name."""
    if graph == "lstm":
        units, widths = LSTM["units"], [LSTM["features"]] + [LSTM["units"]] * (LSTM["layers"] - 1)
        weights = {f"layer{i}": (width + units, 4 * units) for i, width in enumerate(widths)}
        return {**weights, "output": (units, LSTM["features"])}
    if graph == "mlp":
        widths = [MLP["features"]] + [MLP["units"]] * (MLP["layers"] - 1) + [MLP["classes"]]
        return {f"layer{i}": (widths[i], widths[i + 1]) for i in range(MLP["layers"])}
    if graph == "transformer":
        width, hidden = TRANSFORMER["width"], TRANSFORMER["hidden"]
        square = dict.fromkeys(("query", "key", "value", "mix"), (width, width))
        wide = {"widen": (width, hidden), "widen.bias": (hidden,)}
        narrow = {"narrow": (hidden, width), "narrow.bias": (width,)}
        norms = [f"norm{i}.{name}" for i in range(2) for name in ("gain", "bias")]
        return {**square, **wide, **narrow, **dict.fromkeys(norms, (width,))}
    if graph == "vae":
        ends: dict[str, tuple[str, str]] = {
            "encode": ("pixels", "hidden"),
            "mean": ("hidden", "latent"),
            "spread": ("hidden", "latent"),
            "decode": ("latent", "hidden"),
            "paint": ("hidden", "pixels"),
        }
        layers: dict[str, tuple[int, ...]] = {}
        for name, (inputs, outputs) in ends.items():
            layers[name] = VAE[inputs], VAE[outputs]
            layers[f"{name}.bias"] = (VAE[outputs],)
        return layers
    first, second = FILTERS
    # The side of an image in pixels, after each convolution and pooling: 28 -> 26 -> 13 -> 11 -> 5.
    return {
        "conv0": (first, 1, 3, 3),
        "conv1": (second, first, 3, 3),
        "output": (second * 5 * 5, CONV["classes"]),
    }


def make_initial_values(graph: str) -> dict[str, Any]:
    """Return the initial values of the parameters, by name, in DTYPE.

    Gains are 1 and biases are 0. Weights are random and uniform, in the range of Glorot and Bengio
    (2010). Each call returns the same values.
    """
    draw = np.random.RandomState(1).uniform
    values = {}
    for name, shape in make_shapes(graph).items():
        if len(shape) == 1:
            values[name] = np.full(shape, 1.0 if name.endswith("gain") else 0.0, DTYPE)
            continue
        # The fan-in and the fan-out of a filter are its numbers of input and output channels, times
        # the size of its receptive field.
        field = int(np.prod(shape[2:]))
        bound = np.sqrt(6.0 / (field * (shape[0] + shape[1])))
        values[name] = draw(-bound, bound, shape).astype(DTYPE)
    return values


def make_batch(graph: str) -> tuple[Any, Any]:
    """Return a batch: inputs in DTYPE, and targets in DTYPE or, for classes, int64.

    Each call returns the same numbers.
    """
    random = np.random.RandomState(2)

    def draw(low: int, *shape: int) -> Any:
        return random.uniform(low, 1, shape).astype(DTYPE)

    if graph == "lstm":
        inputs = draw(-1, LSTM["steps"], LSTM["batch"], LSTM["features"])
        return inputs, draw(-1, LSTM["batch"], LSTM["features"])
    if graph == "mlp":
        inputs = draw(-1, MLP["batch"], MLP["features"])
        return inputs, random.randint(0, MLP["classes"], MLP["batch"])
    if graph == "transformer":
        shape = [TRANSFORMER[name] for name in ("batch", "positions", "width")]
        return draw(-1, *shape), draw(-1, *shape)
    if graph == "vae":
        images = draw(0, VAE["batch"], VAE["pixels"])
        return images, images
    inputs = draw(0, CONV["batch"], 1, CONV["side"], CONV["side"])
    return inputs, random.randint(0, CONV["classes"], CONV["batch"])


def make_tiny_inputs(i: int) -> tuple[Any, ...]:
    """Return the two arguments of the i-th tiny function: vectors, or matrices."""
    random = np.random.RandomState(i)
    shape = (30,) if i // len(TINY_OPS) % 2 else (5, 6)
    return tuple(random.uniform(0, 1, shape).astype(DTYPE) for _ in range(2))
