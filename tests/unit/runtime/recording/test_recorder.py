"""Test the line of a recorded node, and that the recorder's import hook ignores other packages."""

from theano_fast.recording import recorder


def test_the_line_of_a_node_is_outside_of_packages():
    program, package = (
        ("/me/train.py", 7, "f", "x"),
        ("/env/site-packages/theano/opt.py", 1, "f", "x"),
    )
    assert recorder.format_line([[program, package]]) == " (train.py:7)"
    assert recorder.format_line([[package]]) == recorder.format_line(()) == ""


def test_only_theano_is_watched():
    assert recorder.Recorder({}).find_spec("numpy", None) is None
