"""Write pairs of shared variables with updates: swaps, and updates of all or some elements."""

from __future__ import annotations

from fuzz.grammar import types
from fuzz.grammar.writer import Variable, Writer


def write(writer: Writer) -> Variable:
    """Write two shared variables with updates that read both; an output reads them too."""
    dtype = writer.choose(("float64", "float64", "float32", "int64", "int8"))
    shape = writer.choose(((), (3,), (3,), (2, 3), (0,), (1, 3)))
    s, t = writer.add_shared(dtype, shape), writer.add_shared(dtype, shape)
    x = writer.add_input(dtype, tuple(map(str, shape)))
    writer.bounds.setdefault(x.name, (-3, 3))
    forms = ["{0} + {1}", "{0} * 2 - {2}", "{2}", "{1} - {0}", "T.maximum({0}, {1})"]
    if shape:
        forms += [
            "T.set_subtensor({0}[:1], 5)",
            "T.inc_subtensor({0}[::-1], {2})",
            "{0}[::-1]",
            "T.set_subtensor({0}[:1], {1}[:1])",
            "T.inc_subtensor({0}[1:], {0}[:-1])",
        ]
    if shape and types.count_bits(dtype) > 8:
        forms.append("{0} + T.cumsum({1}, axis=0)")
    swap = writer.decide(35)
    new_values = (
        [t.name, s.name]
        if swap
        else [
            writer.choose(forms).format(one.name, other.name, x.name)
            for one, other in ((s, t), (t, s))
        ]
    )
    updated = {name for name, _ in writer.updates}
    for variable, text in zip((s, t), new_values):
        if variable.name in updated or writer.decide(15):
            continue
        if text == variable.name:
            continue
        name = writer.add_statement(text) if text not in (s.name, t.name) else text
        writer.updates.append((variable.name, name))
    exact = dtype != "float16"
    text = writer.choose(("{0} + {1}", "{0} * 2", "{0} - {2}", "{1}", "{0}")).format(
        s.name, t.name, x.name
    )
    output = writer.add(text, dtype, tuple(map(str, shape)), s, t, x, exact=exact)
    writer.outputs.append(output.name)
    return output
