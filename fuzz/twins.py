"""What NumPy makes of a program: its statements, run on arrays.

What Theano's operations are called here are functions of NumPy (of SciPy where NumPy has none), and
types are converted by the rules of fuzz.grammar.types. A scan is a loop over its function's twin, a
derivative one by differences of the statements before it. What has no twin has no value, nor has
what is computed from it. A line of JSON for each program on standard input, one back:
as a worker's, {"runs": {"plain": {"calls": [{"outputs": [value or null, ...]}, ...]}}}, with the
"tolerance" that derivatives need.
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
from fuzz.encoding import encoded
from fuzz.grammar import types
from fuzz.program import read, targets


class Untwinned(Exception):
    """There is no twin, or its result is not defined."""


def constant(value: Any) -> np.ndarray[Any, Any]:
    """A number, of the smallest type that has it."""
    if isinstance(value, bool):
        return np.array(value)
    kinds = types.SIGNED if isinstance(value, int) else ("float32", "float64")
    fits = (np.array(value).astype(dtype) for dtype in kinds)
    return next(array for array in fits if array == value)


def plain(value: Any) -> Any:
    """NumPy's array of a value; a list of values is one of arrays."""
    if isinstance(value, Array):
        return value.array
    if isinstance(value, (list, tuple)):
        return np.array([int(plain(each)) for each in value], "int64")
    return constant(value) if isinstance(value, (bool, int, float)) else value


def name_of(array: Any) -> str:
    """Its type's name."""
    return str(array.dtype)


def whole(value: Any) -> Any:
    """Integers for a shape, an axis, an index."""
    if isinstance(value, slice):
        return slice(*(whole(each) for each in (value.start, value.stop, value.step)))
    if isinstance(value, (list, tuple)):
        return type(value)(whole(each) for each in value)
    if not isinstance(value, Array):
        return value
    if value.array.ndim:
        return value.array.astype("int64")
    return int(value.array)


class Array:
    """An array with Theano's operators.

    Args:
        array: NumPy's.
        part: where it is a part of another one, that and the index.
    """

    def __init__(self, array: Any, part: tuple[Array, Any] | None = None) -> None:
        self.array = np.asarray(array)
        self.part = part

    def __getitem__(self, index: Any) -> Array:
        index = whole(index)
        return Array(self.array[index].copy(), (self, index))

    @property
    def shape(self) -> Array:
        """The lengths."""
        return Array(np.array(self.array.shape, "int64"))

    @property
    def size(self) -> Array:
        """How many elements."""
        return Array(np.array(self.array.size, "int64"))

    @property
    def T(self) -> Array:
        """The transpose."""
        return Array(self.array.T)

    @property
    def ndim(self) -> int:
        """How many dimensions."""
        return int(self.array.ndim)

    @property
    def dtype(self) -> str:
        """The type's name."""
        return name_of(self.array)

    def dimshuffle(self, *order: Any) -> Array:
        """Dimensions in another order, new ones ("x") among them."""
        kept = [place for place in order if place != "x"]
        left = [place for place in range(self.ndim) if place not in kept]
        turned = self.array.transpose([*kept, *left])
        turned = turned.reshape(turned.shape[: len(kept)])
        return Array(turned[tuple(None if place == "x" else slice(None) for place in order)])

    def flatten(self, ndim: int = 1) -> Array:
        """The last dimensions made one."""
        shape = self.array.shape[: ndim - 1]
        length = int(np.prod(self.array.shape[ndim - 1 :], dtype="int64"))
        return Array(self.array.reshape((*shape, length)))

    def reshape(self, shape: Any, ndim: int | None = None) -> Array:
        """In another shape."""
        lengths = shape.array.tolist() if isinstance(shape, Array) else whole(shape)
        return Array(self.array.reshape(lengths))

    def swapaxes(self, one: int, other: int) -> Array:
        """Two axes in each other's place."""
        return Array(self.array.swapaxes(one, other))

    def nonzero(self) -> tuple[Array, ...]:
        """The places of what is not 0."""
        return tuple(map(Array, self.array.nonzero()))

    def sum(self, axis: Any = None, keepdims: bool = False) -> Array:
        """The sum."""
        return _sum(self, axis, keepdims)

    def prod(self, axis: Any = None, keepdims: bool = False) -> Array:
        """The product."""
        return _prod(self, axis, keepdims)

    def max(self) -> Array:
        """The largest element."""
        return _max(self)

    def norm(self, order: int) -> Array:
        """The length of a vector."""
        return Array(np.linalg.norm(self.array, order))

    def __abs__(self) -> Array:
        return Array(np.abs(self.array))

    def __invert__(self) -> Array:
        return Array(np.invert(self.array))


def upcast(*arrays: Any) -> str:
    """The type that they are converted to."""
    return types.upcast(*map(name_of, arrays))


def elementwise(
    function: Callable[..., Any], result: Callable[..., str] = upcast, *, boolean: bool = False
) -> Callable[..., Array]:
    """An operation on elements, computed in its result's type, or all's if that is boolean."""

    def twin(*values: Any) -> Array:
        arrays = [plain(each) for each in values]
        dtype = upcast(*arrays) if boolean else result(*arrays)
        found = function(*(each.astype(dtype) for each in arrays))
        return Array(np.asarray(found).astype("bool" if boolean else dtype))

    return twin


def floating(*arrays: Any) -> str:
    """The type of a function that has no integer values."""
    return types.floating(upcast(*arrays))


def divided(*arrays: Any) -> str:
    """The type of a quotient."""
    dtype = upcast(*arrays)
    return "float64" if dtype in types.DISCRETE else dtype


def _refuse(*_: Any, **__: Any) -> Any:
    raise Untwinned


def _chi_squared(x: Any, k: Any) -> Any:
    return np.where(k > 0, special.gammaincc(k / 2, x / 2), np.nan)


def _away(x: Any) -> Any:
    return np.trunc(x + np.copysign(0.5, x))


def _floor_divided(x: Any, y: Any) -> Any:
    # Of integers, where one divides by 0 C and NumPy differ, and for the least integer over -1.
    told = x.dtype.kind == "f" or (np.all(y) and not _overflows(x, y))
    return x // y if told else _refuse()


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
    """A function of each row; a vector is a row. Narrow floats are computed in wide ones."""

    def twin(x: Any) -> Array:
        array = plain(x)
        array = array[None] if array.ndim == 1 else array
        return Array(function(array.astype("float64")).astype(array.dtype))

    return twin


def _categorical(p: Any, y: Any) -> Array:
    chosen = plain(y)
    if chosen.ndim != 1 or chosen.dtype.kind not in "iu":
        raise Untwinned
    return Array(-np.log(p.array[np.arange(len(chosen)), chosen]))


_binary = elementwise(
    lambda o, t: -(t * np.log(o) + (1 - t) * np.log1p(-o)),
    # It has a 1.0, which is of 32 bits.
    lambda *arrays: types.upcast(upcast(*arrays), "float32"),
)


def switch(test: Any, x: Any, y: Any) -> Array:
    """One where it is true, the other one elsewhere."""
    arrays = plain(x), plain(y)
    return Array(np.where(plain(test) != 0, *(each.astype(upcast(*arrays)) for each in arrays)))


def places(axis: Any, ndim: int) -> tuple[int, ...]:
    """Axes, as numbers from 0 on."""
    if axis is None:
        return tuple(range(ndim))
    listed = axis if isinstance(axis, (list, tuple)) else [axis]
    return tuple(sorted(each % ndim for each in listed))


def reduction(
    function: Callable[..., Any], result: Callable[[str], str], *, several: bool = True
) -> Callable[..., Array]:
    """A reduction, of several axes at once or of one; accumulated in wide types."""

    def twin(x: Any, axis: Any = None, keepdims: bool = False, dtype: str | None = None) -> Array:
        array = plain(x)
        chosen = places(axis, array.ndim)
        kept = [place for place in range(array.ndim) if place not in chosen]
        to = dtype or result(name_of(array))
        if dtype and array.dtype.kind in "fc" and dtype in types.DISCRETE:
            raise Untwinned
        # What is reduced comes last, as one axis.
        turned = array.transpose([*kept, *chosen])
        flat = turned.reshape(*turned.shape[: len(kept)], int(np.prod(turned.shape[len(kept) :])))
        wide = {"f": "float64", "c": "complex128"}.get(flat.dtype.kind, name_of(flat))
        found = np.asarray(function(flat.astype(wide), to))
        if keepdims:
            found = np.expand_dims(found, chosen)
        return Array(found.astype(to))

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
    """A function of what has an order: no nan."""
    return lambda x, _: function(x, axis=-1) if not np.isnan(x).any() else _refuse()


_same: Callable[[str], str] = str
_sum = reduction(lambda x, to: _wide(x, to).sum(axis=-1), _summed)
_prod = reduction(lambda x, to: _wide(x, to).prod(axis=-1), _summed)
_max = reduction(_ordered(np.max), _same)
_argmax = reduction(_ordered(np.argmax), lambda _: "int64")


def cumulated(function: Callable[..., Any]) -> Callable[..., Array]:
    """A cumulation, of the type that there was."""

    def twin(x: Any, axis: int | None = None) -> Array:
        array = plain(x)
        if array.dtype.kind == "b":
            raise Untwinned
        return Array(function(array, axis=axis, dtype=array.dtype))

    return twin


def changed(added: bool) -> Callable[..., Array]:
    """A part of an array set, or what is given added to it."""

    def twin(part: Array, value: Any) -> Array:
        if part.part is None:
            raise Untwinned
        of, index = part.part
        found = of.array.copy()
        new = plain(value).astype(found.dtype)
        if added:
            np.add.at(found, index, new)
        else:
            found[index] = new
        return Array(found)

    return twin


def structural(function: Callable[..., Any]) -> Callable[..., Array]:
    """A function that changes no element."""
    return lambda x, *more, **named: Array(
        function(plain(x), *map(whole, more), **{key: whole(each) for key, each in named.items()})
    )


def triangle(function: Callable[..., Any]) -> Callable[..., Array]:
    """A triangle, which Theano multiplies by 1 and the rest by 0."""

    def twin(x: Array, offset: int) -> Array:
        if x.array.dtype.kind == "b" or not np.isfinite(x.array).all():
            raise Untwinned
        return Array(function(x.array, offset))

    return twin


def joined(values: Sequence[Any], axis: int = 0, function: Any = np.concatenate) -> Array:
    """Arrays in one, of the type of all."""
    arrays = [plain(each) for each in values]
    return Array(function([each.astype(upcast(*arrays)) for each in arrays], axis))


def split(x: Array, sizes: Any, count: int, axis: int) -> list[Array]:
    """Parts of these lengths."""
    lengths = plain(sizes).tolist()
    if min(lengths) < 0 or sum(lengths) != x.array.shape[axis]:
        raise Untwinned
    return [Array(each) for each in np.split(x.array, np.cumsum(lengths)[:-1], axis)]


def arange(*bounds: Any) -> Array:
    """A range of integers."""
    return Array(np.arange(*map(whole, bounds), dtype="int64"))


def alloc(x: Any, *shape: Any) -> Array:
    """An array repeated."""
    return Array(np.broadcast_to(plain(x), whole(shape)).copy())


def filled(x: Array, value: Any) -> Array:
    """One value for each element."""
    return Array(np.broadcast_to(plain(value), x.array.shape).copy())


def product(function: Callable[..., Any]) -> Callable[..., Array]:
    """A product, in the type of both; that of narrow floats is computed in wide ones."""

    def twin(x: Any, y: Any, **named: Any) -> Array:
        arrays = plain(x), plain(y)
        dtype = upcast(*arrays)
        if dtype in types.COMPLEX and not all(np.isfinite(each).all() for each in arrays):
            # What is infinite times what is not is nan or not, by how it is multiplied.
            raise Untwinned
        wide = "float64" if dtype in types.FLOATS else dtype
        return Array(function(*(each.astype(wide) for each in arrays), **named).astype(dtype))

    return twin


def batched_tensordot(x: Any, y: Any, axes: Any) -> Any:
    """The products of what has the same number."""
    if axes != [2, 1] or x.ndim != 3 or y.ndim != 3:
        raise Untwinned
    return np.matmul(x, y)


def topk(x: Array, k: int, axis: int = -1) -> Array:
    """The largest elements, or the smallest of k is negative, in order."""
    length = x.array.shape[axis]
    if np.isnan(x.array).any() or not 0 < abs(k) <= length:
        raise Untwinned
    chosen = range(length - k, length) if k > 0 else range(-k)
    return Array(np.take(np.sort(x.array, axis), list(chosen), axis))


def argtopk(x: Array, k: int) -> Array:
    """Their places."""
    if np.isnan(x.array).any() or not 0 < abs(k) <= len(x.array):
        raise Untwinned
    order = np.argsort(x.array, kind="stable")
    return Array(order[-k:] if k > 0 else order[:-k])


def convolution(x: Array, k: Array, **options: Any) -> Array:
    """A convolution of images of any number of dimensions with filters."""
    border_mode = options.get("border_mode", "valid")
    subsample = options.get("subsample", 1)
    gaps = options.get("filter_dilation", 1)
    images, filters = x.array.astype("float64"), k.array.astype("float64")
    if not (np.isfinite(images).all() and np.isfinite(filters).all()):
        # What is multiplied by a padding's 0, or a gap's, depends on the method.
        raise Untwinned
    ndim = filters.ndim - 2
    lengths = np.array(filters.shape[2:])
    dilated = (lengths - 1) * gaps + 1
    named = {"valid": 0 * dilated, "full": dilated - 1, "half": dilated // 2}
    pads = named[border_mode] if isinstance(border_mode, str) else [border_mode]
    pads = np.broadcast_to(np.ravel(pads), ndim)
    if filters.shape[1] != images.shape[1]:
        raise Untwinned
    padded = np.pad(images, [(0, 0), (0, 0), *((n, n) for n in pads)])
    steps = np.broadcast_to(subsample, ndim)
    shape = (np.array(padded.shape[2:]) - dilated) // steps + 1
    if np.any(shape <= 0):
        raise Untwinned
    if options.get("filter_flip", True):
        filters = filters[(..., *[slice(None, None, -1)] * ndim)]
    found = np.zeros((images.shape[0], filters.shape[0], *shape))
    gaps = np.broadcast_to(gaps, ndim)
    for place in itertools.product(*map(range, lengths)):
        seen = tuple(
            slice(p * gap, p * gap + (n - 1) * step + 1, step)
            for p, gap, n, step in zip(place, gaps, shape, steps)
        )
        taps = filters[(slice(None), slice(None), *place)]
        found += np.einsum("bc...,kc->bk...", padded[(slice(None), slice(None), *seen)], taps)
    return Array(found.astype(upcast(x.array, k.array)))


def pool_2d(x: Array, ws: Any, **options: Any) -> Array:
    """The largest, sum or mean of windows."""
    mode, pad = options["mode"], options.get("pad", (0, 0))
    ignore_border, steps = options["ignore_border"], options.get("stride", ws)
    if not ignore_border and (any(pad) or any(s > w for s, w in zip(steps, ws))):
        raise Untwinned
    empty = -np.inf if mode == "max" else 0
    sides = [(0, 0), (0, 0), *((n, n) for n in pad)]
    padded = np.pad(x.array.astype("float64"), sides, constant_values=empty)
    inside = padded.shape[2:]
    if ignore_border:
        counts = [max(0, (n - w) // s + 1) for n, w, s in zip(inside, ws, steps)]
    else:
        counts = [-(-max(0, n - w) // s) + 1 for n, w, s in zip(inside, ws, steps)]
    found = np.zeros((*padded.shape[:2], *counts))
    for i, j in np.ndindex(*counts):
        (a, b), (c, d) = (
            (n * s, min(n * s + w, top)) for n, s, w, top in zip((i, j), steps, ws, inside)
        )
        window = padded[:, :, a:b, c:d]
        # Of a window, what is no padding.
        high, wide = (
            min(to, top - n) - max(by, n)
            for by, to, top, n in ((a, b, inside[0], pad[0]), (c, d, inside[1], pad[1]))
        )
        here = high * wide
        if mode == "max":
            found[:, :, i, j] = window.max(axis=(2, 3))
        else:
            counted = {"sum": 1, "average_inc_pad": (b - a) * (d - c)}.get(mode, here)
            found[:, :, i, j] = window.sum(axis=(2, 3)) / counted
    return Array(found.astype(x.array.dtype))


def ifelse(test: Any, x: Any, y: Any) -> Any:
    """One branch."""
    chosen = x if plain(test) else y
    return chosen if isinstance(chosen, (Array, list)) else Array(plain(chosen))


def rounded(x: Any, mode: str = "half_to_even") -> Array:
    """The nearest integer."""
    return elementwise(np.round if mode == "half_to_even" else _away)(x)


def max_and_argmax(x: Any, **named: Any) -> tuple[Array, Array]:
    """Both."""
    return _max(x, **named), _argmax(x, **named)


@dataclass(frozen=True)
class Until:
    """What ends a scan, where it is true."""

    condition: Array


def listed(values: Any) -> list[Any]:
    """A list, of one value if there is no list."""
    if isinstance(values, (list, tuple)):
        return list(values)
    return [] if values is None else [values]


def tapped(value: Any, key: str, tap: int) -> tuple[Any, list[int]]:
    """A sequence or first state, and its taps."""
    return (value[key], value["taps"]) if isinstance(value, dict) else (value, [tap])


def scan(
    function: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    **options: Any,
) -> tuple[Any, dict[Array, Array]]:
    """What the function gives at each step, and the updates of what it updates."""
    rows = []
    for sequence, taps in (tapped(each, "input", 0) for each in listed(sequences)):
        array, low, high = plain(sequence), min(0, *taps, 0), max(0, *taps, 0)
        parts = [array[tap - low : len(array) + tap - high] for tap in taps]
        rows += [part[::-1] if options.get("go_backwards") else part for part in parts]
    steps = whole(options.get("n_steps", min(map(len, rows), default=0)))
    if steps < 1 or any(len(row) < steps for row in rows):
        raise Untwinned
    states: list[tuple[list[Any], list[int]]] = []
    for initial, taps in (tapped(each, "initial", -1) for each in listed(outputs_info)):
        if initial is None:
            states.append(([], []))
        else:
            first = plain(initial)[None] if taps == [-1] else plain(initial)[: -min(taps)]
            states.append((list(map(np.asarray, first)), taps))
    variables: dict[Array, Array] = {}
    for step in range(steps):
        values = [row[step] for row in rows]
        values += [past[tap] for past, taps in states for tap in taps]
        with swapped(variables):
            found = function(*map(Array, values), *listed(options.get("non_sequences")))
        outputs, *more = found if isinstance(found, tuple) else (found,)
        for (past, taps), output in zip(states, map(plain, listed(outputs)), strict=True):
            if taps and (past[-1].shape, past[-1].dtype) != (output.shape, output.dtype):
                raise Untwinned
            past.append(output)
        for pairs in (each for each in more if isinstance(each, list)):
            variables.update(pairs)
        if any(plain(each.condition) for each in more if isinstance(each, Until)):
            break
    results = [Array(np.stack(past[-min(taps, default=0) :])) for past, taps in states]
    return results if options.get("return_list") or len(results) > 1 else results[0], variables


@contextlib.contextmanager
def swapped(new: Mapping[Array, Array]) -> Iterator[None]:
    """Meanwhile variables are what others are."""
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
    "eye": lambda n, m, k: Array(np.eye(whole(n), whole(m), whole(k))),
    "zeros": lambda shape, dtype: Array(np.zeros(whole(shape), dtype)),
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
    # As operators look them up.
    setattr(Array, f"__{_name}__", lambda *values, twin=T[_name]: twin(*values))


class Twins:
    """Theano's names with those that have a twin, of nnet too."""

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name == "nnet":
            return Twins("nnet.")
        try:
            return T[self.prefix + name]
        except KeyError:
            raise Untwinned(name) from None


NAMES = {
    "T": Twins(),
    "np": np,
    "ifelse": ifelse,
    "pool_2d": pool_2d,
    "theano": python_types.SimpleNamespace(scan=scan),
    "until": Until,
}
# What derivatives are called.
DERIVATIVES = ("T.grad", "T.Rop", "T.Lop", "theano.gradient.jacobian", "theano.gradient.hessian")
# Of what is larger, differences tell too little.
LARGE = 2.0**20


@functools.lru_cache
def code(text: str) -> python_types.CodeType:
    """A statement, compiled."""
    return compile(text, "program", "exec")


@functools.lru_cache
def derivative(text: str) -> list[str]:
    """The name of a derivative and the texts of its arguments; nothing if it is none."""
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in DERIVATIVES:
        return []
    return [ast.unparse(each) for each in (call.func, *call.args)]


def computed(statements: Sequence[tuple[str, str]], given: Mapping[str, Any]) -> dict[str, Any]:
    """The names with those that the statements bind, as far as they have a value."""
    names = dict(given)
    for number, (target, text) in enumerate(statements):
        try:
            if parts := derivative(text):
                names[target] = derive(parts, statements[:number], given)
            else:
                exec(code(f"{target} = {text}"), names)
        except Exception:
            # Whether it should raise, other judges say.
            continue
    return names


def derive(
    parts: Sequence[str], statements: Sequence[tuple[str, str]], given: Mapping[str, Any]
) -> Array:
    """A derivative of what the statements compute."""
    name, of, by, *more = parts
    arrays = [each.array for each in given.values() if isinstance(each, Array)]
    x = given[by].array
    if (
        x.dtype != "float64"
        or any("truncate_gradient" in text for _, text in statements)
        or not all(np.all(np.abs(each) <= LARGE) for each in arrays)
    ):
        raise Untwinned
    kept = needed(statements, " + ".join([of, *more]))

    def value(array: Any, text: str = of) -> Any:
        names = computed(kept, {**given, by: Array(array)})
        return plain(eval(text, names)).astype("float64")

    slopes = functools.partial(derivatives.jacobian, value)
    if name.endswith("hessian"):
        return Array(derivatives.jacobian(slopes, x))
    if name == "T.Rop":
        return Array(np.tensordot(slopes(x), value(x, more[0]), x.ndim))
    if name == "T.Lop":
        by_output = value(x, more[0])
        return Array(np.tensordot(by_output, slopes(x), by_output.ndim))
    return Array(slopes(x))


def needed(statements: Sequence[tuple[str, str]], text: str) -> list[tuple[str, str]]:
    """The statements that an expression reads, or that these read."""
    names, kept = set(read(text)), []
    for target, part in reversed(statements):
        if names & set(targets(target)):
            kept.append((target, part))
            names |= read(part)
    return kept[::-1]


def rough(statements: Sequence[tuple[str, str]]) -> set[str]:
    """The names of what is computed from a derivative, which may be less exact than that."""
    derived: set[str] = set()
    found: set[str] = set()
    for target, text in statements:
        if derivative(text):
            derived.add(target)
        elif read(text) & (derived | found):
            found.update(targets(target))
    return found


def answer(asked: dict[str, Any]) -> list[list[Any]]:
    """What each call returns; None for what has no twin."""
    values = {**vars(layouts), "np": np}
    shared = {name: Array(eval(source, values)) for name, source in asked["shared"]}
    untold = rough(asked["statements"])
    calls = []
    for texts in asked["calls"]:
        arrays = [eval(text, values) for text in texts]
        for one, other in asked["aliases"]:
            if (arrays[one].dtype, arrays[one].shape) == (arrays[other].dtype, arrays[other].shape):
                arrays[other] = arrays[one]
        inputs = {name: Array(array) for name, array in zip(asked["inputs"], arrays)}
        names = computed(asked["statements"], {**NAMES, **shared, **inputs})
        for name in untold:
            names.pop(name, None)
        found = (names.get(name) for name in asked["outputs"])
        calls.append([encoded(e.array) if isinstance(e, Array) else None for e in found])
        new: dict[str, Any] = {}
        for name, text in asked["updates"]:
            value = names.get(text)
            if isinstance(value, dict):
                # A scan tells the variables themselves.
                new.update({key: value[each] for key, each in shared.items() if each in value})
            else:
                new[name] = value
        if any(not isinstance(each, Array) for each in new.values()):
            break
        shared.update(new)
    return calls


def main() -> None:
    """Answer each line."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for line in sys.stdin:
        asked = json.loads(line)
        calls = [{"outputs": outputs} for outputs in answer(asked)]
        told: dict[str, Any] = {"runs": {"plain": {"calls": calls}}}
        if any(derivative(text) for _, text in asked["statements"]):
            told["tolerance"] = derivatives.TOLERANCE
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    main()
