"""Test the list of a function's thunks, and of scans that loop in Python; functions are fake."""

from types import SimpleNamespace

from theano_fast import thunks


class Dot22:
    """Fake of Theano's op of this name."""


class Scan:
    """Fake of Theano's Scan; ``fn`` is its inner function."""

    def __init__(self, fn):
        self.fn = fn

    def __str__(self):
        return "forall_inplace,cpu,ntm}"

    def execute(self):
        """Do nothing. Scan's method of this name runs the loop in Python."""


def make_function(*pairs):
    """Make a fake compiled function from pairs of an op and its node's thunk."""
    nodes = [SimpleNamespace(op=op) for op, _ in pairs]
    return SimpleNamespace(fn=SimpleNamespace(nodes=nodes, thunks=[thunk for _, thunk in pairs]))


def make_c_thunk(file: str) -> SimpleNamespace:
    """Make a fake thunk that runs a compiled module."""
    module = SimpleNamespace(__file__=file)
    return SimpleNamespace(cthunk=object(), thunk=SimpleNamespace(module=module))


def test_thunks_of_a_function_are_followed_by_the_thunks_of_its_scans():
    scan = Scan(make_function((Dot22(), make_c_thunk("/c/m1.so"))))
    function = make_function((Dot22(), SimpleNamespace(perform=None)), (scan, SimpleNamespace()))
    assert thunks.read(function) == (
        thunks.Thunk("Dot22", "Py", ""),
        thunks.Thunk("Scan", "Py", ""),
        thunks.Thunk("Dot22", "C", "/c/m1.so"),
    )


def test_only_scans_whose_loop_runs_in_python_are_listed():
    slow, fast = Scan(make_function()), Scan(make_function())
    function = make_function(
        (slow, SimpleNamespace(perform=slow.execute)),
        (fast, SimpleNamespace(perform=lambda: None)),
    )
    assert thunks.list_python_scans(function) == ("forall_inplace,cpu,ntm}",)
