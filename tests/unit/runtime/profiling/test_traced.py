import sys
from types import SimpleNamespace as Made

from theano_fast.profiling import traced

PACKAGE = ("/env/lib/python3.11/site-packages/theano/tensor/opt.py", 3, "f", "code")
OWN = ("/home/me/train.py", 7, "<module>", "y = x * 2")
OUTER = ("/home/me/train.py", 9, "<module>", "main()")


class Node(Made):
    __hash__ = object.__hash__
    __eq__ = object.__eq__


def node(trace, *before, graph=None):
    inputs = [Made(owner=each) for each in before] + [Made(owner=None)]
    return Node(outputs=[Made(tag=Made(trace=trace))], inputs=inputs, fgraph=graph)


def test_the_innermost_line_outside_of_packages():
    assert traced.line_of([[OUTER, OWN, PACKAGE]]) == "/home/me/train.py:7: y = x * 2"
    assert traced.line_of([[PACKAGE], [OUTER]]) == "/home/me/train.py:9: main()"
    assert traced.line_of([]) == traced.line_of(None) == traced.line_of([[PACKAGE]]) == ""


def test_what_an_optimizer_made_has_the_line_before_it():
    first = node([[OWN]])
    made = node([], node([], first))
    assert traced.nearest(first) == "/home/me/train.py:7: y = x * 2"
    assert traced.nearest(made) == "after /home/me/train.py:7: y = x * 2"
    assert traced.nearest(node([], node([]))) == ""


def test_lines_are_by_the_nodes_place_in_its_graph():
    class Graph:
        def toposort(self):
            return nodes

    graph = Graph()
    nodes = [node([], graph=graph), node([[OWN]], graph=graph)]
    stats = Made(apply_time=dict.fromkeys(nodes, 1.0), name=None, message="train.py:9")
    assert traced.lines(stats) == {1: "/home/me/train.py:7: y = x * 2"}
    assert traced.name_of(stats) == "train.py:9"
    assert traced.name_of(Made(name="scan_fn", message=None)) == "scan_fn"


def test_a_program_without_theano_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "theano.compile.profiling", raising=False)
    traced.write(tmp_path / "traces.json")
    assert not (tmp_path / "traces.json").exists()
