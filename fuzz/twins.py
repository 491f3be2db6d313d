"""Compute the results of a program with NumPy: run its statements on arrays.

Theano's names are bound to twins: functions of NumPy, or of SciPy if NumPy has no equivalent. Types
follow the rules of fuzz.grammar.types. A scan becomes a loop; a derivative is computed by
differences of the statements before it. An operation without a twin, and everything computed from
it, has no value. Each line of standard input is a question in JSON. Each answer is a line of JSON:
{"runs": {"plain": {"calls": [{"outputs": [value or null, ...]}, ...]}}}, with a "tolerance" if the
program has derivatives.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import json
import sys
import types as python_types
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from fuzz import derivatives, layouts
from fuzz.encoding import encode
from fuzz.grammar import types
from fuzz.program import find_names, find_targets


class NoTwin(Exception):
    """NumPy has no equivalent of an operation, or its result is undefined."""


def constant(value: Any) -> np.ndarray[Any, Any]:
    """Return a number in the smallest type that can hold it."""
    if isinstance(value, bool):
        return np.array(value)
    kinds = types.SIGNED if isinstance(value, int) else ("float32", "float64")
    fits = (np.array(value).astype(dtype) for dtype in kinds)
    return next(array for array in fits if array == value)


def plain(value: Any) -> Any:
    """Return the NumPy array of a value; a list of integers becomes an array of int64."""
    if isinstance(value, Array):
        return value.array
    if isinstance(value, (list, tuple)):
        return np.array([int(plain(item)) for item in value], "int64")
    return constant(value) if isinstance(value, (bool, int, float)) else value


def name_of(array: Any) -> str:
    """Return the name of an array's dtype."""
    return str(array.dtype)


def to_integers(value: Any) -> Any:
    """Convert a shape, an axis or an index to integers."""
    if isinstance(value, slice):
        return slice(*(to_integers(bound) for bound in (value.start, value.stop, value.step)))
    if isinstance(value, (list, tuple)):
        return type(value)(to_integers(item) for item in value)
    if not isinstance(value, Array):
        return value
    if value.array.ndim:
        return value.array.astype("int64")
    return int(value.array)


class Array:
    """An array with Theano's operators.

    Args:
        array: the NumPy array.
        part: the array of which this is a part, and the index; None for a whole array.
    """

    def __init__(self, array: Any, part: tuple[Array, Any] | None = None) -> None:
        self.array = np.asarray(array)
        self.part = part

    def __getitem__(self, index: Any) -> Array:
        index = to_integers(index)
        return Array(self.array[index].copy(), (self, index))

    @property
    def shape(self) -> Array:
        """Return the lengths of the dimensions."""
        return Array(np.array(self.array.shape, "int64"))

    @property
    def size(self) -> Array:
        """Return the number of elements."""
        return Array(np.array(self.array.size, "int64"))

    @property
    def T(self) -> Array:
        """Return the transpose."""
        return Array(self.array.T)

    @property
    def ndim(self) -> int:
        """Return the number of dimensions."""
        return int(self.array.ndim)

    @property
    def dtype(self) -> str:
        """Return the name of the type."""
        return name_of(self.array)

    def dimshuffle(self, *order: Any) -> Array:
        """Return the array with its dimensions in another order; "x" is a new dimension."""
        kept = [axis for axis in order if axis != "x"]
        dropped = [axis for axis in range(self.ndim) if axis not in kept]
        turned = self.array.transpose([*kept, *dropped])
        turned = turned.reshape(turned.shape[: len(kept)])
        return Array(turned[tuple(None if axis == "x" else slice(None) for axis in order)])

    def flatten(self, ndim: int = 1) -> Array:
        """Join the last dimensions."""
        shape = self.array.shape[: ndim - 1]
        length = int(np.prod(self.array.shape[ndim - 1 :], dtype="int64"))
        return Array(self.array.reshape((*shape, length)))

    def reshape(self, shape: Any, ndim: int | None = None) -> Array:
        """Return the array in another shape."""
        lengths = shape.array.tolist() if isinstance(shape, Array) else to_integers(shape)
        return Array(self.array.reshape(lengths))

    def swapaxes(self, one: int, other: int) -> Array:
        """Swap two axes."""
        return Array(self.array.swapaxes(one, other))

    def nonzero(self) -> tuple[Array, ...]:
        """Return the positions of non-zero elements."""
        return tuple(map(Array, self.array.nonzero()))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Array:
        """Return the sum."""
        return _sum(self, axis, keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Array:
        """Return the product."""
        return _prod(self, axis, keepdims)

    def max(self) -> Array:
        """Return the largest element."""
        return _max(self)

    def norm(self, order: int) -> Array:
        """Return the length of a vector."""
        return Array(np.linalg.norm(self.array, order))

    def __abs__(self) -> Array:
        return Array(np.abs(self.array))

    def __invert__(self) -> Array:
        return Array(np.invert(self.array))


def upcast(*arrays: Any) -> str:
    """Return the common type of several types."""
    return types.upcast(*map(name_of, arrays))


def elementwise(
    function: Callable[..., Any], result: Callable[..., str] = upcast, *, boolean: bool = False
) -> Callable[..., Array]:
    """Make the twin of an elementwise operation.

    It computes in the type of the result, or in the common type of the operands if ``boolean``.
    """

    def twin(*values: Any) -> Array:
        arrays = [plain(value) for value in values]
        dtype = upcast(*arrays) if boolean else result(*arrays)
        computed_array = function(*(array.astype(dtype) for array in arrays))
        return Array(np.asarray(computed_array).astype("bool" if boolean else dtype))

    return twin


def floating(*arrays: Any) -> str:
    """Return the type of a function without integer values."""
    return types.compute_float_type(upcast(*arrays))


def divided(*arrays: Any) -> str:
    """Return the type of a quotient."""
    dtype = upcast(*arrays)
    return "float64" if dtype in types.DISCRETE else dtype


def _refuse(*_: Any, **__: Any) -> Any:
    raise NoTwin


def _chi_squared(x: Any, k: Any) -> Any:
    return np.where(k > 0, special.gammaincc(k / 2, x / 2), np.nan)


def _away(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


def _floor_divided(x: Any, y: Any) -> Any:
    # C and NumPy differ for integers divided by 0, and for the smallest integer divided by -1.
    defined = x.dtype.kind == "f" or (np.all(y) and not _overflows(x, y))
    return x // y if defined else _refuse()


def _overflows(x: Any, y: Any) -> bool:
    return x.dtype.kind == "i" and bool(np.any((y == -1) & (x == np.iinfo(x.dtype).min)))


def _remainder(x: Any, y: Any) -> Any:
    return np.mod(x, y) if np.all(y) and np.all(np.isfinite(y)) else _refuse()


def _powered(x: Any, y: Any) -> Any:
    return np.power(x, y) if x.dtype.kind != "b" else _refuse()


def _softmax(x: Any) -> Any:
    raised = np.exp(x - x.max(axis=-1, keepdims=True))
    return raised / raised.sum(axis=-1, keepdims=True)


def _log_softmax(x: Any) -> Any:
    lowered = x - x.max(axis=-1, keepdims=True)
    return lowered - np.log(np.exp(lowered).sum(axis=-1, keepdims=True))


def rows(function: Callable[[Any], Any]) -> Callable[[Any], Array]:
    """Make the twin of a function of rows: it takes a matrix or vector and computes in float64."""

    def twin(x: Any) -> Array:
        array = plain(x)
        array = array[None] if array.ndim == 1 else array
        return Array(function(array.astype("float64")).astype(array.dtype))

    return twin


def _categorical(p: Any, y: Any) -> Array:
    chosen = plain(y)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise NoTwin
    return Array(-np.log(p.array[np.arange(len(chosen)), chosen]))


_binary = elementwise(
    lambda o, t: -(t * np.log(o) + (1 - t) * np.log1p(-o)),
    # The expression contains the constant 1.0, a float32.
    lambda *arrays: types.upcast(upcast(*arrays), "float32"),
)


def switch(test: Any, x: Any, y: Any) -> Array:
    """Select from two arrays by a condition."""
    arrays = plain(x), plain(y)
    return Array(np.where(plain(test) != 0, *(array.astype(upcast(*arrays)) for array in arrays)))


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return axes as sorted numbers that are not negative; None means all axes."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    return tuple(sorted(number % ndim for number in axes))


def reduction(
    function: Callable[..., Any], result: Callable[[str], str], *, several: bool = True
) -> Callable[..., Array]:
    """Make the twin of a reduction; the twin reduces several axes at once, in a wide type."""

    def twin(x: Any, axis: Any = None, keepdims: bool = False, dtype: str | None = None) -> Array:
        array = plain(x)
        chosen = normalize_axes(axis, array.ndim)
        kept = [number for number in range(array.ndim) if number not in chosen]
        to = dtype or result(name_of(array))
        if dtype and array.dtype.kind in "fc" and dtype in types.DISCRETE:
            raise NoTwin
        # Move the reduced axes to the end, and join them to one axis.
        turned = array.transpose([*kept, *chosen])
        flat = turned.reshape(*turned.shape[: len(kept)], int(np.prod(turned.shape[len(kept) :])))
        wide = {"f": "float64", "c": "complex128"}.get(flat.dtype.kind, name_of(flat))
        reduced = np.asarray(function(flat.astype(wide), to))
        if keepdims:
            reduced = np.expand_dims(reduced, chosen)
        return Array(reduced.astype(to))

    return twin


def _summed(dtype: str) -> str:
    if dtype not in types.DISCRETE:
        return dtype
    return "uint64" if dtype in types.UNSIGNED else "int64"


def _real(dtype: str) -> str:
    return "float64" if dtype in types.DISCRETE else dtype


def _wide(x: Any, to: str) -> Any:
    return x.astype(to) if to in types.DISCRETE else x


def _ordered(function: Callable[..., Any]) -> Callable[..., Any]:
    """Refuse nan, which has no order."""
    return lambda x, _: function(x, axis=-1) if not np.isnan(x).any() else _refuse()


_same: Callable[[str], str] = str
_sum = reduction(lambda x, to: _wide(x, to).sum(axis=-1), _summed)
_prod = reduction(lambda x, to: _wide(x, to).prod(axis=-1), _summed)
_max = reduction(_ordered(np.max), _same)
_argmax = reduction(_ordered(np.argmax), lambda _: "int64")


def cumulated(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of a cumulative sum or product, computed in the operand's type."""

    def twin(x: Any, axis: int | None = None) -> Array:
        array = plain(x)
        if array.dtype.kind == "b":
            raise NoTwin
        return Array(function(array, axis=axis, dtype=array.dtype))

    return twin


def changed(added: bool) -> Callable[..., Array]:
    """Make the twin of inc_subtensor if ``added``, else of set_subtensor."""

    def twin(part: Array, value: Any) -> Array:
        if part.part is None:
            raise NoTwin
        of, index = part.part
        copied = of.array.copy()
        new = plain(value).astype(copied.dtype)
        if added:
            np.add.at(copied, index, new)
        else:
            copied[index] = new
        return Array(copied)

    return twin


def structural(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of a function that moves or copies elements."""
    return lambda x, *more, **named: Array(
        function(
            plain(x),
            *map(to_integers, more),
            **{key: to_integers(value) for key, value in named.items()},
        )
    )


def triangle(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of tril or triu; Theano multiplies the triangle by 1, other elements by 0."""

    def twin(x: Array, offset: int) -> Array:
        if x.array.dtype.kind == "b" or not np.isfinite(x.array).all():
            raise NoTwin
        return Array(function(x.array, offset))

    return twin


def joined(values: Sequence[Any], axis: int = 0, function: Any = np.concatenate) -> Array:
    """Join arrays in their common type."""
    arrays = [plain(value) for value in values]
    return Array(function([array.astype(upcast(*arrays)) for array in arrays], axis))


def split(x: Array, sizes: Any, count: int, axis: int) -> list[Array]:
    """Split an array into parts of the lengths ``sizes``."""
    lengths = plain(sizes).tolist()
    if min(lengths) < 0 or sum(lengths) != x.array.shape[axis]:
        raise NoTwin
    return [Array(part) for part in np.split(x.array, np.cumsum(lengths)[:-1], axis)]


def arange(*bounds: Any) -> Array:
    """Return a range of integers."""
    return Array(np.arange(*map(to_integers, bounds), dtype="int64"))


def alloc(x: Any, *shape: Any) -> Array:
    """Repeat an array."""
    return Array(np.broadcast_to(plain(x), to_integers(shape)).copy())


def filled(x: Array, value: Any) -> Array:
    """Fill an array with one value."""
    return Array(np.broadcast_to(plain(value), x.array.shape).copy())


def product(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of a product, in the common type; floats are computed in float64."""

    def twin(x: Any, y: Any, **named: Any) -> Array:
        arrays = plain(x), plain(y)
        dtype = upcast(*arrays)
        if dtype in types.COMPLEX and not all(np.isfinite(array).all() for array in arrays):
            # Refuse it: infinite times finite complex numbers may give nan, depending on the
            # algorithm.
            raise NoTwin
        wide = "float64" if dtype in types.FLOATS else dtype
        return Array(function(*(array.astype(wide) for array in arrays), **named).astype(dtype))

    return twin


def batched_tensordot(x: Any, y: Any, axes: Any) -> Any:
    """Multiply the matrices at equal positions of two batches."""
    if axes != [2, 1] or x.ndim != 3 or y.ndim != 3:
        raise NoTwin
    return np.matmul(x, y)


def topk(x: Array, k: int, axis: int = -1) -> Array:
    """Return the k largest elements in order, or the smallest if k is negative."""
    length = x.array.shape[axis]
    if np.isnan(x.array).any() or not 0 < abs(k) <= length:
        raise NoTwin
    chosen = range(length - k, length) if k > 0 else range(-k)
    return Array(np.take(np.sort(x.array, axis), list(chosen), axis))


def argtopk(x: Array, k: int) -> Array:
    """Return the positions of the k largest elements."""
    if np.isnan(x.array).any() or not 0 < abs(k) <= len(x.array):
        raise NoTwin
    order = np.argsort(x.array, kind="stable")
    return Array(order[-k:] if k > 0 else order[:-k])


def convolution(x: Array, k: Array, **options: Any) -> Array:
    """Convolve images of any number of dimensions with filters."""
    border_mode = options.get("border_mode", "valid")
    subsample = options.get("subsample", 1)
    gaps = options.get("filter_dilation", 1)
    images, filters = x.array.astype("float64"), k.array.astype("float64")
    if not (np.isfinite(images).all() and np.isfinite(filters).all()):
        # Some methods multiply a non-finite number by a 0 of the padding, others do not.
        raise NoTwin
    ndim = filters.ndim - 2
    lengths = np.array(filters.shape[2:])
    dilated = (lengths - 1) * gaps + 1
    named = {"valid": 0 * dilated, "full": dilated - 1, "half": dilated // 2}
    pads = named[border_mode] if isinstance(border_mode, str) else [border_mode]
    pads = np.broadcast_to(np.ravel(pads), ndim)
    if filters.shape[1] != images.shape[1]:
        raise NoTwin
    padded = np.pad(images, [(0, 0), (0, 0), *((n, n) for n in pads)])
    steps = np.broadcast_to(subsample, ndim)
    shape = (np.array(padded.shape[2:]) - dilated) // steps + 1
    if np.any(shape <= 0):
        raise NoTwin
    if options.get("filter_flip", True):
        filters = filters[(..., *[slice(None, None, -1)] * ndim)]
    sums = np.zeros((images.shape[0], filters.shape[0], *shape))
    gaps = np.broadcast_to(gaps, ndim)
    for position in itertools.product(*map(range, lengths)):
        seen = tuple(
            slice(p * gap, p * gap + (n - 1) * step + 1, step)
            for p, gap, n, step in zip(position, gaps, shape, steps)
        )
        taps = filters[(slice(None), slice(None), *position)]
        sums += np.einsum("bc...,kc->bk...", padded[(slice(None), slice(None), *seen)], taps)
    return Array(sums.astype(upcast(x.array, k.array)))


def pool_2d(x: Array, ws: Any, **options: Any) -> Array:
    """Return the maximum, sum or mean of windows."""
    mode, pad = options["mode"], options.get("pad", (0, 0))
    ignore_border, steps = options["ignore_border"], options.get("stride", ws)
    if not ignore_border and (any(pad) or any(s > w for s, w in zip(steps, ws))):
        raise NoTwin
    empty = -np.inf if mode == "max" else 0
    sides = [(0, 0), (0, 0), *((n, n) for n in pad)]
    padded = np.pad(x.array.astype("float64"), sides, constant_values=empty)
    inside = padded.shape[2:]
    if ignore_border:
        counts = [max(0, (n - w) // s + 1) for n, w, s in zip(inside, ws, steps)]
    else:
        counts = [-(-max(0, n - w) // s) + 1 for n, w, s in zip(inside, ws, steps)]
    pooled = np.zeros((*padded.shape[:2], *counts))
    for i, j in np.ndindex(*counts):
        (a, b), (c, d) = (
            (n * s, min(n * s + w, top)) for n, s, w, top in zip((i, j), steps, ws, inside)
        )
        window = padded[:, :, a:b, c:d]
        # The lengths of the window without its padding.
        high, wide = (
            min(to, top - n) - max(by, n)
            for by, to, top, n in ((a, b, inside[0], pad[0]), (c, d, inside[1], pad[1]))
        )
        here = high * wide
        if mode == "max":
            pooled[:, :, i, j] = window.max(axis=(2, 3))
        else:
            counted = {"sum": 1, "average_inc_pad": (b - a) * (d - c)}.get(mode, here)
            pooled[:, :, i, j] = window.sum(axis=(2, 3)) / counted
    return Array(pooled.astype(x.array.dtype))


def ifelse(test: Any, x: Any, y: Any) -> Any:
    """Return the selected branch."""
    chosen = x if plain(test) else y
    return chosen if isinstance(chosen, (Array, list)) else Array(plain(chosen))


def rounded(x: Any, mode: str = "half_to_even") -> Array:
    """Round to the nearest integer."""
    return elementwise(np.round if mode == "half_to_even" else _away)(x)


def max_and_argmax(x: Any, **named: Any) -> tuple[Array, Array]:
    """Return the maximum and its position."""
    return _max(x, **named), _argmax(x, **named)


@dataclass(frozen=True)
class Until:
    """The condition that ends a scan when it is true."""

    condition: Array


def to_list(values: Any) -> list[Any]:
    """Return a list: [] for None, [value] for a single value."""
    if isinstance(values, (list, tuple)):
        return list(values)
    return [] if values is None else [values]


def tapped(value: Any, key: str, tap: int) -> tuple[Any, list[int]]:
    """Return a sequence or an initial state, and its taps."""
    return (value[key], value["taps"]) if isinstance(value, dict) else (value, [tap])


def scan(
    function: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    **options: Any,
) -> tuple[Any, dict[Array, Array]]:
    """Run the function of a scan at each step; return the results and the updates."""
    rows = []
    for sequence, taps in (tapped(entry, "input", 0) for entry in to_list(sequences)):
        array, low, high = plain(sequence), min(0, *taps, 0), max(0, *taps, 0)
        parts = [array[tap - low : len(array) + tap - high] for tap in taps]
        rows += [part[::-1] if options.get("go_backwards") else part for part in parts]
    steps = to_integers(options.get("n_steps", min(map(len, rows), default=0)))
    if steps < 1 or any(len(row) < steps for row in rows):
        raise NoTwin
    states: list[tuple[list[Any], list[int]]] = []
    for initial, taps in (tapped(entry, "initial", -1) for entry in to_list(outputs_info)):
        if initial is None:
            states.append(([], []))
        else:
            first = plain(initial)[None] if taps == [-1] else plain(initial)[: -min(taps)]
            states.append((list(map(np.asarray, first)), taps))
    variables: dict[Array, Array] = {}
    for step in range(steps):
        values = [row[step] for row in rows]
        values += [past[tap] for past, taps in states for tap in taps]
        with replaced_values(variables):
            returned = function(*map(Array, values), *to_list(options.get("non_sequences")))
        outputs, *more = returned if isinstance(returned, tuple) else (returned,)
        for (past, taps), output in zip(states, map(plain, to_list(outputs)), strict=True):
            if taps and (past[-1].shape, past[-1].dtype) != (output.shape, output.dtype):
                raise NoTwin
            past.append(output)
        for pairs in (item for item in more if isinstance(item, list)):
            variables.update(pairs)
        if any(plain(item.condition) for item in more if isinstance(item, Until)):
            break
    results = [Array(np.stack(past[-min(taps, default=0) :])) for past, taps in states]
    return results if options.get("return_list") or len(results) > 1 else results[0], variables


@contextlib.contextmanager
def replaced_values(new: Mapping[Array, Array]) -> Iterator[None]:
    """Give variables other values inside the block."""
    old = {variable: variable.array for variable in new}
    for variable, other in new.items():
        variable.array = other.array
    try:
        yield
    finally:
        for variable, array in old.items():
            variable.array = array


OPERATORS: dict[str, Callable[..., Array]] = {
    "add": elementwise(np.add),
    "sub": elementwise(np.subtract),
    "mul": elementwise(np.multiply),
    "truediv": elementwise(np.divide, divided),
    "floordiv": elementwise(_floor_divided),
    "mod": elementwise(_remainder),
    "pow": elementwise(_powered),
}
for _name, _twin in OPERATORS.items():
    setattr(Array, f"__{_name}__", _twin)
    setattr(Array, f"__r{_name}__", lambda self, other, twin=_twin: twin(other, self))
_functions: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in (
            *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cos"),
            *("sin", "tan", "arccos", "arcsin", "arctan", "cosh", "sinh", "tanh"),
            *("arccosh", "arcsinh", "arctanh", "deg2rad", "rad2deg"),
        )
    },
    **{
        name: getattr(special, name)
        for name in (
            *("erf", "erfc", "erfinv", "erfcinv", "erfcx", "gamma", "gammaln", "psi", "i0"),
            *("i1", "j0", "j1"),
        )
    },
    "tri_gamma": functools.partial(special.polygamma, 1),
    "inv": lambda x: 1 / x,
    "nnet.sigmoid": special.expit,
    "nnet.softplus": lambda x: np.logaddexp(x, 0),
    "nnet.hard_sigmoid": lambda x: np.clip(x * 0.2 + 0.5, 0, 1),
    "arctan2": np.arctan2,
    "gammainc": special.gammainc,
    "gammaincc": special.gammaincc,
    "gammau": lambda k, x: special.gammaincc(k, x) * special.gamma(k),
    "gammal": lambda k, x: special.gammainc(k, x) * special.gamma(k),
}
T: dict[str, Any] = {
    **{name: elementwise(twin, floating) for name, twin in _functions.items()},
    **{name: elementwise(getattr(np, name), floating) for name in ("floor", "ceil", "trunc")},
    **{
        name: elementwise(getattr(np, twin), boolean=True)
        for name, twin in {
            "eq": "equal",
            "neq": "not_equal",
            "lt": "less",
            "le": "less_equal",
            "gt": "greater",
            "ge": "greater_equal",
            "isnan": "isnan",
            "isinf": "isinf",
        }.items()
    },
    **{
        name: elementwise(getattr(np, twin))
        for name, twin in {
            "maximum": "maximum",
            "minimum": "minimum",
            "neg": "negative",
            "sqr": "square",
            "and_": "bitwise_and",
            "or_": "bitwise_or",
            "xor": "bitwise_xor",
            "conj": "conjugate",
            "sgn": "sign",
        }.items()
    },
    **{
        name: structural(getattr(np, name))
        for name in ["roll", "moveaxis", "repeat", "tile", "diff", "diagonal", "diag", "bincount"]
    },
    **{name: product(getattr(np, name)) for name in ("dot", "tensordot", "outer")},
    "chi2sf": elementwise(_chi_squared, lambda *_: "float64"),
    "tril": triangle(np.tril),
    "triu": triangle(np.triu),
    "round": rounded,
    "abs_": abs,
    "real": structural(np.real),
    "imag": structural(np.imag),
    "angle": lambda x: Array(np.angle(x.array).astype("float64")),
    "complex": lambda x, y: Array(plain(x) + np.array(1j, "complex64") * plain(y)),
    "cast": lambda x, dtype: Array(plain(x).astype(dtype)),
    "clip": elementwise(lambda x, low, high: np.where(x < low, low, np.where(x > high, high, x))),
    "switch": switch,
    "sum": _sum,
    "prod": _prod,
    "mean": reduction(lambda x, _: x.mean(axis=-1), _real),
    "var": reduction(lambda x, _: x.var(axis=-1), _real),
    "std": reduction(lambda x, _: x.std(axis=-1), _real),
    "max": _max,
    "min": reduction(_ordered(np.min), _same),
    "ptp": reduction(_ordered(np.ptp), _same),
    "argmax": _argmax,
    "argmin": reduction(_ordered(np.argmin), lambda _: "int64"),
    "any": reduction(lambda x, _: x.any(axis=-1), lambda _: "bool"),
    "all": reduction(lambda x, _: x.all(axis=-1), lambda _: "bool"),
    "max_and_argmax": max_and_argmax,
    "cumsum": cumulated(np.cumsum),
    "cumprod": cumulated(np.cumprod),
    "set_subtensor": changed(added=False),
    "inc_subtensor": changed(added=True),
    "reshape": Array.reshape,
    "shape": lambda x: x.shape,
    "join": lambda axis, *values: joined(values, axis),
    "concatenate": joined,
    "stack": functools.partial(joined, function=np.stack),
    "split": split,
    "arange": arange,
    "alloc": alloc,
    "constant": lambda x, dtype=None: Array(plain(x) if dtype is None else np.asarray(x, dtype)),
    "eye": lambda n, m, k: Array(np.eye(to_integers(n), to_integers(m), to_integers(k))),
    "zeros": lambda shape, dtype: Array(np.zeros(to_integers(shape), dtype)),
    "zeros_like": structural(np.zeros_like),
    "ones_like": structural(np.ones_like),
    "fill": filled,
    "shape_padleft": lambda x, n=1: Array(x.array[(None,) * n]),
    "shape_padright": lambda x, n=1: Array(x.array[(..., *(None,) * n)]),
    "shape_padaxis": structural(np.expand_dims),
    "addbroadcast": lambda x, *_: x,
    "unbroadcast": lambda x, *_: x,
    "nonzero_values": lambda x: Array(x.array[x.array.nonzero()]),
    "batched_dot": product(np.matmul),
    "batched_tensordot": product(batched_tensordot),
    "sort": structural(np.sort),
    "argsort": structural(np.argsort),
    "topk": topk,
    "argtopk": argtopk,
    "nnet.softmax": rows(_softmax),
    "nnet.logsoftmax": rows(_log_softmax),
    "nnet.categorical_crossentropy": _categorical,
    "nnet.binary_crossentropy": _binary,
    "nnet.conv2d": convolution,
    "nnet.conv3d": convolution,
}


for _name in ("lt", "le", "gt", "ge", "neg"):
    # Operators look methods up in the class.
    setattr(Array, f"__{_name}__", lambda *values, twin=T[_name]: twin(*values))


class Twins:
    """Theano's names, mapped to their NumPy equivalents."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name == "nnet":
            return Twins("nnet.")
        try:
            return T[self.prefix + name]
        except KeyError:
            raise NoTwin(name) from None


NAMES = {
    "T": Twins(),
    "np": np,
    "ifelse": ifelse,
    "pool_2d": pool_2d,
    "theano": python_types.SimpleNamespace(scan=scan),
    "until": Until,
}
# The functions that compute derivatives.
DERIVATIVES = ("T.grad", "T.Rop", "T.Lop", "theano.gradient.jacobian", "theano.gradient.hessian")
# Differences are too inexact for larger numbers.
LARGE = 2.0**20


@functools.lru_cache
def code(text: str) -> python_types.CodeType:
    """Compile a statement."""
    return compile(text, "program", "exec")


@functools.lru_cache
def derivative(text: str) -> list[str]:
    """Return a derivative's function and the texts of its arguments; [] if it is no derivative."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in DERIVATIVES:
        return []
    return [ast.unparse(node) for node in (call.func, *call.args)]


def run_statements(
    statements: Sequence[tuple[str, str]], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Run statements; return the values of all names, except names without a twin."""
    names = dict(values)
    for number, (target, text) in enumerate(statements):
        try:
            if parts := derivative(text):
                names[target] = derive(parts, statements[:number], values)
            else:
                exec(code(f"{target} = {text}"), names)
        except Exception:
            # This oracle does not decide whether a statement must raise; other oracles do.
            continue
    return names


def derive(
    parts: Sequence[str], statements: Sequence[tuple[str, str]], values: Mapping[str, Any]
) -> Array:
    """Compute a derivative by differences of the statements before it."""
    name, of, by, *more = parts
    arrays = [value.array for value in values.values() if isinstance(value, Array)]
    x = values[by].array
    if (
        x.dtype != "float64"
        or any("truncate_gradient" in text for _, text in statements)
        or not all(np.all(np.abs(array) <= LARGE) for array in arrays)
    ):
        raise NoTwin
    kept = find_needed(statements, " + ".join([of, *more]))

    def value(array: Any, text: str = of) -> Any:
        names = run_statements(kept, {**values, by: Array(array)})
        return plain(eval(text, names)).astype("float64")

    slopes = functools.partial(derivatives.compute_jacobian, value)
    if name.endswith("hessian"):
        return Array(derivatives.compute_jacobian(slopes, x))
    if name == "T.Rop":
        return Array(np.tensordot(slopes(x), value(x, more[0]), x.ndim))
    if name == "T.Lop":
        by_output = value(x, more[0])
        return Array(np.tensordot(by_output, slopes(x), by_output.ndim))
    return Array(slopes(x))


def find_needed(statements: Sequence[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """Return the statements on which an expression depends."""
    names, kept = set(find_names(text)), []
    for target, part in reversed(statements):
        if names & set(find_targets(target)):
            kept.append((target, part))
            names |= find_names(part)
    return kept[::-1]


def find_imprecise(statements: Sequence[tuple[str, str]]) -> set[str]:
    """Return the names computed from a derivative, which are less exact than the derivative."""
    derived: set[str] = set()
    imprecise: set[str] = set()
    for target, text in statements:
        if derivative(text):
            derived.add(target)
        elif find_names(text) & (derived | imprecise):
            imprecise.update(find_targets(target))
    return imprecise


def answer(asked: dict[str, Any]) -> list[list[Any]]:
    """Return the results of all calls; None for a result without a twin."""
    values = {**vars(layouts), "np": np}
    shared = {name: Array(eval(source, values)) for name, source in asked["shared"]}
    imprecise = find_imprecise(asked["statements"])
    calls = []
    for texts in asked["calls"]:
        arrays = [eval(text, values) for text in texts]
        for one, other in asked["aliases"]:
            if (arrays[one].dtype, arrays[one].shape) == (arrays[other].dtype, arrays[other].shape):
                arrays[other] = arrays[one]
        inputs = {name: Array(array) for name, array in zip(asked["inputs"], arrays)}
        names = run_statements(asked["statements"], {**NAMES, **shared, **inputs})
        for name in imprecise:
            names.pop(name, None)
        results = (names.get(name) for name in asked["outputs"])
        calls.append([encode(e.array) if isinstance(e, Array) else None for e in results])
        new: dict[str, Any] = {}
        for name, text in asked["updates"]:
            value = names.get(text)
            if isinstance(value, dict):
                # The keys of a scan's updates are the variables.
                new.update(
                    {key: value[variable] for key, variable in shared.items() if variable in value}
                )
            else:
                new[name] = value
        if any(not isinstance(value, Array) for value in new.values()):
            break
        shared.update(new)
    return calls


def main() -> None:
    """Answer the questions on standard input."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for line in sys.stdin:
        asked = json.loads(line)
        calls = [{"outputs": outputs} for outputs in answer(asked)]
        answer_line: dict[str, Any] = {"runs": {"plain": {"calls": calls}}}
        if any(derivative(text) for _, text in asked["statements"]):
            answer_line["tolerance"] = derivatives.TOLERANCE
        print(json.dumps(answer_line), flush=True)


if __name__ == "__main__":
    main()
