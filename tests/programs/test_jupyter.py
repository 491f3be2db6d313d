"""Run Theano in notebooks: compute, show graphs and plots, and continue after an interrupt.

The tests run in an environment with Jupyter: ./invoke build --stack=openblas --with=jupyter
"""

import json
import subprocess
import sys
import time

import pytest
from jupyter_client.manager import start_new_kernel

# Compile a function whose call takes long: a scan of a million steps.
LONG = """
import theano, theano.tensor as T
x = T.vector()
powers, updates = theano.scan(lambda last: last * 1.0000001, outputs_info=x, n_steps=10**6)
f = theano.function([x], powers[-1], updates=updates)
"""
# Draw the graph of the function f. Besides the package pydot, d3viz needs the program dot.
GRAPHS = """
import theano.d3viz, pydot
from IPython.display import SVG
theano.printing.pydotprint(f, outfile="f.svg", format="svg", print_output_file=False)
theano.d3viz.d3viz(f, "f.html")
assert "dot_graph" in open("f.html").read() or "digraph" in open("f.html").read()
SVG("f.svg")
"""
PLOT = """
%matplotlib inline
from matplotlib import pyplot
pyplot.plot([1, 2]);
"""


@pytest.fixture
def kernel(tmp_path):
    """Start a Jupyter kernel; yield the functions ``run`` and ``interrupt``."""
    manager, client = start_new_kernel(cwd=str(tmp_path))

    def run(code):
        """Run a cell; return the kernel's reply, and the output by MIME type."""
        outputs = {}

        def store(message):
            outputs.update(message["content"].get("data", {}))

        return client.execute_interactive(code, timeout=120, output_hook=store)["content"], outputs

    def interrupt(code, seconds):
        """Start a cell, interrupt it after some seconds, and return the kernel's reply."""
        client.execute("print('begun')\n" + code)
        while client.get_iopub_msg(timeout=120)["msg_type"] != "stream":
            pass
        time.sleep(seconds)
        manager.interrupt_kernel()
        return client.get_shell_msg(timeout=120)["content"]

    yield run, interrupt
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def test_graphs_and_plots_are_shown(kernel):
    run, _ = kernel
    assert run(LONG.replace("10**6", "5"))[0]["status"] == "ok"
    reply, outputs = run(GRAPHS)
    assert reply["status"] == "ok", reply
    assert "</svg>" in outputs["image/svg+xml"]
    assert "image/png" in run(PLOT)[1]


def test_variables_stay_usable_after_an_interrupted_call(kernel):
    """After two interrupted calls of a function, its next call returns the correct result."""
    run, interrupt = kernel
    assert run(LONG)[0]["status"] == "ok"
    run("f([1.0])[0]")
    for _ in range(2):
        assert interrupt("while True: f([1.0] * 200)", 3)["ename"] == "KeyboardInterrupt"
        assert run("round(float(f([1.0])[0]), 3)")[1] == {"text/plain": "1.105"}


def test_variables_stay_usable_after_an_interrupted_compilation(kernel):
    """After an interrupt of theano.function, the same variable is the input of a new function."""
    run, interrupt = kernel
    setup = LONG + "theano.config.cmodule.warn_no_version = False\n"
    compilations = setup + "for i in range(10**9): theano.function([x], T.exp(x + i) * T.cos(x))"
    assert interrupt(compilations, 6)["ename"] == "KeyboardInterrupt"
    assert run("float(theano.function([x], T.exp(x) + T.cosh(x))([0.0])[0])")[1] == {
        "text/plain": "2.0"
    }


def test_nbconvert_executes_a_notebook(tmp_path):
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**cell, "id": "a", "source": LONG.replace("10**6", "5") + "f([2.0])"}]
    notebook = {"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "a.ipynb").write_text(json.dumps(notebook))
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "a.ipynb"]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
    notebook = json.loads((tmp_path / "a.nbconvert.ipynb").read_text())
    assert "array([2." in notebook["cells"][0]["outputs"][0]["data"]["text/plain"][0]
