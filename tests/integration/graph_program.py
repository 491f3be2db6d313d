"""Compile and call graphs. Each line of standard input describes one graph in JSON.

A description has the format of ``random_graphs.py``, or is the name of a graph of ``bench/``. The
program answers each line with a line of JSON, which contains:

- ``values``: the outputs, the sum of all their elements, and the gradients of this sum
- ``graph``: descriptions of the nodes of the optimized graph
- ``steps``: the number of steps of each Scan

For a graph of ``bench/``, ``values`` are losses. If the graph cannot be computed, the answer
contains only ``error``. The program runs on any Theano, and on Python 3.9 and later.
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

# The limit of CPU seconds for one graph: stock Theano never ends the optimization of some nested
# scans.
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
    """Index x; ``index`` lists an integer or [start, stop, step] for each dimension."""
    return x[tuple(slice(*item) if isinstance(item, list) else item for item in index)]


def inc_subtensor(x, y, *, index, replace):
    """Return x with the indexed part replaced by y, or increased by y."""
    return (T.set_subtensor if replace else T.inc_subtensor)(subtensor(x, index=index), y)


def take(x, *, rows):
    """Return the rows of x at the positions ``rows``."""
    return x[rows]


def inc_rows(x, y, *, rows):
    """Add y to the rows of x at the positions ``rows``; repeated positions accumulate."""
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
    """Return the history of each state of a Scan, then of each mapped output.

    Where ``description["last"]`` is true, return the last step instead of the history.
    """

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
    """Apply the operations of ``nodes``; return ``variables`` and the results."""
    for name, operands, parameters in nodes:
        if name == "scan":
            variables = variables + scan(variables, parameters)
        else:
            result = OPERATIONS[name](*(variables[position] for position in operands), **parameters)
            variables = [*variables, result]
    return variables


def describe_nodes(graph):
    """Describe each node of an optimized graph, and of the bodies of its Scans, in one line.

    The line contains the op and the sorted digests of the inputs. The inputs are sorted because
    their order depends on the order in which the optimizer traverses the graph: for example, when
    it fuses operations or collects the inputs of a Scan.
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
    """Return [steps, counts of the nested Scans] for each Scan of an optimized graph."""
    bodies = [node.op.fn.maker for node in graph.toposort() if isinstance(node.op, Scan)]
    return [[int(body.profile.nbsteps), count_steps(body.fgraph)] for body in bodies]


def make_answer(function, values):
    """Return the answer for a compiled function and the ``values`` that it computed."""
    graph = function.maker.fgraph
    return {
        "values": [np.asarray(value).tolist() for value in values],
        "graph": sorted(describe_nodes(graph)),
        "steps": count_steps(graph),
    }


def evaluate(description):
    """Compile and call a described graph and its gradients; return the answer."""
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
    """Run three training steps of a graph of ``bench/``; return the answer."""
    compiled = []

    def function(*args, **kwargs):
        compiled.append(theano.function(*args, **kwargs))
        return compiled[0]

    step = theano_step.compile_training(graph, function)
    return make_answer(compiled[0], [step() for _ in range(3)])


def answer(question):
    """Return the answer for the name of a graph of ``bench/``, or for a description."""
    if isinstance(question, str):
        return train(question)
    signal.setitimer(signal.ITIMER_PROF, LIMIT)
    try:
        return evaluate(question)
    except (IndexError, NotImplementedError, ValueError) as error:
        return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}


if __name__ == "__main__":
    for line in sys.stdin:
        # Use a process for each graph: at the time limit, SIGPROF kills it.
        child = os.fork()
        if not child:
            print(json.dumps(answer(json.loads(line))), flush=True)
            os._exit(0)
        _, status = os.waitpid(child, 0)
        if status == signal.SIGPROF:
            print(json.dumps({"error": OUT_OF_TIME}), flush=True)
        elif status:
            sys.exit(status)
