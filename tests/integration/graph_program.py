"""Compile and call the graphs that standard input describes, one line of JSON for each.

The answer to a line is a line of JSON: the values of the graph's outputs, of their sum and of its
gradients, the optimized graph, and the number of steps of each Scan in it. ``random_graphs.py``
defines a description. The program runs on any Theano, and on Python 3.9 and later.
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

# CPU seconds for one graph: Theano 1.0.5 never ends the optimization of some nested scans.
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
    """Return a part of x; the index has an integer or [start, stop, step] for each dimension."""
    return x[tuple(slice(*item) if isinstance(item, list) else item for item in index)]


def inc_subtensor(x, y, *, index, replace):
    """Set a part of x to y, or add y to it."""
    return (T.set_subtensor if replace else T.inc_subtensor)(subtensor(x, index=index), y)


def take(x, *, rows):
    """Return the rows of x at these positions."""
    return x[rows]


def inc_rows(x, y, *, rows):
    """Add y to rows of x, as often as their positions occur."""
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
    """Return the states of a Scan, then its mapped outputs; for some, only the last step."""

    def step(*inner):
        applied = apply(list(inner), description["nodes"])
        results = [applied[i] for i in (*description["next"], *description["mapped"])]
        if description["bound"] is None:
            return results
        return results, until(T.gt(results[0].sum(), description["bound"]))

    initial = [
        {"initial": variables[position], "taps": taps} for position, taps in description["states"]
    ]
    histories, _ = theano.scan(
        step,
        sequences=[
            {"input": variables[position], "taps": taps}
            for position, taps in description["sequences"]
        ],
        outputs_info=initial + [None] * len(description["mapped"]),
        non_sequences=[variables[position] for position in description["others"]],
        n_steps=description["steps"],
        go_backwards=description["backwards"],
        return_list=True,
    )
    return [
        history[-1] if last else history for history, last in zip(histories, description["last"])
    ]


def apply(variables, nodes):
    """Compute the nodes; return all variables."""
    for name, places, parameters in nodes:
        if name == "scan":
            variables = variables + scan(variables, parameters)
        else:
            result = OPERATIONS[name](*(variables[position] for position in places), **parameters)
            variables = [*variables, result]
    return variables


def describe_nodes(graph):
    """Describe the nodes of an optimized graph and of its Scans.

    A node is described by its op and the digests of its inputs, without their order: the optimizer
    fuses operations and collects the inputs of a Scan in the order of its traversal.
    """
    nodes = []
    digests = {variable: str(variable.type) for variable in graph.inputs}
    for node in graph.toposort():
        if isinstance(node.op, Elemwise):
            # The name does not affect the computation, and some optimizations drop it.
            node.op.name = None
        inner = describe_nodes(node.op.fn.maker.fgraph) if isinstance(node.op, Scan) else []
        inputs = sorted(digests.get(variable, str(variable)) for variable in node.inputs)
        text = f"{node.op}({', '.join(inputs)})"
        digest = hashlib.sha256("\n".join([text, *sorted(inner)]).encode()).hexdigest()
        digests.update(dict.fromkeys(node.outputs, digest[:8]))
        nodes += [*inner, text]
    return nodes


def count_steps(graph):
    """Count the steps of each Scan in an optimized graph, also of nested Scans."""
    bodies = [node.op.fn.maker for node in graph.toposort() if isinstance(node.op, Scan)]
    return [[int(body.profile.nbsteps), count_steps(body.fgraph)] for body in bodies]


def make_answer(function, values):
    """Return the properties of a compiled function, and its results, that tests compare."""
    graph = function.maker.fgraph
    return {
        "values": [np.asarray(value).tolist() for value in values],
        "graph": sorted(describe_nodes(graph)),
        "steps": count_steps(graph),
    }


def evaluate(description):
    """Answer a description of a graph."""
    inputs = [T.TensorType("float64", [False] * len(shape))() for shape in description["inputs"]]
    variables = apply(inputs, description["nodes"])
    outputs = [variables[position] for position in description["outputs"]]
    total = sum(output.sum() for output in outputs)
    gradients = T.grad(total, inputs, disconnected_inputs="ignore")
    function = theano.function(inputs, [*outputs, total, *gradients], on_unused_input="ignore")
    random = np.random.RandomState(description["seed"])
    return make_answer(
        function, function(*(random.uniform(-2, 2, shape) for shape in description["inputs"]))
    )


def train(graph):
    """Return the losses of three training steps of a graph of the bench."""
    compiled = []

    def function(*args, **kwargs):
        compiled.append(theano.function(*args, **kwargs))
        return compiled[0]

    step = theano_step.compile_training(graph, function)
    return make_answer(compiled[0], [step() for _ in range(3)])


def answer_line(asked):
    """Answer a line, which is the name of a graph of the bench or a description."""
    if isinstance(asked, str):
        return train(asked)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        return evaluate(asked)
    except (IndexError, NotImplementedError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


if __name__ == "__main__":
    for line in sys.stdin:
        child = os.fork()
        if not child:
            print(json.dumps(answer_line(json.loads(line))), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == signal.SIGPROF:
            print(json.dumps({"error": OUT_OF_TIME}), flush=True)
        elif status:
            sys.exit(status)
