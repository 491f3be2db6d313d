"""Define sizes, initial values and data of the measured models, with NumPy only.

The Neural Turing Machine is the model of ``theano-fast verify``, loaded from ``runtime/``.
"""

from __future__ import annotations

import importlib.util
import string
from pathlib import Path
from typing import Any

import numpy as np

RUNTIME = Path(__file__).resolve().parent.parent / "runtime" / "theano_fast"

# The cache directory of frameworks that need one to keep compiled functions.
CACHE = Path.home() / ".cache"

# The learning rate of the full-size Neural Turing Machine in ``theano-fast verify``.
RATE = 1e-4

# The LSTM: LAYERS layers of UNITS units; a batch has BATCH sequences of STEPS vectors of FEATURES.
LSTM = {"steps": 50, "batch": 16, "features": 32, "units": 128, "layers": 3}
MLP = {"batch": 64, "features": 256, "units": 256, "layers": 20, "classes": 10}
# Images of one channel; filters are 3 x 3, and each convolution is pooled by 2 x 2.
CONV = {"batch": 32, "side": 28, "classes": 10}
FILTERS = (16, 32)
# A block of self-attention over POSITIONS tokens of WIDTH features, then a layer of HIDDEN units.
TRANSFORMER = {"batch": 8, "positions": 64, "width": 128, "heads": 4, "hidden": 512}
# A variational autoencoder of images: HIDDEN units, LATENT normal variables, HIDDEN units.
VAE = {"batch": 64, "pixels": 784, "hidden": 400, "latent": 20}
# The seed of the random streams that draw the normal variables.
SEED = 3
# Each formula gives a function of vectors and a function of matrices: 20 graphs, each compiled ten
# times.
TINY = {"functions": 200}
TINY_OPS = ("abs", "cos", "exp", "log", "sigmoid", "sin", "softplus", "sqr", "sqrt", "tanh")


def load_runtime_module(name: str) -> Any:
    """Load a module of the runtime from its file; it must not import its own package."""
    spec = importlib.util.spec_from_file_location(name, RUNTIME / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def make_ntm_size(ntm: Any, graph: str) -> Any:
    """Return the size of a Neural Turing Machine graph; ntm1 has one read head."""
    heads = graph[len("ntm") :]
    if heads.isdigit():
        return ntm.FULL._replace(read_heads=int(heads))
    return {"ntm": ntm.FULL, "ntm-small": ntm.SMALL}[graph]


def select_size(graph: str) -> str:
    """Set the size of a graph from the number at the end of its name; return the name without it.

    For example, lstm6 has 6 layers, mlp200 has 200 layers, and tiny2000 has 2,000 functions.
    """
    name = graph.rstrip(string.digits)
    sizes = {"lstm": (LSTM, "layers"), "mlp": (MLP, "layers"), "tiny": (TINY, "functions")}
    if name == graph or name not in sizes:
        return graph
    size, what = sizes[name]
    size[what] = int(graph[len(name) :])
    return name


def make_shapes(graph: str) -> dict[str, tuple[int, ...]]:
    """Return the shape of each parameter of a graph, by name."""
    if graph == "lstm":
        units, below = LSTM["units"], [LSTM["features"]] + [LSTM["units"]] * (LSTM["layers"] - 1)
        rows = {f"layer{i}": (width + units, 4 * units) for i, width in enumerate(below)}
        return {**rows, "output": (units, LSTM["features"])}
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
        for name, (one, other) in ends.items():
            layers[name] = VAE[one], VAE[other]
            layers[f"{name}.bias"] = (VAE[other],)
        return layers
    first, second = FILTERS
    # The side of an image: 28 -> 26 -> 13 -> 11 -> 5.
    return {
        "conv0": (first, 1, 3, 3),
        "conv1": (second, first, 3, 3),
        "output": (second * 5 * 5, CONV["classes"]),
    }


def make_initial_values(graph: str) -> dict[str, Any]:
    """Return the parameters' initial values in float64: gains 1, biases 0, random weights.

    The weights are uniform, with the range of Glorot and Bengio (2010).
    """
    draw = np.random.RandomState(1).uniform
    values = {}
    for name, shape in make_shapes(graph).items():
        if len(shape) == 1:
            values[name] = np.full(shape, 1.0 if name.endswith("gain") else 0.0)
            continue
        # The fan of a filter is its number of channels times the size of its receptive field.
        field = int(np.prod(shape[2:]))
        bound = np.sqrt(6.0 / (field * (shape[0] + shape[1])))
        values[name] = draw(-bound, bound, shape)
    return values


def make_batch(graph: str) -> tuple[Any, Any]:
    """Return a batch (inputs, targets) in float64; classes are integers."""
    random = np.random.RandomState(2)
    if graph == "lstm":
        return (
            random.uniform(-1, 1, (LSTM["steps"], LSTM["batch"], LSTM["features"])),
            random.uniform(-1, 1, (LSTM["batch"], LSTM["features"])),
        )
    if graph == "mlp":
        inputs = random.uniform(-1, 1, (MLP["batch"], MLP["features"]))
        return inputs, random.randint(0, MLP["classes"], MLP["batch"])
    if graph == "transformer":
        shape = tuple(TRANSFORMER[name] for name in ("batch", "positions", "width"))
        return random.uniform(-1, 1, shape), random.uniform(-1, 1, shape)
    if graph == "vae":
        images = random.uniform(0, 1, (VAE["batch"], VAE["pixels"]))
        return images, images
    inputs = random.uniform(0, 1, (CONV["batch"], 1, CONV["side"], CONV["side"]))
    return inputs, random.randint(0, CONV["classes"], CONV["batch"])


def make_tiny_inputs(i: int) -> tuple[Any, Any]:
    """Return the two arguments of the i-th tiny function."""
    random = np.random.RandomState(i)
    shape = (30,) if i // len(TINY_OPS) % 2 else (5, 6)
    return random.uniform(0, 1, shape), random.uniform(0, 1, shape)
