"""Train a conditional variational autoencoder on importance samples, with both kinds of streams.

The kinds are RandomStreams and MRG_RandomStreams. The program selects noisy inputs by ifelse,
repeats the hidden layer for each sample, and sets the streams' state between two draws.
"""

import numpy as np
import theano
import theano.tensor as T
from theano.ifelse import ifelse
from theano.sandbox.rng_mrg import MRG_RandomStreams
from theano.tensor.shared_randomstreams import RandomStreams

BATCH, VISIBLE, CLASSES, HIDDEN, LATENT = 4, 8, 3, 6, 2
NUMBERS = np.random.RandomState(42)


def weights(*shape):
    value = NUMBERS.uniform(-0.4, 0.4, shape).astype(theano.config.floatX)
    return theano.shared(value)


def log_normal(x, mean, log_variance):
    c = -0.5 * np.log(2 * np.pi)
    return (c - log_variance / 2 - (x - mean) ** 2 / (2 * T.exp(log_variance))).sum(axis=1)


def log_mean_exp(x, axis):
    largest = T.max(x, axis=axis, keepdims=True)
    return T.log(T.mean(T.exp(x - largest), axis=axis, keepdims=True)) + largest


def adam(loss, params, rate=0.01, b1=0.1, b2=0.001):
    updates, i = [], theano.shared(np.asarray(0.0, theano.config.floatX))
    i_t = i + 1.0
    scale = rate * T.sqrt(1.0 - (1.0 - b2) ** i_t) / (1.0 - (1.0 - b1) ** i_t)
    for param, gradient in zip(params, T.grad(loss, params)):
        m, v = (theano.shared(param.get_value() * 0.0) for _ in range(2))
        m_t, v_t = b1 * gradient + (1.0 - b1) * m, b2 * T.sqr(gradient) + (1.0 - b2) * v
        updates += [(m, m_t), (v, v_t), (param, param - scale * m_t / (T.sqrt(v_t) + 1e-8))]
    return [*updates, (i, i_t)]


def model(srng, seed_again):
    """Yield the losses with one kind of stream, then samples."""
    x, labels = T.matrix("x"), T.ivector("labels")
    samples, train = T.iscalar("k"), T.iscalar("train")
    one_hot = T.extra_ops.to_one_hot(labels, CLASSES, dtype=theano.config.floatX)

    params = [weights(VISIBLE + CLASSES, HIDDEN), weights(HIDDEN)]
    params += [weights(HIDDEN, LATENT), weights(LATENT), weights(HIDDEN, LATENT), weights(LATENT)]
    params += [weights(LATENT + CLASSES, HIDDEN), weights(HIDDEN)]
    params += [weights(HIDDEN, VISIBLE), weights(VISIBLE)]
    w_1, b_1, w_mean, b_mean, w_spread, b_spread, w_2, b_2, w_3, b_3 = params

    noisy = x * srng.binomial(size=x.shape, n=1, p=0.8, dtype=theano.config.floatX)
    visible = T.concatenate([ifelse(T.gt(train, 0), noisy, x), one_hot], axis=1)
    hidden = T.tanh(T.dot(visible, w_1) + b_1)
    hidden = T.extra_ops.repeat(hidden, samples, axis=0)
    repeated, classes = (T.extra_ops.repeat(matrix, samples, axis=0) for matrix in (x, one_hot))
    mean, spread = T.dot(hidden, w_mean) + b_mean, T.dot(hidden, w_spread) + b_spread
    noise = srng.normal(mean.shape, avg=0.0, std=1.0, dtype=theano.config.floatX)
    z = mean + T.exp(0.5 * spread) * noise

    def decode(z, classes):
        hidden = T.nnet.softplus(T.dot(T.concatenate([z, classes], axis=1), w_2) + b_2)
        return T.nnet.sigmoid(T.dot(hidden, w_3) + b_3)

    painted = decode(z, classes)
    bound = -T.nnet.binary_crossentropy(painted, repeated).sum(axis=1)
    bound += log_normal(z, T.zeros_like(z), T.zeros_like(z)) - log_normal(z, mean, spread)
    cost = -T.mean(log_mean_exp(bound.reshape((x.shape[0], samples)), axis=1))
    step = theano.function(
        [x, labels, samples, train], cost, updates=adam(cost, params), on_unused_input="warn"
    )
    values = NUMBERS.randint(0, 2, (BATCH, VISIBLE)).astype(theano.config.floatX)
    classes = NUMBERS.randint(0, CLASSES, BATCH).astype("int32")
    for count, training in ((1, 1), (5, 1), (5, 1), (3, 0)):
        yield float(step(values, classes, count, training))

    prior = srng.normal((labels.shape[0], LATENT), dtype=theano.config.floatX)
    chances = decode(prior, one_hot)
    binary = srng.uniform(chances.shape, dtype=theano.config.floatX) < chances
    words = srng.multinomial(pvals=T.nnet.softmax(chances), dtype=theano.config.floatX)
    draw = theano.function([labels], [chances, binary, words])
    first = draw(classes)
    seed_again()
    draw(classes)
    yield [value.astype(float).tolist() for value in first]
    yield [value.astype(float).tolist() for value in draw(classes)]


def results():
    """Yield the results with RandomStreams, then with MRG."""
    srng = RandomStreams(seed=234)
    yield from model(srng, lambda: srng.seed(5))
    mrg = MRG_RandomStreams(seed=234)
    yield from model(mrg, mrg.inc_rstate)
