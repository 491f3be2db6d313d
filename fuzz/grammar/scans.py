"""Write scans: with taps, with until, nested, backwards, with gradients, and with updates."""

from __future__ import annotations

import re

from fuzz.grammar import subtensors
from fuzz.grammar.writer import Variable, Writer

# Expressions of the new state. {0} is an element of the sequence, and {1} is the state. In the
# lambda of a scan, their names are a and p. b is an element of a second sequence, and q is a second
# tap of the state.
BODIES = (
    "{0} + {1}",
    "{0} * {1}",
    "{0} - {1}",
    "T.maximum({0}, {1})",
    "{0} * 2 + {1}",
    "T.tanh({0}) + {1}",
    "T.switch(T.gt({0}, 0), {0}, {1})",
    "{0} + {1} * {0}",
)
# The types of sequences and states, repeated by their frequency.
FLOAT = ("float64", "float64", "float32")


def write(writer: Writer) -> Variable:
    """Write a scan, and statements that use some of its results."""
    kind = writer.choose(("map", "fold", "taps", "until", "nested", "grad", "empty", "shared"))
    return _write_scan(writer, kind)


def _choose_sequence(writer: Writer, dtype: str) -> Variable:
    """Return a vector or a matrix whose first dimension is not broadcastable."""
    return writer.choose_variable(
        (dtype,), (1, 2), lambda variable: variable.dims[0] != "1", new=50
    )


def _write_initial(writer: Writer, dtype: str, dims: tuple[str, ...]) -> str:
    """Return the text of a state's initial value; "" if no value can have these dimensions."""
    candidates = [
        variable
        for variable in writer.variables
        if variable.dtype == dtype and variable.dims == dims
    ]
    if candidates and writer.decide(40):
        return str(writer.choose(candidates).name)
    if not dims and writer.decide(60):
        return f"T.constant({writer.choose((0.0, 1.0, -0.5))}, dtype={dtype!r})"
    if dims and all(dim != "1" for dim in dims) and writer.decide(40):
        return writer.add_input(dtype, dims).name
    return writer.add_input(dtype, dims).name if all(d in "abcd1" for d in dims) else ""


def _write_scan(writer: Writer, kind: str) -> Variable:
    """Write a scan of a kind, such as "until", and statements that use its results."""
    dtype = writer.choose(FLOAT)
    x = _choose_sequence(writer, dtype)
    inner = tuple(x.dims[1:])
    combine = writer.choose(BODIES)
    mapped = writer.choose(("a * p", "a", "p", "a + p", "p * 2", "a - p", "T.exp(p)", "a * a"))
    options = []
    sequences, arguments = x.name, ["a"]
    if writer.decide(20):
        y = writer.choose_variable((dtype,), x.ndim, lambda variable: variable.dims[1:] == inner)
        if y.dims[1:] == inner:
            sequences, arguments = f"[{x.name}, {y.name}]", ["a", "b"]
            mapped = writer.choose(("a * b", "a + p", "b - p"))
    taps_of_x = kind == "taps" and writer.decide(40)
    if taps_of_x:
        taps = writer.choose(("[-1, 0]", "[0, 1]", "[-2, 0]"))
        sequences, arguments = f"[dict(input={x.name}, taps={taps})]", ["a", "b"]
        mapped = "a * b"
    keywords = ""
    if kind == "empty":
        position = subtensors.add_position(writer, 0, 3).name
        keywords = ", n_steps=" + writer.choose(("0", position, "1"))
    elif writer.decide(20):
        keywords = f", n_steps={subtensors.add_position(writer, 0, 3).name}"
    if writer.decide(20):
        keywords += ", go_backwards=True"
    if kind == "grad" and writer.decide(40):
        keywords += ", truncate_gradient=" + writer.choose(("1", "2", "3"))
    if writer.decide(8):
        keywords += ", strict=True"
    if kind == "map":
        text = f"theano.scan(lambda {', '.join(arguments)}: [a * 2, a + 1]"
        h = writer.add_statement(
            f"{text}, sequences={sequences}, outputs_info=[None, None]{keywords})[0]"
        )
        return _use_results(writer, h, 2, dtype, inner, x, kind)
    start = _write_initial(writer, dtype, inner)
    if not start:
        start = f"T.zeros_like({x.name}[0])"
    if kind == "taps":
        state_taps = writer.choose(("[-1, -2]", "[-2]", "[-1, -3]", "[-3, -1]", "[-2, -1]"))
        depth = 3 if "3" in state_taps else 2
        first = writer.choose(("stack", "zeros", "input"))
        initial = f"T.stack([{', '.join([start] * depth)}])"
        if first == "zeros" and not inner:
            initial = f"T.zeros({depth}, dtype={dtype!r})"
        elif first == "input" and all(d in "abcd1" for d in inner):
            initial = writer.add_input(dtype, (str(depth), *inner)).name
        state = f"dict(initial={initial}, taps={state_taps})"
        states = ["p"] if state_taps == "[-2]" else ["p", "q"]
        combine = combine if len(states) == 1 else writer.choose(("{0} + {1} * q", "{1} + q + {0}"))
    else:
        state, states = start, ["p"]
    body = combine.format("a", "p")
    if kind == "nested":
        body = (
            "theano.scan(lambda r, z: r * z + 1, sequences=None, "
            f"outputs_info=[p], non_sequences=[a], n_steps={writer.choose((1, 2, 3))})[0][-1]"
        )
    results = f"[{body}, {mapped}]"
    if kind == "until":
        bound = writer.choose((0, 1, 3, -1))
        results = f"({results}, until(T.gt(T.sum(p), {bound})))"
    if kind == "shared":
        s = writer.add_shared(dtype, ())
        results = f"({results}, [({s.name}, {s.name} + T.sum(a))])"
        names = ", ".join([*arguments, *states])
        text = f"theano.scan(lambda {names}: {results}, sequences={sequences}"
        results_and_updates = writer.add_statement(
            f"{text}, outputs_info=[{state}, None]{keywords})"
        )
        updates = writer.add_statement(f"{results_and_updates}[1]")
        writer.updates.append(("", updates))
        h = writer.add_statement(f"{results_and_updates}[0]")
        return _use_results(writer, h, 2, dtype, inner, x, kind)
    options = [state, "None"]
    if writer.decide(20) and kind == "fold":
        results = f"[{body}]"
        options = [state]
        keywords += ", return_list=True"
    names = ", ".join([*arguments, *states])
    non_sequences = ""
    if writer.decide(20) and "strict" not in keywords:
        factor = writer.choose_variable((dtype,), 0)
        non_sequences = f", non_sequences=[{factor.name}]"
        names += ", w"
        results = (
            re.sub(r"\ba\b", "(a * w)", results, count=1) if "lambda" not in results else results
        )
    text = f"theano.scan(lambda {names}: {results}, sequences={sequences}"
    outputs_info = f"outputs_info=[{', '.join(options)}]"
    h = writer.add_statement(f"{text}, {outputs_info}{non_sequences}{keywords})[0]")
    return _use_results(writer, h, len(options), dtype, inner, x, kind)


def _use_results(
    writer: Writer, h: str, count: int, dtype: str, inner: tuple[str, ...], x: Variable, kind: str
) -> Variable:
    """Write statements that use results of a scan, and perhaps a gradient; return the last result.

    Args:
        h: the name of the list of results.
        count: the number of results.
        dtype: the type of the results.
        inner: the dimensions of one step of a result.
        x: the sequence.
        kind: the kind of the scan.
    """
    result = None
    steps = f"steps{h}"
    for number in range(count):
        if result and writer.decide(30):
            continue
        history = f"{h}[{number}]"
        form = writer.choose(("all", "last", "slice", "slice", "chain", "chain", "sum"))
        if form == "all":
            result = writer.add(history, dtype, (steps, *inner), x)
        elif form == "last":
            result = writer.add(f"{history}[{writer.choose((-1, -1, -2, 0))}]", dtype, inner, x)
        elif form == "sum":
            result = writer.add(f"{history}.sum()", dtype, (), x)
        else:
            text, dim = subtensors.write_slice(writer, steps)
            history += f"[{text}]"
            if form == "chain":
                text, dim = subtensors.write_slice(writer, dim)
                history += f"[{text}]"
            result = writer.add(history, dtype, (dim, *inner), x)
    assert result is not None
    if (kind == "grad" or writer.decide(15)) and x in writer.inputs:
        cost = f"{result.name}.sum()"
        text = f"T.grad({cost}, {x.name}, disconnected_inputs='ignore')"
        return writer.add(text, dtype, x.dims, result)
    return result
