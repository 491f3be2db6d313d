"""Write scans: with taps, nested, with until, backwards, with truncated gradients, with updates."""

from __future__ import annotations

import re

from fuzz.grammar import subtensors, types
from fuzz.grammar.writer import Variable, Writer

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
FLOAT = ("float64", "float64", "float32")


def write(writer: Writer) -> Variable:
    """Write a scan, and statements that use some of its results."""
    kind = writer.choose(("map", "fold", "taps", "until", "nested", "grad", "empty", "shared"))
    return _scan(writer, kind)


def _choose_sequence(writer: Writer, dtype: str) -> Variable:
    return writer.choose_variable(
        (dtype,), (1, 2), lambda variable: variable.dims[0] != "1", new=50
    )


def _write_initial(writer: Writer, dtype: str, dims: tuple[str, ...]) -> str:
    """Write the initial value of a state."""
    same = [
        variable
        for variable in writer.variables
        if variable.dtype == dtype and variable.dims == dims
    ]
    if same and writer.decide(40):
        return str(writer.choose(same).name)
    if not dims and writer.decide(60):
        return f"T.constant({writer.choose((0.0, 1.0, -0.5))}, dtype={dtype!r})"
    if dims and all(dim != "1" for dim in dims) and writer.decide(40):
        return None or writer.add_input(dtype, dims).name
    return writer.add_input(dtype, dims).name if all(d in "abcd1" for d in dims) else ""


def _scan(writer: Writer, kind: str) -> Variable:
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
    more = ""
    if kind == "empty":
        more = ", n_steps=" + writer.choose(("0", subtensors.add_position(writer, 0, 3).name, "1"))
    elif writer.decide(20):
        more = f", n_steps={subtensors.add_position(writer, 0, 3).name}"
    if writer.decide(20):
        more += ", go_backwards=True"
    if kind == "grad" and writer.decide(40):
        more += ", truncate_gradient=" + writer.choose(("1", "2", "3"))
    if writer.decide(8):
        more += ", strict=True"
    if kind == "map":
        text = f"theano.scan(lambda {', '.join(arguments)}: [{'a * 2'}, {'a + 1'}]"
        h = writer.add_statement(
            f"{text}, sequences={sequences}, outputs_info=[None, None]{more})[0]"
        )
        return _use_results(writer, h, 2, dtype, inner, x, kind)
    start = _write_initial(writer, dtype, inner)
    if not start:
        start = f"T.zeros_like({x.name}[0])"
    if kind == "taps":
        wanted = writer.choose(("[-1, -2]", "[-2]", "[-1, -3]", "[-3, -1]", "[-2, -1]"))
        depth = 3 if "3" in wanted else 2
        first = writer.choose(("stack", "zeros", "input"))
        initial = f"T.stack([{', '.join([start] * depth)}])"
        if first == "zeros" and not inner:
            initial = f"T.zeros({depth}, dtype={dtype!r})"
        elif first == "input" and all(d in "abcd1" for d in inner):
            initial = writer.add_input(dtype, (str(depth), *inner)).name
        state = f"dict(initial={initial}, taps={wanted})"
        states = ["p"] if wanted == "[-2]" else ["p", "q"]
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
        both = writer.add_statement(f"{text}, outputs_info=[{state}, None]{more})")
        updates = writer.add_statement(f"{both}[1]")
        writer.updates.append(("", updates))
        h = writer.add_statement(f"{both}[0]")
        return _use_results(writer, h, 2, dtype, inner, x, kind)
    options = [state, "None"]
    if writer.decide(20) and kind == "fold":
        results = f"[{body}]"
        options = [state]
        more += ", return_list=True"
    names = ", ".join([*arguments, *states])
    extra = ""
    if writer.decide(20) and "strict" not in more:
        other = writer.choose_variable((dtype,), 0)
        extra = f", non_sequences=[{other.name}]"
        names += ", w"
        results = (
            re.sub(r"\ba\b", "(a * w)", results, count=1) if "lambda" not in results else results
        )
    text = f"theano.scan(lambda {names}: {results}, sequences={sequences}"
    h = writer.add_statement(f"{text}, outputs_info=[{', '.join(options)}]{extra}{more})[0]")
    return _use_results(writer, h, len(options), dtype, inner, x, kind)


def _use_results(
    writer: Writer, h: str, count: int, dtype: str, inner: tuple[str, ...], x: Variable, kind: str
) -> Variable:
    """Write a statement that uses the results of a scan, or their gradient."""
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


def choose_state_types() -> tuple[str, ...]:
    """Choose the types of the states."""
    return tuple(dict.fromkeys(dtype for dtype in FLOAT if dtype in types.FLOATS))
