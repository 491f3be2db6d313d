"""graph/push-out-in-one-pass.patch lets a recurrence store products and sums for its gradient.

Without the patch, the gradient computes these values again.
"""

import numpy as np
import pytest
import theano
from theano import tensor as tt
from theano.ifelse import ifelse
from theano.scan_module.push_out_of_gradients import is_gradient_of_recurrence, is_other_scan

N, STEPS = 4, 5


def scan_steps(step, state, w, **options):
    """Return the states of STEPS steps; `options` are further arguments of theano.scan."""
    states, _ = theano.scan(step, outputs_info=[state], non_sequences=[w], n_steps=STEPS, **options)
    return states


def compute_sine_of_product(h, w):
    return tt.sin(tt.dot(h, w))


def multiply_joined(x, h, w):
    """Multiply a joined input and state; read parts of the product several times."""
    gates = tt.dot(tt.concatenate([x, h]), tt.concatenate([w, w]))
    return tt.sin(gates[: N // 2]).sum() * h + tt.tanh(gates)


def scan_sine_of_product(x, h, w):
    return scan_steps(compute_sine_of_product, h, w)


def scan_weights_first(x, h, w):
    return scan_steps(lambda h, w: tt.sin(tt.dot(w, h)), h, w)


def scan_sequences(x, h, w):
    return theano.scan(multiply_joined, sequences=[x], outputs_info=[h], non_sequences=[w])[0]


def scan_matrices(x, h, w):
    return scan_steps(compute_sine_of_product, tt.stack([h, 2 * h]), w)


def scan_two_taps(x, h, w):
    initial = {"initial": tt.stack([h, h / 2, h / 3]), "taps": [-1, -3]}
    return scan_steps(lambda h1, h3, w: tt.sin(tt.dot(h1, w) + tt.dot(h3, w)), initial, w)


def scan_outputs(x, h, w):
    """Return outputs without initial state, which the gradient also reads."""

    def step(x, h, w):
        product = tt.dot(tt.exp(h), w)
        return tt.tanh(product) * h, tt.cos(product + x)

    states, outputs = theano.scan(step, sequences=[x], outputs_info=[h, None], non_sequences=[w])[0]
    return states * outputs


def scan_equal_products(x, h, w):
    """Compute the same product twice in a step."""
    return scan_steps(lambda h, w: tt.sin(tt.dot(h, w)) * tt.cos(tt.dot(h, w)), h, w)


def scan_counter(x, h, w):
    """Scan with a shared variable that the steps update."""
    counter = theano.shared(0)
    states, updates = theano.scan(
        lambda h, w: (compute_sine_of_product(h, w), {counter: counter + 1}),
        outputs_info=[h],
        non_sequences=[w],
        n_steps=STEPS,
    )
    counter.default_update = updates[counter]
    return states


def scan_sums(x, h, w):
    """Compute the sums of a matrix's rows."""
    states = tt.stack([h, 2 * h])
    return scan_steps(
        lambda h, w: tt.sin(tt.sqr(h + w[:2]).sum(axis=1)).dimshuffle(0, "x") * h, states, w
    )


def scan_product_of_states(x, h, w):
    """Multiply a matrix by a vector that depends on the state too."""
    states = tt.stack([h, 2 * h])
    return scan_steps(
        lambda h, w: tt.sin(tt.dot(h, tt.exp(h[0]))).dimshuffle(0, "x") * h + w[:2], states, w
    )


STORED = [
    scan_sine_of_product,
    scan_weights_first,
    scan_sequences,
    scan_matrices,
    scan_two_taps,
    scan_outputs,
    scan_equal_products,
    scan_counter,
    scan_sums,
    scan_product_of_states,
]


def scan_until(x, h, w):
    return scan_steps(
        lambda h, w: (compute_sine_of_product(h, w), theano.scan_module.until(h.sum() > 1e9)), h, w
    )


def scan_truncated(x, h, w):
    return scan_steps(compute_sine_of_product, h, w, truncate_gradient=3)


def scan_many_products(x, h, w):
    """Multiply a state by five weights."""
    return scan_steps(lambda h, w: tt.sin(sum(tt.cos(tt.dot(h, w + i)) for i in range(5))), h, w)


def scan_product_with_a_vector(x, h, w):
    """Multiply a state by a vector of weights."""
    return scan_steps(lambda h, w: tt.sin(tt.dot(h, w[0]) * h), h, w)


def scan_sum_of_a_vector(x, h, w):
    return scan_steps(lambda h, w: tt.sin(tt.exp(h).sum() * h + w[0]), h, w)


def scan_branches(x, h, w):
    """Multiply a state by weights only in some steps."""
    return scan_steps(lambda h, w: ifelse(tt.gt(h[0], 0), tt.sin(tt.dot(h, w)), tt.cos(h)), h, w)


NOT_STORED = [
    scan_until,
    scan_truncated,
    scan_many_products,
    scan_product_with_a_vector,
    scan_sum_of_a_vector,
    scan_branches,
]


def compile_gradient(scan, excluded=()):
    """Compile the states of a scan, and their gradients with respect to a state and weights."""
    x, h, w = tt.dmatrix(), tt.dvector(), tt.dmatrix()
    states = scan(x, h, w)
    gradients = tt.grad(tt.sqr(states).sum(), [h, w])
    mode = theano.compile.get_mode("FAST_RUN").excluding(*excluded)
    return theano.function([x, h, w], [states, *gradients], mode=mode, on_unused_input="ignore")


def count_stored_values(function):
    """Return the number of the recurrence's outputs without initial state.

    Stored values are such outputs.
    """
    nodes = function.maker.fgraph.toposort()
    (scan,) = filter(is_other_scan, nodes)
    return scan.op.n_nit_sot


@pytest.mark.parametrize("scan", STORED + NOT_STORED, ids=lambda scan: scan.__name__)
def test_results_equal_results_without_the_optimizer(scan, monkeypatch):
    monkeypatch.setattr(theano.config, "on_opt_error", "raise")
    functions = [
        compile_gradient(scan, excluded) for excluded in ([], ["scanOp_pushout_gradients"])
    ]
    random = np.random.RandomState(0)
    arguments = [random.normal(size=shape) for shape in ((STEPS, N), (N,), (N, N))]
    for result, expected in zip(*(function(*arguments) for function in functions), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("scan", STORED, ids=lambda scan: scan.__name__)
def test_the_recurrence_stores_values(scan):
    counts = [
        count_stored_values(compile_gradient(scan, excluded))
        for excluded in (["scanOp_pushout_gradients"], [])
    ]
    assert counts[1] > counts[0]


@pytest.mark.parametrize("scan", NOT_STORED, ids=lambda scan: scan.__name__)
def test_other_values_are_not_stored(scan):
    assert count_stored_values(compile_gradient(scan)) == 0


def test_two_gradients_read_the_stored_values():
    h, w = tt.dvector(), tt.dmatrix()
    states = scan_sine_of_product(None, h, w)
    costs = [tt.sqr(states).sum(), states[-1].prod()]
    gradients = [tt.grad(cost, w) for cost in costs]
    modes = [
        theano.compile.get_mode("FAST_RUN").excluding(*excluded)
        for excluded in ([], ["scanOp_pushout_gradients"])
    ]
    arguments = np.linspace(-1, 1, N), np.linspace(-1, 2, N * N).reshape(N, N)
    functions = [theano.function([h, w], gradients, mode=mode) for mode in modes]
    for result, expected in zip(*(function(*arguments) for function in functions), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-10)
    nodes = functions[0].maker.fgraph.toposort()
    assert sum(map(is_other_scan, nodes)) == 1
    assert 1 <= sum(map(is_gradient_of_recurrence, nodes)) <= 2


def test_lengths_of_moved_products_need_no_product():
    """The gradient of a slice needs the length of the sliced product, which is not computed."""
    x, h, w = tt.dmatrix(), tt.dvector(), tt.dmatrix()
    function = theano.function([x, h, w], tt.grad(scan_sequences(x, h, w).sum(), w))
    names = {str(node.op) for node in function.maker.fgraph.toposort()}
    # The steps sum the gradient of the weights, so no product remains outside of them.
    assert not [name for name in names if "dot" in name.lower() or "gem" in name.lower()]
