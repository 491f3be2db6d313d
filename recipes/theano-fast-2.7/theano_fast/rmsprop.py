"""The RMSProp of A. Graves, with momentum and centred, by which Neural Turing Machines are trained.

A. Graves, "Generating Sequences With Recurrent Neural Networks" (arXiv:1308.0850, 2013),
equations 38-45, whose constants these are.
"""

import theano
import theano.tensor as T


def updates(parameters, gradients, rate=1e-4):
    """Return theano.function's updates for one step down the gradients.

    Gradients are clipped to (-10, 10), as Graves, Wayne and Danihelka did for the NTM (2014).
    """
    steps = []
    for parameter, gradient in zip(parameters, gradients):
        square, mean, delta = (theano.shared(parameter.get_value() * 0) for _ in range(3))
        clipped = T.clip(gradient, -10, 10)
        new_square = 0.95 * square + 0.05 * T.sqr(clipped)
        new_mean = 0.95 * mean + 0.05 * clipped
        new_delta = 0.9 * delta - rate * clipped / T.sqrt(new_square - T.sqr(new_mean) + 1e-4)
        steps += [(square, new_square), (mean, new_mean), (delta, new_delta)]
        steps.append((parameter, parameter + new_delta))
    return steps
