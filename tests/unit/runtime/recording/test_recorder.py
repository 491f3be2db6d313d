from theano_fast.recording import recorder


def test_a_line_is_of_the_innermost_call_outside_of_packages():
    own, package = ("/me/train.py", 7, "f", "x"), ("/env/site-packages/theano/opt.py", 1, "f", "x")
    assert recorder.at_line([[own, package]]) == " (train.py:7)"
    assert recorder.at_line([[package]]) == recorder.at_line(()) == ""


def test_only_theanos_functions_are_looked_for():
    assert recorder.Recorder({}).find_spec("numpy", None) is None
