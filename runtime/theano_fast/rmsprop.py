"""Compute updates by Graves's centred RMSProp with momentum, for Neural Turing Machines.

Source of the equations and constants: A. Graves, "Generating Sequences With Recurrent Neural
Networks" (arXiv:1308.0850, 2013), equations 38-45.

The stacks with Theano 0.8.2 contain this module too, so it must also run on Python 2.7.
"""

import theano
import theano.tensor as T


def updates(parameters, gradients, rate=1e-4):
    """Return the updates of one step of gradient descent, for theano.function.

    Clip gradients to [-10, 10], like Graves, Wayne and Danihelka (2014).
    ``parameters`` are shared variables; ``rate`` is the learning rate.
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
