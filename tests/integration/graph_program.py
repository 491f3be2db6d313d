"""Compile and call the graphs that standard input describes, one line of JSON for each.

The answer to a line is a line of JSON: the values of the graph's outputs, of their sum and of its
gradients, the optimized graph, and how often the body of each Scan in it ran. ``descriptions.py``
says what a description is. It runs on whatever Theano it imports, Python 3.9's too.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import sys

import numpy as np
import theano
import theano.tensor as T
import theano_step
from theano.scan_module import until
from theano.scan_module.scan_op import Scan
from theano.tensor.elemwise import Elemwise

# CPU seconds for one graph: on a few that scan in a scan Theano 1.0.5 optimizes without end.
LIMIT = 10
OUT_OF_TIME = f"not done in {LIMIT} s"
ELEMWISE = {
    "abs": abs,
    "cos": T.cos,
    "exp": lambda x: T.exp(T.clip(x, -4, 4)),
    "log": lambda x: T.log(T.sqr(x) + 0.5),
    "neg": lambda x: -x,
    "sigmoid": T.nnet.sigmoid,
    "softplus": T.nnet.softplus,
    "sqrt": lambda x: T.sqrt(abs(x) + 1),
    "tanh": T.tanh,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (1 + T.sqr(y)),
    "max": T.maximum,
    "switch": lambda x, y: T.switch(T.gt(x, y), x, 2 * y),
}


def subtensor(x, *, index):
    """A part of x: an integer, or [start, stop, step], for each of its first dimensions."""
    return x[tuple(slice(*each) if isinstance(each, list) else each for each in index)]


def inc_subtensor(x, y, *, index, replace):
    """x with y added to a part of it, or in its place."""
    return (T.set_subtensor if replace else T.inc_subtensor)(subtensor(x, index=index), y)


def take(x, *, rows):
    """The rows of x that are listed."""
    return x[rows]


def inc_rows(x, y, *, rows):
    """x with y added to the rows that are listed, as often as they are."""
    return T.inc_subtensor(x[rows], y)


OPERATIONS = {
    **ELEMWISE,
    "alloc": lambda x, *, shape: T.alloc(x, *shape),
    "batched_dot": T.batched_dot,
    "concatenate": lambda x, y, *, axis: T.concatenate([x, y], axis=axis),
    "dot": T.dot,
    "inc_rows": inc_rows,
    "inc_subtensor": inc_subtensor,
    "largest": T.max,
    "mean": T.mean,
    "outer": lambda x, y: x.dimshuffle(0, "x") * y,
    "permute": lambda x, *, axes: x.dimshuffle(*axes),
    "reshape": lambda x, *, shape: x.reshape(shape),
    "size": lambda x: x * x.shape[0].astype("float64"),
    "softmax": T.nnet.softmax,
    "stack": lambda x, y: T.stack([x, y]),
    "subtensor": subtensor,
    "sum": T.sum,
    "take": take,
}


def scan(variables, description):
    """The outputs of a Scan: its states, then what it only maps; of some, the last step."""

    def step(*inner):
        found = apply(list(inner), description["nodes"])
        results = [found[i] for i in (*description["next"], *description["mapped"])]
        if description["bound"] is None:
            return results
        return results, until(T.gt(results[0].sum(), description["bound"]))

    initial = [{"initial": variables[place], "taps": taps} for place, taps in description["states"]]
    histories, _ = theano.scan(
        step,
        sequences=[
            {"input": variables[place], "taps": taps} for place, taps in description["sequences"]
        ],
        outputs_info=initial + [None] * len(description["mapped"]),
        non_sequences=[variables[place] for place in description["others"]],
        n_steps=description["steps"],
        go_backwards=description["backwards"],
        return_list=True,
    )
    return [
        history[-1] if last else history for history, last in zip(histories, description["last"])
    ]


def apply(variables, nodes):
    """The variables, and those that nodes compute from them."""
    for name, places, parameters in nodes:
        if name == "scan":
            variables = variables + scan(variables, parameters)
        else:
            result = OPERATIONS[name](*(variables[place] for place in places), **parameters)
            variables = [*variables, result]
    return variables


def described(graph):
    """The nodes of an optimized graph, and of the Scans in it, with what they are computed from.

    Each is its op, and the digests of its inputs without their order: the optimizer fuses
    operations, and gathers the inputs of a Scan, in the order in which it meets them.
    """
    nodes = []
    digests = {variable: str(variable.type) for variable in graph.inputs}
    for node in graph.toposort():
        if isinstance(node.op, Elemwise):
            # Its name is not what it computes, and lost where an optimization makes it anew.
            node.op.name = None
        inner = described(node.op.fn.maker.fgraph) if isinstance(node.op, Scan) else []
        inputs = sorted(digests.get(variable, str(variable)) for variable in node.inputs)
        text = f"{node.op}({', '.join(inputs)})"
        digest = hashlib.sha256("\n".join([text, *sorted(inner)]).encode()).hexdigest()
        digests.update(dict.fromkeys(node.outputs, digest[:8]))
        nodes += [*inner, text]
    return nodes


def steps(graph):
    """How often the body of each Scan in an optimized graph ran, and of those in its body."""
    bodies = [node.op.fn.maker for node in graph.toposort() if isinstance(node.op, Scan)]
    return [[int(body.profile.nbsteps), steps(body.fgraph)] for body in bodies]


def answer(function, values):
    """What is compared of a compiled function and the values it returned."""
    graph = function.maker.fgraph
    return {
        "values": [np.asarray(value).tolist() for value in values],
        "graph": sorted(described(graph)),
        "steps": steps(graph),
    }


def evaluate(description):
    """The answer to a description of a graph."""
    inputs = [T.TensorType("float64", [False] * len(shape))() for shape in description["inputs"]]
    variables = apply(inputs, description["nodes"])
    outputs = [variables[place] for place in description["outputs"]]
    total = sum(output.sum() for output in outputs)
    gradients = T.grad(total, inputs, disconnected_inputs="ignore")
    function = theano.function(inputs, [*outputs, total, *gradients], on_unused_input="ignore")
    random = np.random.RandomState(description["seed"])
    return answer(
        function, function(*(random.uniform(-2, 2, shape) for shape in description["inputs"]))
    )


def train(graph):
    """The answer to the name of a graph of the bench: the losses of three steps."""
    compiled = []

    def function(*args, **kwargs):
        compiled.append(theano.function(*args, **kwargs))
        return compiled[0]

    step = theano_step.training(graph, function)
    return answer(compiled[0], [step() for _ in range(3)])


def reply(asked):
    """The answer to a line: to the name of a graph of the bench, or to a description."""
    if isinstance(asked, str):
        return train(asked)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        return evaluate(asked)
    except (IndexError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if not child:
            print(json.dumps(reply(json.loads(line))), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == signal.SIGPROF:
            print(json.dumps({"error": OUT_OF_TIME}), flush=True)
        elif status:
            sys.exit(status)
