"""Train a perceptron by Rprop on full batches, with and without backtracking."""

from collections import OrderedDict

import numpy as np
import theano
import theano.tensor as T

SAMPLES, INPUTS, HIDDEN, CLASSES = 40, 5, 7, 3
NUMBERS = np.random.RandomState(23)


def shared(value):
    return theano.shared(np.asarray(value, theano.config.floatX), borrow=True)


def rprop(params, gradients, back, up=1.2, down=0.5, most=50.0, least=1e-6):
    """Return updates with steps that grow while a gradient keeps its sign."""
    updates = OrderedDict()
    for param, gradient in zip(params, gradients):
        zeros = np.zeros_like(param.get_value())
        before, delta, change = shared(zeros), shared(zeros + 0.05), shared(zeros.copy())
        turned = T.sgn(gradient * before)
        size = T.switch(
            T.eq(turned, 1.0),
            T.minimum(delta * up, most),
            T.switch(T.eq(turned, -1.0), T.maximum(delta * down, least), delta),
        )
        new_gradient = T.switch(T.eq(turned, -1.0), 0.0, gradient)
        step = -T.sgn(new_gradient) * size
        if back:
            step = T.switch(T.lt(turned, 0), -change, step)
        updates[param] = param + step
        updates[before], updates[delta], updates[change] = new_gradient, size, step
    return updates


def results():
    """Yield the losses and the errors without and with backtracking."""
    data = NUMBERS.randn(SAMPLES, INPUTS)
    labels = (data[:, 0] * data[:, 1] > 0).astype("int32") + (data[:, 2] > 1)
    data_x, data_y = shared(data), T.cast(shared(labels), "int32")
    for back in (False, True):
        x, y = T.matrix("x"), T.ivector("y")
        layers = [
            shared(NUMBERS.uniform(-0.5, 0.5, (INPUTS, HIDDEN))),
            shared(np.zeros(HIDDEN)),
            shared(NUMBERS.uniform(-0.5, 0.5, (HIDDEN, CLASSES))),
            shared(np.zeros(CLASSES)),
        ]
        hidden = T.tanh(T.dot(x, layers[0]) + layers[1])
        p_y = T.nnet.softmax(T.dot(hidden, layers[2]) + layers[3])
        penalty = sum(abs(w).sum() for w in layers[::2])
        cost = T.nnet.categorical_crossentropy(p_y, y).mean() + 1e-3 * penalty
        errors = T.mean(T.neq(T.argmax(p_y, axis=1), y))
        givens = {x: data_x, y: data_y}
        updates = rprop(layers, T.grad(cost, layers), back)
        train = theano.function([], cost, updates=updates, givens=givens)
        test = theano.function([], errors, givens=givens)
        for _ in range(8):
            yield float(train())
        yield float(test())
