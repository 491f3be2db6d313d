"""Train a deep convolutional GAN with Adam, and with batch normalization in plain expressions.

The generator's transposed convolutions are gradients of convolutions with respect to their inputs:
one from T.grad with ``known_grads``, and one from the op conv2d_grad_wrt_inputs.
"""

import numpy as np
import theano
import theano.tensor as T
from theano.tensor.nnet import conv2d
from theano.tensor.nnet.abstract_conv import conv2d_grad_wrt_inputs

BATCH, LATENT, MAPS, SIZE = 4, 3, 2, 8
NUMBERS = np.random.RandomState(11)


def weights(*shape):
    value = 0.2 * NUMBERS.randn(*shape)
    return theano.shared(value.astype(theano.config.floatX))


def lrelu(x, leak=0.2):
    return 0.5 * (1 + leak) * x + 0.5 * (1 - leak) * abs(x)


def batchnorm(x, g, b, epsilon=1e-5):
    if x.ndim == 4:
        mean = x.mean((0, 2, 3)).dimshuffle("x", 0, "x", "x")
        variance = T.sqr(x - mean).mean((0, 2, 3)).dimshuffle("x", 0, "x", "x")
        scale, shift = (vector.dimshuffle("x", 0, "x", "x") for vector in (g, b))
        return (x - mean) / T.sqrt(variance + epsilon) * scale + shift
    mean = x.mean(0)
    return (x - mean) / T.sqrt(T.sqr(x - mean).mean(0) + epsilon) * g + b


def deconv(x, w, size):
    """Upsample twofold, by the gradient of a strided convolution with respect to its input."""
    below = T.zeros((x.shape[0], w.shape[1], size, size))
    above = conv2d(below, w, border_mode=(2, 2), subsample=(2, 2))
    return T.grad(None, wrt=below, known_grads={above: x})


def deconv_op(x, w, size):
    """Upsample twofold, by the op conv2d_grad_wrt_inputs."""
    return conv2d_grad_wrt_inputs(
        x,
        w,
        input_shape=(None, None, size, size),
        border_mode=(2, 2),
        subsample=(2, 2),
    )


def generate(z, params):
    w, g, b, w2, g2, b2, w3 = params
    h = T.nnet.relu(batchnorm(T.dot(z, w), g, b))
    h = h.reshape((h.shape[0], 2 * MAPS, SIZE // 4, SIZE // 4))
    h = T.nnet.relu(batchnorm(deconv(h, w2, SIZE // 2), g2, b2))
    return T.tanh(deconv_op(h, w3, SIZE))


def discriminate(x, params):
    w, w2, g2, b2, w3 = params
    h = lrelu(conv2d(x, w, subsample=(2, 2), border_mode=(2, 2)))
    h = lrelu(batchnorm(conv2d(h, w2, subsample=(2, 2), border_mode=(2, 2)), g2, b2))
    return T.nnet.sigmoid(T.dot(T.flatten(h, 2), w3))


def adam(params, cost, rate, b1=0.5, b2=0.999):
    updates, t = [], theano.shared(np.asarray(1.0, theano.config.floatX))
    for param, gradient in zip(params, T.grad(cost, params)):
        m, v = (theano.shared(param.get_value() * 0.0) for _ in range(2))
        m_t, v_t = b1 * m + (1 - b1) * gradient, b2 * v + (1 - b2) * gradient**2
        step = rate * (m_t / (1 - b1**t)) / (T.sqrt(v_t / (1 - b2**t)) + 1e-8)
        updates += [(m, m_t), (v, v_t), (param, param - step)]
    return [*updates, (t, t + 1.0)]


def results():
    """Yield both losses and mean scores of each step, then two images."""
    cells = 2 * MAPS * (SIZE // 4) ** 2
    gains = [theano.shared(np.ones(n, theano.config.floatX)) for n in (cells, MAPS, 2 * MAPS)]
    biases = [theano.shared(np.zeros(n, theano.config.floatX)) for n in (cells, MAPS, 2 * MAPS)]
    g_params = [weights(LATENT, cells), gains[0], biases[0], weights(2 * MAPS, MAPS, 5, 5)]
    g_params += [gains[1], biases[1], weights(MAPS, 1, 5, 5)]
    d_params = [weights(MAPS, 1, 5, 5), weights(2 * MAPS, MAPS, 5, 5), gains[2], biases[2]]
    d_params += [weights(cells, 1)]

    X, Z = T.tensor4(), T.matrix()
    gX = generate(Z, g_params)
    p_real, p_gen = discriminate(X, d_params), discriminate(gX, d_params)
    bce = T.nnet.binary_crossentropy
    d_cost = bce(p_real, T.ones(p_real.shape)).mean() + bce(p_gen, T.zeros(p_gen.shape)).mean()
    d_cost += 1e-4 * sum(T.sqr(w).sum() for w in d_params)
    g_cost = bce(p_gen, T.ones(p_gen.shape)).mean()
    cost = [g_cost, d_cost, p_real.mean(), p_gen.mean()]
    train_g = theano.function([X, Z], cost, updates=adam(g_params, g_cost, 0.01))
    train_d = theano.function([X, Z], cost, updates=adam(d_params, d_cost, 0.01))
    generator = theano.function([Z], gX)

    images = np.tanh(NUMBERS.randn(BATCH, 1, SIZE, SIZE))
    for number in range(6):
        z = NUMBERS.uniform(-1.0, 1.0, (BATCH, LATENT))
        outputs = (train_g if number % 2 else train_d)(images, z)
        yield [float(value) for value in outputs]
    yield generator(z[:2]).tolist()
