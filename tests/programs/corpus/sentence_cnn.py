"""Train a convolutional network of 2014 on sentences, with conv.conv2d and downsample.max_pool_2d.

Theano 0.10 removed theano.tensor.signal.downsample.
"""

from collections import OrderedDict

import numpy as np
import theano
import theano.tensor as T
from theano.tensor.nnet import conv
from theano.tensor.signal import downsample

BATCH, LENGTH, WIDTH, MAPS, WORDS, CLASSES = 5, 9, 6, 3, 15, 2
NUMBERS = np.random.RandomState(3435)


def shared(value, name):
    return theano.shared(np.asarray(value, dtype=theano.config.floatX), name=name, borrow=True)


class LeNetConvPoolLayer:
    """A convolution, a nonlinearity, and the maximum over time."""

    def __init__(self, filter_shape, image_shape, poolsize, non_linear):
        self.filter_shape, self.image_shape = filter_shape, image_shape
        self.poolsize, self.non_linear = poolsize, non_linear
        self.W = shared(NUMBERS.uniform(-0.3, 0.3, filter_shape), "W_conv")
        self.b = shared(np.zeros(filter_shape[0]), "b_conv")
        self.params = [self.W, self.b]

    def output(self, x, size=None):
        shape = (size, *self.image_shape[1:])
        convolved = conv.conv2d(
            input=x,
            filters=self.W,
            filter_shape=self.filter_shape,
            image_shape=shape if size else None,
        )
        biases = self.b.dimshuffle("x", 0, "x", "x")
        if self.non_linear == "relu":
            activated = T.nnet.relu(convolved + biases)
            return downsample.max_pool_2d(activated, self.poolsize, ignore_border=True)
        pooled = downsample.max_pool_2d(input=convolved, ds=self.poolsize, ignore_border=True)
        return T.tanh(pooled + biases)


def dropped(x, rate):
    srng = T.shared_randomstreams.RandomStreams(NUMBERS.randint(999999))
    return x * T.cast(srng.binomial(n=1, p=1 - rate, size=x.shape), theano.config.floatX)


def adadelta(params, cost, rho=0.95, epsilon=1e-6, limit=3.0):
    updates = OrderedDict()
    for param, gradient in zip(params, T.grad(cost, params)):
        squares, steps = shared(param.get_value() * 0.0, ""), shared(param.get_value() * 0.0, "")
        new = rho * squares + (1 - rho) * T.sqr(gradient)
        updates[squares] = new
        step = -(T.sqrt(steps + epsilon) / T.sqrt(new + epsilon)) * gradient
        updates[steps] = rho * steps + (1 - rho) * T.sqr(step)
        stepped = param + step
        if param.get_value(borrow=True).ndim == 2 and param.name != "Words":
            norms = T.sqrt(T.sum(T.sqr(stepped), axis=0))
            limited = T.clip(norms, 0, T.sqrt(limit))
            updates[param] = stepped * (limited / (1e-7 + norms))
        else:
            updates[param] = stepped
    return updates


def results():
    """Yield the losses, then the errors and the scores of two sentences."""
    index = T.lscalar()
    x, y = T.matrix("x"), T.ivector("y")
    words = shared(NUMBERS.uniform(-0.25, 0.25, (WORDS, WIDTH)), "Words")
    zero = T.vector()
    set_zero = theano.function(
        [zero], updates=[(words, T.set_subtensor(words[0, :], zero))], allow_input_downcast=True
    )
    embedded = words[T.cast(x.flatten(), dtype="int32")]
    embedded = embedded.reshape((x.shape[0], 1, x.shape[1], words.shape[1]))
    layers = [
        LeNetConvPoolLayer(
            (MAPS, 1, height, WIDTH), (BATCH, 1, LENGTH, WIDTH), (LENGTH - height + 1, 1), kind
        )
        for height, kind in ((2, "relu"), (3, "tanh"), (4, "relu"))
    ]
    hidden = T.concatenate([layer.output(embedded, BATCH).flatten(2) for layer in layers], 1)
    W = shared(NUMBERS.randn(MAPS * len(layers), CLASSES) * 0.1, "W")
    b = shared(np.zeros(CLASSES), "b")
    p_drop = T.nnet.softmax(T.dot(dropped(hidden, 0.5), W) + b)
    p_y = T.nnet.softmax(T.dot(hidden, W * 0.5) + b)
    cost = -T.mean(T.log(p_drop)[T.arange(y.shape[0]), y])
    params = [W, b, words, *(param for layer in layers for param in layer.params)]

    sentences = NUMBERS.randint(0, WORDS, (4 * BATCH, LENGTH))
    data_x = theano.shared(sentences.astype(theano.config.floatX), borrow=True)
    data_y = T.cast(shared(sentences[:, 0] % CLASSES, "y"), "int32")
    batch = slice(index * BATCH, (index + 1) * BATCH)
    train = theano.function(
        [index],
        cost,
        updates=adadelta(params, cost),
        givens={x: data_x[batch], y: data_y[batch]},
        allow_input_downcast=True,
    )
    errors = theano.function(
        [index],
        T.mean(T.neq(T.argmax(p_y, axis=1), y)),
        givens={x: data_x[batch], y: data_y[batch]},
    )
    for number in (0, 1, 2, 3, 0):
        yield float(train(number))
        set_zero(np.zeros(WIDTH))
    any_size = T.concatenate([layer.output(embedded).flatten(2) for layer in layers], 1)
    classify = theano.function([x], T.dot(any_size, W) + b, allow_input_downcast=True)
    yield [float(errors(1)), classify(sentences[:2]).tolist()]
