"""Compute the results of a program with NumPy: run the program's statements on arrays.

Theano's names are bound to twins: functions of NumPy, or of SciPy if NumPy has no equivalent. Types
follow the rules of fuzz.grammar.types. A scan becomes a loop. Central differences compute
derivatives. An operation without a twin has no value, so results that depend on it have no values.

Each line of standard input is a question in JSON (``fuzz.program.Program.make_evaluation``). Each
answer is a line of JSON: {"runs": {"plain": {"calls": [{"outputs": [value or null, ...]}, ...]}}}.
If the program has derivatives, the answer also contains their "tolerance".
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
    """NumPy has no equivalent of an operation, or the operation's result is undefined."""


def constant(value: Any) -> np.ndarray[Any, Any]:
    """Return a Python number as an array of the smallest type that can hold it, as Theano does."""
    if isinstance(value, bool):
        return np.array(value)
    kinds = types.SIGNED if isinstance(value, int) else ("float32", "float64")
    fits = (np.array(value).astype(dtype) for dtype in kinds)
    return next(array for array in fits if array == value)


def to_array(value: Any) -> Any:
    """Return the NumPy array of an Array, of a number, or of a list of integers (int64)."""
    if isinstance(value, Array):
        return value.array
    if isinstance(value, (list, tuple)):
        return np.array([int(to_array(item)) for item in value], "int64")
    return constant(value) if isinstance(value, (bool, int, float)) else value


def get_dtype_name(array: Any) -> str:
    """Return the name of a NumPy array's type, such as "float64"."""
    return str(array.dtype)


def to_integers(value: Any) -> Any:
    """Convert each Array in a shape, an axis or an index to an integer or an array of int64."""
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
    """A NumPy array with the operators, methods and attributes of Theano's variables.

    Args:
        array: the NumPy array.
        part: if indexing made this array, the indexed Array and the index; otherwise None.
            set_subtensor and inc_subtensor need them.
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
        return get_dtype_name(self.array)

    def dimshuffle(self, *order: Any) -> Array:
        """Reorder, drop and add dimensions; "x" in ``order`` is a new dimension of length 1."""
        axes = [axis for axis in order if axis != "x"]
        dropped = [axis for axis in range(self.ndim) if axis not in axes]
        transposed = self.array.transpose([*axes, *dropped])
        reordered = transposed.reshape(transposed.shape[: len(axes)])
        return Array(reordered[tuple(None if axis == "x" else slice(None) for axis in order)])

    def flatten(self, ndim: int = 1) -> Array:
        """Join the last dimensions; the result has ``ndim`` dimensions."""
        shape = self.array.shape[: ndim - 1]
        length = int(np.prod(self.array.shape[ndim - 1 :], dtype="int64"))
        return Array(self.array.reshape((*shape, length)))

    def reshape(self, shape: Any, ndim: int | None = None) -> Array:
        """Return the array with another shape; ignore ``ndim``."""
        lengths = shape.array.tolist() if isinstance(shape, Array) else to_integers(shape)
        return Array(self.array.reshape(lengths))

    def swapaxes(self, one: int, other: int) -> Array:
        """Swap two axes."""
        return Array(self.array.swapaxes(one, other))

    def nonzero(self) -> tuple[Array, ...]:
        """Return the positions of non-zero elements: an array for each dimension."""
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
        """Return the norm of a vector, such as its Euclidean length for ``order`` 2."""
        return Array(np.linalg.norm(self.array, order))

    def __abs__(self) -> Array:
        return Array(np.abs(self.array))

    def __invert__(self) -> Array:
        return Array(np.invert(self.array))


def upcast(*arrays: Any) -> str:
    """Return the common type of NumPy arrays."""
    return types.upcast(*map(get_dtype_name, arrays))


def make_elementwise(
    function: Callable[..., Any], result: Callable[..., str] = upcast, *, boolean: bool = False
) -> Callable[..., Array]:
    """Make the twin of an elementwise operation.

    Args:
        function: the operation on NumPy arrays.
        result: a function of the operands that returns the type of the result. The twin converts
            the operands to this type.
        boolean: whether the result is boolean; the twin converts the operands to their common type.
    """

    def twin(*values: Any) -> Array:
        arrays = [to_array(value) for value in values]
        dtype = upcast(*arrays) if boolean else result(*arrays)
        elements = function(*(array.astype(dtype) for array in arrays))
        return Array(np.asarray(elements).astype("bool" if boolean else dtype))

    return twin


def compute_float_dtype(*arrays: Any) -> str:
    """Return the type of a function whose values are floats, such as exp, for these operands."""
    return types.compute_float_type(upcast(*arrays))


def compute_quotient_dtype(*arrays: Any) -> str:
    """Return the type of a quotient of these operands."""
    dtype = upcast(*arrays)
    return "float64" if dtype in types.DISCRETE else dtype


def _refuse(*_: Any, **__: Any) -> Any:
    """Raise NoTwin. Expressions call this function, because ``raise`` is a statement."""
    raise NoTwin


def _compute_chi_squared(x: Any, k: Any) -> Any:
    """Return the probability that a chi-squared variable with k degrees of freedom exceeds x."""
    return np.where(k > 0, special.gammaincc(k / 2, x / 2), np.nan)


def _round_half_away(x: Any) -> Any:
    """Round to the nearest integer, and halves away from zero."""
    return np.trunc(x + np.copysign(0.5, x))


def _floor_divide(x: Any, y: Any) -> Any:
    # C and NumPy differ for integers divided by 0, and for the smallest integer divided by -1.
    defined = x.dtype.kind == "f" or (np.all(y) and not _overflows(x, y))
    return x // y if defined else _refuse()


def _overflows(x: Any, y: Any) -> bool:
    """Return whether an element of x / y is the smallest integer divided by -1."""
    return x.dtype.kind == "i" and bool(np.any((y == -1) & (x == np.iinfo(x.dtype).min)))


def _compute_remainder(x: Any, y: Any) -> Any:
    return np.mod(x, y) if np.all(y) and np.all(np.isfinite(y)) else _refuse()


def _compute_power(x: Any, y: Any) -> Any:
    return np.power(x, y) if x.dtype.kind != "b" else _refuse()


def _softmax(x: Any) -> Any:
    exponentials = np.exp(x - x.max(axis=-1, keepdims=True))
    return exponentials / exponentials.sum(axis=-1, keepdims=True)


def _log_softmax(x: Any) -> Any:
    shifted = x - x.max(axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def make_row_function(function: Callable[[Any], Any]) -> Callable[[Any], Array]:
    """Make the twin of a function of rows.

    The twin takes a matrix, or a vector as a matrix of one row. It computes in float64, and returns
    the operand's type.
    """

    def twin(x: Any) -> Array:
        array = to_array(x)
        array = array[None] if array.ndim == 1 else array
        return Array(function(array.astype("float64")).astype(array.dtype))

    return twin


def _categorical_crossentropy(p: Any, y: Any) -> Array:
    """Return the cross-entropy of probabilities (rows, classes) and a class for each row."""
    classes = to_array(y)
    if classes.ndim != 1 or classes.dtype.kind not in "iu":
        raise NoTwin
    return Array(-np.log(p.array[np.arange(len(classes)), classes]))


_binary_crossentropy = make_elementwise(
    lambda o, t: -(t * np.log(o) + (1 - t) * np.log1p(-o)),
    # Theano's expression contains the constant 1.0, whose type is float32.
    lambda *arrays: types.upcast(upcast(*arrays), "float32"),
)


def switch(test: Any, x: Any, y: Any) -> Array:
    """Select elements of x where ``test`` is true, and elements of y elsewhere."""
    arrays = to_array(x), to_array(y)
    return Array(
        np.where(to_array(test) != 0, *(array.astype(upcast(*arrays)) for array in arrays))
    )


def normalize_axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return a tuple of sorted axes that are not negative; None means all axes."""
    if axis is None:
        return tuple(range(ndim))
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    return tuple(sorted(number % ndim for number in axes))


def make_reduction(
    function: Callable[..., Any], result: Callable[[str], str]
) -> Callable[..., Array]:
    """Make the twin of a reduction, which reduces one or more axes.

    Args:
        function: a function that reduces the last axis of a NumPy array. Its second argument is the
            result's type. Floats in the array are float64, and complex numbers are complex128.
        result: a function that returns the type of the result for the operand's type.
    """

    def twin(x: Any, axis: Any = None, keepdims: bool = False, dtype: str | None = None) -> Array:
        array = to_array(x)
        reduced_axes = normalize_axes(axis, array.ndim)
        other_axes = [number for number in range(array.ndim) if number not in reduced_axes]
        result_dtype = dtype or result(get_dtype_name(array))
        if dtype and array.dtype.kind in "fc" and dtype in types.DISCRETE:
            raise NoTwin
        # Move the reduced axes to the end, and join them to one axis.
        transposed = array.transpose([*other_axes, *reduced_axes])
        shape = transposed.shape[: len(other_axes)]
        flat = transposed.reshape(*shape, int(np.prod(transposed.shape[len(other_axes) :])))
        wide = {"f": "float64", "c": "complex128"}.get(flat.dtype.kind, get_dtype_name(flat))
        reduced = np.asarray(function(flat.astype(wide), result_dtype))
        if keepdims:
            reduced = np.expand_dims(reduced, reduced_axes)
        return Array(reduced.astype(result_dtype))

    return twin


def _compute_sum_dtype(dtype: str) -> str:
    """Return the type of a sum or a product of elements."""
    if dtype not in types.DISCRETE:
        return dtype
    return "uint64" if dtype in types.UNSIGNED else "int64"


def _compute_mean_dtype(dtype: str) -> str:
    """Return the type of a mean, a variance or a standard deviation."""
    return "float64" if dtype in types.DISCRETE else dtype


def _convert_if_discrete(x: Any, dtype: str) -> Any:
    """Convert an array to a type if this type is an integer type or bool."""
    return x.astype(dtype) if dtype in types.DISCRETE else x


def _refuse_nan(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function for make_reduction that refuses nan, because nan has no order."""
    return lambda x, _: function(x, axis=-1) if not np.isnan(x).any() else _refuse()


_keep_dtype: Callable[[str], str] = str
_sum = make_reduction(
    lambda x, dtype: _convert_if_discrete(x, dtype).sum(axis=-1), _compute_sum_dtype
)
_prod = make_reduction(
    lambda x, dtype: _convert_if_discrete(x, dtype).prod(axis=-1), _compute_sum_dtype
)
_max = make_reduction(_refuse_nan(np.max), _keep_dtype)
_argmax = make_reduction(_refuse_nan(np.argmax), lambda _: "int64")


def make_cumulation(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of a cumulative sum or product, computed in the operand's type."""

    def twin(x: Any, axis: int | None = None) -> Array:
        array = to_array(x)
        if array.dtype.kind == "b":
            raise NoTwin
        return Array(function(array, axis=axis, dtype=array.dtype))

    return twin


def make_update(added: bool) -> Callable[..., Array]:
    """Make the twin of inc_subtensor if ``added`` is true, otherwise of set_subtensor."""

    def twin(part: Array, value: Any) -> Array:
        if part.part is None:
            raise NoTwin
        whole, index = part.part
        result = whole.array.copy()
        new = to_array(value).astype(result.dtype)
        if added:
            np.add.at(result, index, new)
        else:
            result[index] = new
        return Array(result)

    return twin


def make_structural(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of a function that moves or copies elements, such as np.roll."""
    return lambda x, *more, **keywords: Array(
        function(
            to_array(x),
            *map(to_integers, more),
            **{key: to_integers(value) for key, value in keywords.items()},
        )
    )


def make_triangle(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of tril or triu.

    The twin refuses booleans, nan and infinity: Theano multiplies the elements by 0 or 1.
    """

    def twin(x: Array, offset: int) -> Array:
        if x.array.dtype.kind == "b" or not np.isfinite(x.array).all():
            raise NoTwin
        return Array(function(x.array, offset))

    return twin


def join_arrays(values: Sequence[Any], axis: int = 0, function: Any = np.concatenate) -> Array:
    """Convert arrays to their common type, and join them with np.concatenate or np.stack."""
    arrays = [to_array(value) for value in values]
    return Array(function([array.astype(upcast(*arrays)) for array in arrays], axis))


def split(x: Array, sizes: Any, count: int, axis: int) -> list[Array]:
    """Split an array along an axis into parts of the lengths ``sizes``; ignore ``count``."""
    lengths = to_array(sizes).tolist()
    if min(lengths) < 0 or sum(lengths) != x.array.shape[axis]:
        raise NoTwin
    return [Array(part) for part in np.split(x.array, np.cumsum(lengths)[:-1], axis)]


def arange(*bounds: Any) -> Array:
    """Return a range of int64."""
    return Array(np.arange(*map(to_integers, bounds), dtype="int64"))


def alloc(x: Any, *shape: Any) -> Array:
    """Return a new array of a shape, filled with the broadcast array x."""
    return Array(np.broadcast_to(to_array(x), to_integers(shape)).copy())


def fill(x: Array, value: Any) -> Array:
    """Return an array of the shape of x, filled with the broadcast value."""
    return Array(np.broadcast_to(to_array(value), x.array.shape).copy())


def make_product(function: Callable[..., Any]) -> Callable[..., Array]:
    """Make the twin of a product of two arrays, such as dot.

    The result has the common type of the operands. The twin multiplies floats in float64.
    """

    def twin(x: Any, y: Any, **keywords: Any) -> Array:
        arrays = to_array(x), to_array(y)
        dtype = upcast(*arrays)
        if dtype in types.COMPLEX and not all(np.isfinite(array).all() for array in arrays):
            # Algorithms differ: in some, an infinite times a finite complex number is nan.
            raise NoTwin
        wide = "float64" if dtype in types.FLOATS else dtype
        return Array(function(*(array.astype(wide) for array in arrays), **keywords).astype(dtype))

    return twin


def batched_tensordot(x: Any, y: Any, axes: Any) -> Any:
    """Multiply the matrices at equal positions of two batches."""
    if axes != [2, 1] or x.ndim != 3 or y.ndim != 3:
        raise NoTwin
    return np.matmul(x, y)


def topk(x: Array, k: int, axis: int = -1) -> Array:
    """Return the k largest elements in ascending order, or the -k smallest if k is negative."""
    length = x.array.shape[axis]
    if np.isnan(x.array).any() or not 0 < abs(k) <= length:
        raise NoTwin
    positions = range(length - k, length) if k > 0 else range(-k)
    return Array(np.take(np.sort(x.array, axis), list(positions), axis))


def argtopk(x: Array, k: int) -> Array:
    """Return the positions of the k largest elements, or of the -k smallest if k is negative."""
    if np.isnan(x.array).any() or not 0 < abs(k) <= len(x.array):
        raise NoTwin
    order = np.argsort(x.array, kind="stable")
    return Array(order[-k:] if k > 0 else order[:-k])


def convolution(x: Array, k: Array, **options: Any) -> Array:
    """Convolve images (batch, channels, ...) with filters (filters, channels, ...).

    The twin has the keyword arguments of T.nnet.conv2d and T.nnet.conv3d.
    """
    border_mode = options.get("border_mode", "valid")
    subsample = options.get("subsample", 1)
    gaps = options.get("filter_dilation", 1)
    images, filters = x.array.astype("float64"), k.array.astype("float64")
    if not (np.isfinite(images).all() and np.isfinite(filters).all()):
        # Only some algorithms multiply a non-finite number by a 0 of the padding, which gives nan.
        raise NoTwin
    ndim = filters.ndim - 2
    lengths = np.array(filters.shape[2:])
    dilated = (lengths - 1) * gaps + 1
    padding_by_mode = {"valid": 0 * dilated, "full": dilated - 1, "half": dilated // 2}
    pads = padding_by_mode[border_mode] if isinstance(border_mode, str) else [border_mode]
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
        # The pixels that the filter's element at this position multiplies.
        pixels = tuple(
            slice(p * gap, p * gap + (n - 1) * step + 1, step)
            for p, gap, n, step in zip(position, gaps, shape, steps)
        )
        taps = filters[(slice(None), slice(None), *position)]
        sums += np.einsum("bc...,kc->bk...", padded[(slice(None), slice(None), *pixels)], taps)
    return Array(sums.astype(upcast(x.array, k.array)))


def pool_2d(x: Array, ws: Any, **options: Any) -> Array:
    """Return the maximum, the sum or the mean of each window of images (batch, channels, ...).

    ``ws`` is the size of a window. The twin has the keyword arguments of Theano's pool_2d.
    """
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
        # The lengths of the window's part that is not padding.
        height, width = (
            min(end, length - n) - max(start, n)
            for start, end, length, n in ((a, b, inside[0], pad[0]), (c, d, inside[1], pad[1]))
        )
        if mode == "max":
            pooled[:, :, i, j] = window.max(axis=(2, 3))
        else:
            divisors = {"sum": 1, "average_inc_pad": (b - a) * (d - c)}
            pooled[:, :, i, j] = window.sum(axis=(2, 3)) / divisors.get(mode, height * width)
    return Array(pooled.astype(x.array.dtype))


def ifelse(test: Any, x: Any, y: Any) -> Any:
    """Return x if ``test`` is true, otherwise y; a branch may be a list of arrays."""
    branch = x if to_array(test) else y
    return branch if isinstance(branch, (Array, list)) else Array(to_array(branch))


def round_array(x: Any, mode: str = "half_to_even") -> Array:
    """Round to the nearest integer; ``mode`` is "half_to_even" or "half_away_from_zero"."""
    return make_elementwise(np.round if mode == "half_to_even" else _round_half_away)(x)


def max_and_argmax(x: Any, **keywords: Any) -> tuple[Array, Array]:
    """Return the maximum and its position."""
    return _max(x, **keywords), _argmax(x, **keywords)


@dataclass(frozen=True)
class Until:
    """The condition that ends a scan when it is true."""

    condition: Array


def to_list(values: Any) -> list[Any]:
    """Return a list: [] for None, [value] for a single value."""
    if isinstance(values, (list, tuple)):
        return list(values)
    return [] if values is None else [values]


def split_taps(value: Any, key: str, tap: int) -> tuple[Any, list[int]]:
    """Return an array and its taps, from an entry of scan's sequences or outputs_info.

    Args:
        value: an array, or a dictionary with taps.
        key: the key of the array in the dictionary.
        tap: the only tap of an array without a dictionary.
    """
    return (value[key], value["taps"]) if isinstance(value, dict) else (value, [tap])


def scan(
    function: Callable[..., Any],
    sequences: Any = None,
    outputs_info: Any = None,
    **options: Any,
) -> tuple[Any, dict[Array, Array]]:
    """Run the function of a scan at each step, with the arguments of theano.scan.

    Return the result, or a list of several results, and the new values of shared variables.
    """
    rows = []
    for sequence, taps in (split_taps(entry, "input", 0) for entry in to_list(sequences)):
        array, low, high = to_array(sequence), min(0, *taps, 0), max(0, *taps, 0)
        parts = [array[tap - low : len(array) + tap - high] for tap in taps]
        rows += [part[::-1] if options.get("go_backwards") else part for part in parts]
    steps = to_integers(options.get("n_steps", min(map(len, rows), default=0)))
    if steps < 1 or any(len(row) < steps for row in rows):
        raise NoTwin
    states: list[tuple[list[Any], list[int]]] = []
    for initial, taps in (split_taps(entry, "initial", -1) for entry in to_list(outputs_info)):
        if initial is None:
            states.append(([], []))
        else:
            first = to_array(initial)[None] if taps == [-1] else to_array(initial)[: -min(taps)]
            states.append((list(map(np.asarray, first)), taps))
    variables: dict[Array, Array] = {}
    for step in range(steps):
        values = [row[step] for row in rows]
        values += [past[tap] for past, taps in states for tap in taps]
        with replaced_values(variables):
            returned = function(*map(Array, values), *to_list(options.get("non_sequences")))
        outputs, *more = returned if isinstance(returned, tuple) else (returned,)
        for (past, taps), output in zip(states, map(to_array, to_list(outputs)), strict=True):
            if taps and (past[-1].shape, past[-1].dtype) != (output.shape, output.dtype):
                raise NoTwin
            past.append(output)
        for pairs in (item for item in more if isinstance(item, list)):
            variables.update(pairs)
        if any(to_array(item.condition) for item in more if isinstance(item, Until)):
            break
    results = [Array(np.stack(past[-min(taps, default=0) :])) for past, taps in states]
    return results if options.get("return_list") or len(results) > 1 else results[0], variables


@contextlib.contextmanager
def replaced_values(new: Mapping[Array, Array]) -> Iterator[None]:
    """Give variables new values inside the ``with`` block."""
    old = {variable: variable.array for variable in new}
    for variable, value in new.items():
        variable.array = value.array
    try:
        yield
    finally:
        for variable, array in old.items():
            variable.array = array


# Maps the name of an operator's special method, without underscores, to its twin.
OPERATORS: dict[str, Callable[..., Array]] = {
    "add": make_elementwise(np.add),
    "sub": make_elementwise(np.subtract),
    "mul": make_elementwise(np.multiply),
    "truediv": make_elementwise(np.divide, compute_quotient_dtype),
    "floordiv": make_elementwise(_floor_divide),
    "mod": make_elementwise(_compute_remainder),
    "pow": make_elementwise(_compute_power),
}
for _name, _twin in OPERATORS.items():
    setattr(Array, f"__{_name}__", _twin)
    setattr(Array, f"__r{_name}__", lambda self, other, twin=_twin: twin(other, self))
# Functions of floats on NumPy arrays, by their names in theano.tensor.
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
# Maps the names of theano.tensor to twins.
T: dict[str, Any] = {
    **{name: make_elementwise(twin, compute_float_dtype) for name, twin in _functions.items()},
    **{
        name: make_elementwise(getattr(np, name), compute_float_dtype)
        for name in ("floor", "ceil", "trunc")
    },
    **{
        name: make_elementwise(getattr(np, twin), boolean=True)
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
        name: make_elementwise(getattr(np, twin))
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
        name: make_structural(getattr(np, name))
        for name in ["roll", "moveaxis", "repeat", "tile", "diff", "diagonal", "diag", "bincount"]
    },
    **{name: make_product(getattr(np, name)) for name in ("dot", "tensordot", "outer")},
    "chi2sf": make_elementwise(_compute_chi_squared, lambda *_: "float64"),
    "tril": make_triangle(np.tril),
    "triu": make_triangle(np.triu),
    "round": round_array,
    "abs_": abs,
    "real": make_structural(np.real),
    "imag": make_structural(np.imag),
    "angle": lambda x: Array(np.angle(x.array).astype("float64")),
    "complex": lambda x, y: Array(to_array(x) + np.array(1j, "complex64") * to_array(y)),
    "cast": lambda x, dtype: Array(to_array(x).astype(dtype)),
    "clip": make_elementwise(
        lambda x, low, high: np.where(x < low, low, np.where(x > high, high, x))
    ),
    "switch": switch,
    "sum": _sum,
    "prod": _prod,
    "mean": make_reduction(lambda x, _: x.mean(axis=-1), _compute_mean_dtype),
    "var": make_reduction(lambda x, _: x.var(axis=-1), _compute_mean_dtype),
    "std": make_reduction(lambda x, _: x.std(axis=-1), _compute_mean_dtype),
    "max": _max,
    "min": make_reduction(_refuse_nan(np.min), _keep_dtype),
    "ptp": make_reduction(_refuse_nan(np.ptp), _keep_dtype),
    "argmax": _argmax,
    "argmin": make_reduction(_refuse_nan(np.argmin), lambda _: "int64"),
    "any": make_reduction(lambda x, _: x.any(axis=-1), lambda _: "bool"),
    "all": make_reduction(lambda x, _: x.all(axis=-1), lambda _: "bool"),
    "max_and_argmax": max_and_argmax,
    "cumsum": make_cumulation(np.cumsum),
    "cumprod": make_cumulation(np.cumprod),
    "set_subtensor": make_update(added=False),
    "inc_subtensor": make_update(added=True),
    "reshape": Array.reshape,
    "shape": lambda x: x.shape,
    "join": lambda axis, *values: join_arrays(values, axis),
    "concatenate": join_arrays,
    "stack": functools.partial(join_arrays, function=np.stack),
    "split": split,
    "arange": arange,
    "alloc": alloc,
    "constant": lambda x, dtype=None: Array(to_array(x) if dtype is None else np.asarray(x, dtype)),
    "eye": lambda n, m, k: Array(np.eye(to_integers(n), to_integers(m), to_integers(k))),
    "zeros": lambda shape, dtype: Array(np.zeros(to_integers(shape), dtype)),
    "zeros_like": make_structural(np.zeros_like),
    "ones_like": make_structural(np.ones_like),
    "fill": fill,
    "shape_padleft": lambda x, n=1: Array(x.array[(None,) * n]),
    "shape_padright": lambda x, n=1: Array(x.array[(..., *(None,) * n)]),
    "shape_padaxis": make_structural(np.expand_dims),
    "addbroadcast": lambda x, *_: x,
    "unbroadcast": lambda x, *_: x,
    "nonzero_values": lambda x: Array(x.array[x.array.nonzero()]),
    "batched_dot": make_product(np.matmul),
    "batched_tensordot": make_product(batched_tensordot),
    "sort": make_structural(np.sort),
    "argsort": make_structural(np.argsort),
    "topk": topk,
    "argtopk": argtopk,
    "nnet.softmax": make_row_function(_softmax),
    "nnet.logsoftmax": make_row_function(_log_softmax),
    "nnet.categorical_crossentropy": _categorical_crossentropy,
    "nnet.binary_crossentropy": _binary_crossentropy,
    "nnet.conv2d": convolution,
    "nnet.conv3d": convolution,
}


for _name in ("lt", "le", "gt", "ge", "neg"):
    # Set the methods in the class, because Python does not look up operators in instances.
    setattr(Array, f"__{_name}__", lambda *values, twin=T[_name]: twin(*values))


class Twins:
    """Namespace that replaces theano.tensor, or theano.tensor.nnet if ``prefix`` is "nnet.".

    Raises:
        NoTwin: a program reads a name that has no twin.
    """

    def __init__(self, prefix: str = "") -> None:
        self.prefix = prefix

    def __getattr__(self, name: str) -> Any:
        if name == "nnet":
            return Twins("nnet.")
        try:
            return T[self.prefix + name]
        except KeyError:
            raise NoTwin(name) from None


# The names that statements may use, apart from variables.
NAMES = {
    "T": Twins(),
    "np": np,
    "ifelse": ifelse,
    "pool_2d": pool_2d,
    "theano": python_types.SimpleNamespace(scan=scan),
    "until": Until,
}
# The functions of Theano that make derivatives.
DERIVATIVES = ("T.grad", "T.Rop", "T.Lop", "theano.gradient.jacobian", "theano.gradient.hessian")
# Refuse derivatives of functions of larger numbers, because differences are too inexact.
LARGE = 2.0**20


@functools.lru_cache
def compile_statement(text: str) -> python_types.CodeType:
    """Compile a statement to bytecode."""
    return compile(text, "program", "exec")


@functools.lru_cache
def parse_derivative(text: str) -> list[str]:
    """Split a derivative into its function and its positional arguments; otherwise return [].

    For example, return ["T.grad", "v0", "x0"] for "T.grad(v0, x0)".
    """
    call = ast.parse(text, mode="eval").body
    if not isinstance(call, ast.Call) or ast.unparse(call.func) not in DERIVATIVES:
        return []
    return [ast.unparse(node) for node in (call.func, *call.args)]


def run_statements(
    statements: Sequence[tuple[str, str]], values: Mapping[str, Any]
) -> dict[str, Any]:
    """Run statements on the initial ``values``; return the values of all names that have values."""
    names = dict(values)
    for number, (target, text) in enumerate(statements):
        try:
            if parts := parse_derivative(text):
                names[target] = compute_derivative(parts, statements[:number], values)
            else:
                exec(compile_statement(f"{target} = {text}"), names)
        except Exception:
            # The target has no value. Other oracles decide whether the statement must raise.
            continue
    return names


def compute_derivative(
    parts: Sequence[str], statements: Sequence[tuple[str, str]], values: Mapping[str, Any]
) -> Array:
    """Compute a derivative by central differences of an expression.

    Args:
        parts: the result of ``parse_derivative``.
        statements: the statements before the derivative.
        values: the values of the inputs and shared variables, and Theano's names.

    Raises:
        NoTwin: differences cannot compute the derivative.
    """
    name, expression, wrt, *vectors = parts
    arrays = [value.array for value in values.values() if isinstance(value, Array)]
    x = values[wrt].array
    if (
        x.dtype != "float64"
        or any("truncate_gradient" in text for _, text in statements)
        or not all(np.all(np.abs(array) <= LARGE) for array in arrays)
    ):
        raise NoTwin
    needed = find_needed_statements(statements, " + ".join([expression, *vectors]))

    def evaluate(array: Any, text: str = expression) -> Any:
        names = run_statements(needed, {**values, wrt: Array(array)})
        return to_array(eval(text, names)).astype("float64")

    compute_slopes = functools.partial(derivatives.compute_jacobian, evaluate)
    if name.endswith("hessian"):
        return Array(derivatives.compute_jacobian(compute_slopes, x))
    if name == "T.Rop":
        return Array(np.tensordot(compute_slopes(x), evaluate(x, vectors[0]), x.ndim))
    if name == "T.Lop":
        vector = evaluate(x, vectors[0])
        return Array(np.tensordot(vector, compute_slopes(x), vector.ndim))
    return Array(compute_slopes(x))


def find_needed_statements(
    statements: Sequence[tuple[str, str]], text: str
) -> list[tuple[str, str]]:
    """Return the statements on which the expression ``text`` depends, in their order."""
    names, needed = set(find_names(text)), []
    for target, expression in reversed(statements):
        if names & set(find_targets(target)):
            needed.append((target, expression))
            names |= find_names(expression)
    return needed[::-1]


def find_imprecise_names(statements: Sequence[tuple[str, str]]) -> set[str]:
    """Return the names whose values depend on a derivative.

    Their values have larger errors than the derivative, which has an error of at most TOLERANCE.
    """
    derived: set[str] = set()
    imprecise: set[str] = set()
    for target, text in statements:
        if parse_derivative(text):
            derived.add(target)
        elif find_names(text) & (derived | imprecise):
            imprecise.update(find_targets(target))
    return imprecise


def compute_calls(question: dict[str, Any]) -> list[list[Any]]:
    """Return the encoded outputs of each call; an output without a value is None.

    The list ends after a call in which the update of a shared variable has no value.
    """
    values = {**vars(layouts), "np": np}
    shared = {name: Array(eval(source, values)) for name, source in question["shared"]}
    imprecise = find_imprecise_names(question["statements"])
    calls = []
    for texts in question["calls"]:
        arrays = [eval(text, values) for text in texts]
        for one, other in question["aliases"]:
            if (arrays[one].dtype, arrays[one].shape) == (arrays[other].dtype, arrays[other].shape):
                arrays[other] = arrays[one]
        inputs = {name: Array(array) for name, array in zip(question["inputs"], arrays)}
        names = run_statements(question["statements"], {**NAMES, **shared, **inputs})
        for name in imprecise:
            names.pop(name, None)
        results = (names.get(name) for name in question["outputs"])
        calls.append([encode(e.array) if isinstance(e, Array) else None for e in results])
        new: dict[str, Any] = {}
        for name, text in question["updates"]:
            value = names.get(text)
            if isinstance(value, dict):
                # A scan returned these updates. Their keys are Arrays, so look up the variables.
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
        question = json.loads(line)
        calls = [{"outputs": outputs} for outputs in compute_calls(question)]
        answer_line: dict[str, Any] = {"runs": {"plain": {"calls": calls}}}
        if any(parse_derivative(text) for _, text in question["statements"]):
            answer_line["tolerance"] = derivatives.TOLERANCE
        print(json.dumps(answer_line), flush=True)


if __name__ == "__main__":
    main()
