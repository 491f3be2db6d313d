"""graph/push-out-in-one-pass.patch joins products of one value with several weights in a Scan.

The products become one product with the joined weights. Without the patch, each product is a call
of BLAS. If states are small, most of the time is the overhead of these calls.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.gof.graph import io_toposort
from theano.ifelse import ifelse
from theano.tensor.join_as import JoinAs

STEPS, ROWS, N = 4, 2, 3
LENGTHS = 2, 5, 1


def make_weights(first, dtype="float64"):
    """Return three matrices that map N elements to LENGTHS elements, and three that map them back.

    If `first` is false, the matrices are transposed, because they are the first factors.
    """
    random = np.random.RandomState(0)
    there = [random.normal(size=(N, n)).astype(dtype) for n in LENGTHS]
    back = [random.normal(size=(n, N)).astype(dtype) for n in LENGTHS]
    return there + back if first else [x.T.copy() for x in there + back]


def make_step(first, change=tt.tanh):
    """Return a step that multiplies a state by all weights.

    Args:
        first: whether the state is the first factor of the products.
        change: the function to apply to the products.
    """

    def new_state(h, *matrices):
        multiply = tt.dot if first else lambda x, y: tt.dot(y, x)
        parts = [change(multiply(h, x)) for x in matrices[:3]]
        back = [multiply(x, y) for x, y in zip(parts, matrices[3:], strict=True)]
        return tt.tanh(back[0] + 2 * h + (back[1] + back[2]))

    return new_state


def compile_scan(new_state, state, matrices, excluded=(), cost=tt.sum):
    """Compile a scan; return (call, function): call() is function(state, *matrices).

    The outputs are the states and, if there is a cost, its gradients.
    """
    symbols = [tt.matrix(dtype=x.dtype) for x in matrices]
    h = tt.TensorType(state.dtype, (False,) * state.ndim)()
    states, _ = theano.scan(
        new_state, outputs_info=[h], non_sequences=symbols, n_steps=STEPS, strict=True
    )
    outputs = [states]
    if cost:
        outputs += tt.grad(cost(states), [h, *symbols], disconnected_inputs="ignore")
    mode = theano.compile.get_mode("FAST_RUN").excluding(*excluded)
    function = theano.function([h, *symbols], outputs, mode=mode, on_unused_input="ignore")
    return lambda: function(state, *matrices), function


def list_ops_of_steps(function):
    """Return the names of all ops of the steps."""
    scans = [
        node.op for node in function.maker.fgraph.toposort() if type(node.op).__name__ == "Scan"
    ]
    return [type(node.op).__name__ for op in scans for node in io_toposort(op.inputs, op.outputs)]


def count(function, *names):
    return sum(name in names for name in list_ops_of_steps(function))


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("shape", [(N,), (ROWS, N)])
@pytest.mark.parametrize("first", [True, False])
def test_products_of_states_and_of_gradients_are_joined(first, shape, dtype):
    state = np.random.RandomState(1).normal(size=shape if first else shape[::-1]).astype(dtype)
    call, function = compile_scan(make_step(first), state, make_weights(first, dtype))
    other, without = compile_scan(
        make_step(first), state, make_weights(first, dtype), ["scanOp_join_products"]
    )
    # The scan and its gradient have two joins each: products with a common factor, and a sum of
    # products. Each join replaces three products by one product.
    assert count(without, "Dot") - count(function, "Dot") >= 4 * 2
    assert count(function, "Split") >= 2
    assert count(function, "JoinAs") == 2
    tolerance = 1e-12 if dtype == "float64" else 1e-5
    for one, another in zip(call(), other(), strict=True):
        assert one.dtype == another.dtype
        np.testing.assert_allclose(one, another, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize(
    ("new_state", "dots"),
    [
        # The weights `a` occur twice. Two nodes read their part of the joined product.
        (lambda h, a, b: tt.sin(tt.dot(h, a)) + tt.cos(tt.dot(h, a)) + tt.exp(tt.dot(h, b)), 1),
        # The state is the first factor of one product and the second factor of the other product.
        (lambda h, a, b: tt.sin(tt.dot(h, a)) + tt.cos(tt.dot(b, h)), 2),
        (lambda h, a, b: tt.dot(h, a) + tt.dot(b, tt.sin(h)), 2),
        # A sum contains products and other terms. Its products are joined.
        (lambda h, a, b: tt.sin(tt.dot(h, a) + 1 + tt.dot(h, b)) * tt.dot(tt.exp(-h), b), 2),
        (lambda h, a, b: tt.sin(2 + (tt.dot(h, a) + (tt.dot(tt.sin(h), b) + h))), 1),
        # A bias is added to one product.
        (lambda h, a, b: tt.dot(h, a) + tt.dot(tt.shape_padleft(h[0]), b), 2),
        # Products of different states are not joined.
        (lambda h, a, b: tt.dot(tt.dot(h, a) / 9, b) / 9, 2),
        # Products are not joined if both factors are weights, or if neither factor is.
        (lambda h, a, b: tt.sin(h) + tt.dot(a, b) + tt.dot(a[0], b), 0),
        (lambda h, a, b: tt.dot(h, tt.dot(h, a)) + tt.dot(h, tt.dot(h, b)), 3),
        # Products in lazy branches are not joined.
        (lambda h, a, b: ifelse(tt.gt(h.sum(), 0), tt.dot(h, a), tt.dot(h, b)), 2),
    ],
)
def test_the_expected_products_are_joined(new_state, dots):
    random = np.random.RandomState(2)
    state, *matrices = random.normal(0, 0.3, (3, N, N))
    call, function = compile_scan(new_state, state, matrices, cost=None)
    other, _ = compile_scan(new_state, state, matrices, ["scanOp_join_products"], cost=None)
    assert count(function, "Dot") == dots
    np.testing.assert_allclose(call(), other(), rtol=1e-12, atol=1e-12)


def test_a_product_with_another_reader_is_not_joined():
    """A sum of products is not joined if another node reads one of the products."""

    def new_state(h, a, b):
        product = tt.dot(h, a)
        total = product + tt.dot(tt.sin(h), b)
        return tt.sin(total) + tt.cos(product)

    call, function = compile_scan(new_state, np.ones((N, N)), [np.eye(N)] * 2, cost=None)
    assert count(function, "Dot") == 2
    assert count(function, "JoinAs") == 0
    assert np.isfinite(call()).all()


def test_a_vector_of_weights_is_not_joined():
    call, function = compile_scan(
        lambda h, a, b: h * tt.dot(h, a[0]) + tt.dot(h, b[0]),
        np.ones(N),
        [np.eye(N)] * 2,
        cost=None,
    )
    assert count(function, "Split", "JoinAs") == 0
    assert np.isfinite(call()).all()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("rows", [(), (2,)])
def test_separate_lengths_are_checked(first, rows):
    """Wrong lengths of two products raise an error, although the sum of the lengths is correct."""
    matrices = [np.ones((N, N)), np.ones((1, N))]
    state = np.ones((*rows, N))
    if not first:
        matrices, state = [x.T for x in matrices], state.T

    def swapped(h, a, b):
        if first:
            return tt.dot(h[..., :1], a) + tt.dot(h, b)
        return tt.dot(a, h[:1]) + tt.dot(b, h)

    call, function = compile_scan(swapped, state, matrices, cost=None)
    assert count(function, "JoinAs") == 1
    with pytest.raises(ValueError, match="Shape mismatch"):
        call()


@pytest.mark.parametrize("mode", ["FAST_COMPILE", "FAST_RUN"])
def test_join_as_checks_lengths(mode):
    x, y, lengths = tt.dmatrix(), tt.dmatrix(), tt.lvector()
    function = theano.function([lengths, x, y], JoinAs(1)(lengths, x, y), mode=mode)
    one, other = np.arange(6.0).reshape(2, 3), np.arange(4.0).reshape(2, 2)
    for a, b in ((one, other), (np.asfortranarray(one), np.asfortranarray(other))):
        assert function([3, 2], a, b).tolist() == np.concatenate([one, other], 1).tolist()
    for wrong in ([2, 3], [3, 1]):
        with pytest.raises(ValueError, match="Shape mismatch: a factor has"):
            function(wrong, one, other)
    with pytest.raises(ValueError, match="must match exactly"):
        function([3, 2], one, other[:1])
