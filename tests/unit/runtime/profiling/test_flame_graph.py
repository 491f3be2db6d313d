"""Test the frames of flame graphs, and their conversion to speedscope's format."""

from dataclasses import replace

import pytest
from theano_fast.profiling.flame_graph import Frame, build_frames, group_frames, to_speedscope


def walk(frame):
    """Yield a frame and its descendants."""
    yield frame
    for child in frame.children:
        yield from walk(child)


def find(frame, name):
    """Return the first frame with this name."""
    return next(child for child in walk(frame) if child.name == name)


def test_the_profile_of_a_scan_is_a_child_of_the_scans_node(read):
    root = build_frames("ntm", [*read("train_fn")[1], *read("grad_of_scan")[1]])
    scan = find(root, "forall_inplace,cpu,grad_of_scan_fn&grad_of_scan_fn}")
    assert (scan.kind, scan.seconds) == ("scan", 43.985)
    (inner,) = scan.children
    assert inner.seconds == 43.61261
    assert find(inner, "Split{4}").kind == "Py"
    assert find(inner, "Dot22").seconds == 2.925
    assert [child.name for child in root.children] == [
        "compile examples/run_tasks.py:376",
        "100 calls of examples/run_tasks.py:376",
    ]


def test_a_scan_without_the_profile_of_its_function_is_a_child_of_the_root(read):
    (scan,) = build_frames("ntm", read("grad_of_scan")[0]).children
    assert scan.name == "100 calls of grad_of_scan_fn&grad_of_scan_fn"


def test_theanos_sum_of_all_functions_is_omitted(read):
    (train,) = read("train_fn")[0]
    total = replace(
        train, message="Sum of all(1) printed profiles at exit excluding Scan op profile."
    )
    assert build_frames("ntm", [train, total]).to_json() == build_frames("ntm", [train]).to_json()


def test_no_frame_is_shorter_than_its_children(read):
    root = build_frames("ntm", [*read("train_fn")[0], *read("grad_of_scan")[0]])
    for frame in walk(root):
        assert frame.seconds >= sum(child.seconds for child in frame.children) - 1e-9


def test_children_are_sorted_by_seconds_and_a_frame_may_be_longer_than_their_sum():
    frame = group_frames("f", [Frame("a", 1.0), Frame("b", 2.0)], 4.0)
    assert [child.name for child in frame.children] == ["b", "a"]
    assert frame.seconds == 4.0
    assert group_frames("f", [Frame("a", 1.0)]).seconds == pytest.approx(1.0)
    assert frame.to_json()["c"][0] == {"n": "b", "s": 2.0, "k": "", "d": [], "c": []}


def test_a_speedscope_sample_has_the_seconds_of_a_frame_without_its_children():
    tree = to_speedscope(Frame("f", 3.0, children=(Frame("a", 1.0), Frame("b", 1.5))))
    assert [frame["name"] for frame in tree["shared"]["frames"]] == ["f", "a", "b"]
    (profile,) = tree["profiles"]
    assert profile["samples"] == [[0], [0, 1], [0, 2]]
    assert profile["weights"] == [0.5, 1.0, 1.5]
    assert profile["endValue"] == 3.0
