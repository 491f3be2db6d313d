"""Without the patch, forced_replace compares each variable's graph with the one it looks for."""

from theano import tensor
from theano.scan_module import scan_utils


def test_replaced_where_equal():
    x, y = tensor.dvectors("xy")
    out = tensor.tanh(x) * (1 - tensor.tanh(x)) + tensor.tanh(y)
    replaced = scan_utils.forced_replace(out, tensor.tanh(x), y)
    assert scan_utils.equal_computations([replaced], [y * (1 - y) + tensor.tanh(y)])


def test_an_input_is_replaced():
    x, y = tensor.dvectors("xy")
    replaced = scan_utils.forced_replace(tensor.exp(x), x, y)
    assert scan_utils.equal_computations([replaced], [tensor.exp(y)])


def test_nothing_to_replace():
    x, y = tensor.dvectors("xy")
    out = tensor.tanh(x) + tensor.exp(y)
    assert scan_utils.forced_replace(out, tensor.tanh(y), x) is out


def test_only_the_same_op_is_compared(monkeypatch):
    compared = []
    compare = scan_utils.equal_computations

    def counted(xs, ys):
        compared.extend(xs)
        return compare(xs, ys)

    monkeypatch.setattr(scan_utils, "equal_computations", counted)
    x, y = tensor.dvectors("xy")
    alike, out = tensor.tanh(y), x
    for _ in range(20):
        out = tensor.exp(out) + tensor.sin(x)
    scan_utils.forced_replace(out * alike, tensor.tanh(x), y)
    assert compared == [alike]
