"""Write derivatives with respect to vectors: grad, Rop, Lop, Jacobians and Hessians."""

from __future__ import annotations

from fuzz.grammar.writer import Variable, Writer

# Expressions of two vectors, with derivatives almost everywhere. A program nests at most three.
DIFFERENTIABLE = (
    "{0} ** 2",
    "T.exp({0} / 4)",
    "T.tanh({0})",
    "T.nnet.sigmoid({0})",
    "{0} ** 3",
    "T.sin({0})",
    "T.log(1 + T.sqr({0}))",
    "T.sqrt(1 + T.sqr({0}))",
    "{0} * {1}",
    "{0} + {1}",
    "{0} - 2 * {1}",
    "{0} / (2 + T.sqr({1}))",
    "T.maximum({0}, {1})",
    "T.switch(T.gt({0}, 0), {0}, {1})",
    "abs({0})",
    "{0}[::-1]",
    "{0}[1:]",
    "T.cumsum({0})",
    "T.concatenate([{0}, {1}])",
    "T.set_subtensor({0}[:1], 0)",
    "T.inc_subtensor({0}[1:], 2)",
    "T.nnet.softplus({0})",
    "T.dot({0}, {1}) * {0}",
    "T.outer({0}, {1}).sum(0)",
    "{0}.reshape((-1, 1)).flatten()",
    "T.sort({0})",
    "{0}.max() * {0}",
    "T.prod({0}) * {1}",
    "{0}.norm(2) * {0}",
    "T.clip({0}, -1, 2)",
    "T.nnet.relu({0})",
    "{0}[[0, 0, 1]]",
    "T.diag({0}).sum(1)",
    "T.arctan2({0}, 1 + T.sqr({1}))",
    "theano.scan(lambda a, p: a * p + a, sequences={0}, outputs_info=[T.constant(1.0)])[0]",
    "theano.scan(lambda a, p: T.tanh(a + p), sequences={0}, outputs_info=[{1}[0]])[0]",
    "theano.scan(lambda a, p, q: a + p * q, sequences={0}, "
    "outputs_info=[dict(initial={1}[:2], taps=[-1, -2])])[0]",
    "theano.scan(lambda p: p * p / 2, outputs_info=[{0}], n_steps=2)[0][-1]",
)


def write(writer: Writer) -> Variable:
    """Write a derivative."""
    x, y = (writer.add_input("float64", ("a",)) for _ in range(2))
    operands = [x, y]
    text = x.name
    for _ in range(writer.choose((1, 1, 2, 3))):
        form = writer.choose(DIFFERENTIABLE)
        text = writer.add_statement(form.format(text, y.name))
    kind = writer.choose(("grad", "grad", "grad", "rop", "lop", "hessian", "jacobian", "twice"))
    wrt = writer.choose((x, x, y))
    ignored = "disconnected_inputs='ignore'"
    if kind == "grad":
        derivative = f"T.grad(T.sum({text}), {wrt.name}, {ignored})"
    elif kind == "twice":
        first = writer.add_statement(f"T.grad(T.sum({text}), {x.name}, {ignored})")
        derivative = f"T.grad(T.sum({first} ** 2), {wrt.name}, {ignored})"
    elif kind == "rop":
        v = writer.add_input("float64", ("a",))
        derivative = f"T.Rop({text}, {x.name}, {v.name})"
        return writer.add(derivative, "float64", (f"rop{text}",), *operands)
    elif kind == "lop":
        derivative = f"T.Lop({text}, {x.name}, T.ones_like({text}) * 2)"
    elif kind == "jacobian":
        derivative = f"theano.gradient.jacobian({text}, {x.name})"
        return writer.add(derivative, "float64", (f"j{text}", "a"), *operands)
    else:
        derivative = f"theano.gradient.hessian(T.sum({text}), {x.name}, {ignored})"
        return writer.add(derivative, "float64", ("a", "a"), *operands)
    return writer.add(derivative, "float64", wrt.dims, *operands)
