"""Test the source lines of nodes, which come from the traces of their variables."""

import sys
from types import SimpleNamespace as Made

from theano_fast.profiling import node_lines

# Entries of a stack trace: file, line number, function, code.
PACKAGE = ("/env/lib/python3.11/site-packages/theano/tensor/opt.py", 3, "f", "code")
OWN = ("/home/me/train.py", 7, "<module>", "y = x * 2")
OUTER = ("/home/me/train.py", 9, "<module>", "main()")


class Node(Made):
    """A fake node. Like Theano's nodes, it is hashed and compared by identity."""

    __hash__ = object.__hash__
    __eq__ = object.__eq__


def make_node(trace, *parents, graph=None):
    """Make a node whose inputs are outputs of its parents and an input of the graph."""
    inputs = [Made(owner=owner) for owner in (*parents, None)]
    return Node(outputs=[Made(tag=Made(trace=trace))], inputs=inputs, fgraph=graph)


def test_the_line_of_a_trace_is_the_innermost_line_outside_of_packages():
    assert node_lines.format_line([[OUTER, OWN, PACKAGE]]) == "/home/me/train.py:7: y = x * 2"
    assert node_lines.format_line([[PACKAGE], [OUTER]]) == "/home/me/train.py:9: main()"
    assert (
        node_lines.format_line([])
        == node_lines.format_line(None)
        == node_lines.format_line([[PACKAGE]])
        == ""
    )


def test_a_node_without_a_line_has_the_line_of_its_nearest_ancestor():
    first = make_node([[OWN]])
    second = make_node([], make_node([], first))
    assert node_lines.find_nearest_line(first) == "/home/me/train.py:7: y = x * 2"
    assert node_lines.find_nearest_line(second) == "after /home/me/train.py:7: y = x * 2"
    assert node_lines.find_nearest_line(make_node([], make_node([]))) == ""


def test_lines_are_found_by_the_index_of_the_node_in_its_graph():
    class Graph:
        def toposort(self):
            return nodes

    graph = Graph()
    nodes = [make_node([], graph=graph), make_node([[OWN]], graph=graph)]
    stats = Made(apply_time=dict.fromkeys(nodes, 1.0), name=None, message="train.py:9")
    assert node_lines.find_lines(stats) == {1: "/home/me/train.py:7: y = x * 2"}
    assert node_lines.get_name(stats) == "train.py:9"
    assert node_lines.get_name(Made(name="scan_fn", message=None)) == "scan_fn"


def test_a_program_without_theano_writes_nothing(tmp_path, monkeypatch):
    monkeypatch.delitem(sys.modules, "theano.compile.profiling", raising=False)
    node_lines.write(tmp_path / "traces.json")
    assert not (tmp_path / "traces.json").exists()
