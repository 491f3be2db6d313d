"""Train a recurrent network by Hessian-free optimization: R-operators of scan, conjugate gradients.

The curvature is the Gauss-Newton matrix. The program computes a product with the Hessian as the
gradient of a scalar product, because in Theano 1.0.5 the R-operator of a scan's gradient raises
ValueError.
"""

import numpy as np
import theano
import theano.tensor as T

STEPS, INPUTS, UNITS, OUTPUTS = 6, 3, 4, 2
NUMBERS = np.random.RandomState(9)


def weights(*shape):
    value = NUMBERS.uniform(-0.5, 0.5, shape).astype(theano.config.floatX)
    return theano.shared(value)


def conjugate_gradients(product, b, iterations):
    """Return an approximate solution of product(x) = b, for lists of arrays."""
    x = [np.zeros_like(array) for array in b]
    r = [array.copy() for array in b]
    d = [array.copy() for array in b]

    def inner(left, right):
        return sum(np.vdot(a, b) for a, b in zip(left, right))

    error = inner(r, r)
    for _ in range(iterations):
        curved = product(d)
        alpha = error / inner(d, curved)
        x = [a + alpha * b for a, b in zip(x, d)]
        r = [a - alpha * b for a, b in zip(r, curved)]
        before, error = error, inner(r, r)
        d = [a + error / before * b for a, b in zip(r, d)]
    return x


def results():
    """Yield the losses before each step, then products with the Jacobian and with the Hessian."""
    x, target = T.matrix("x"), T.matrix("t")
    W, W_in, W_out = weights(UNITS, UNITS), weights(INPUTS, UNITS), weights(UNITS, OUTPUTS)
    h0, bh, by = weights(UNITS), weights(UNITS), weights(OUTPUTS)
    p = [W, W_in, W_out, h0, bh, by]

    def step(x_t, h_before):
        h_t = T.tanh(T.dot(x_t, W_in) + T.dot(h_before, W) + bh)
        return [h_t, T.dot(h_t, W_out) + by]

    [_, s], _ = theano.scan(step, sequences=x, outputs_info=[h0, None])
    cost = T.nnet.binary_crossentropy(T.nnet.sigmoid(s), target).sum() / STEPS
    gradient = T.grad(cost, p)
    v = [value.type() for value in p]

    Jv = T.Rop(s, p, v)
    HJv = T.grad(T.sum(T.grad(cost, s) * Jv), s, consider_constant=[Jv])
    Gv = T.grad(T.sum(HJv * s), p, consider_constant=[HJv, Jv])
    damping = T.scalar("lambda")
    Gv = [product + damping * direction for product, direction in zip(Gv, v)]
    curvature = theano.function([x, target, damping, *v], Gv)
    evaluate = theano.function([x, target], [cost, *gradient])

    inputs = NUMBERS.randn(STEPS, INPUTS)
    targets = (np.cumsum(inputs[:, :OUTPUTS], axis=0) > 0).astype(theano.config.floatX)
    for _ in range(4):
        loss, *slopes = evaluate(inputs, targets)
        yield float(loss)
        change = conjugate_gradients(
            lambda d: curvature(inputs, targets, 0.3, *d), [-slope for slope in slopes], 5
        )
        for value, delta in zip(p, change):
            value.set_value(value.get_value() + delta)

    directions = [NUMBERS.randn(*value.get_value().shape) for value in p]
    forward = theano.function([x, *v], Jv, on_unused_input="ignore")
    projected = sum(T.sum(slope * direction) for slope, direction in zip(gradient, v))
    product = theano.function([x, target, *v], T.grad(projected, p, disconnected_inputs="ignore"))
    yield forward(inputs, *directions).tolist()
    yield [value.tolist() for value in product(inputs, targets, *directions)]
