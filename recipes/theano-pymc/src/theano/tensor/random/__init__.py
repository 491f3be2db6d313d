"""theano.tensor.random of Theano-PyMC: types of random states, without random variables.

PyMC3 3.11 does not use theano.tensor.random. MRG_RandomStream and RandomStreams draw random numbers.
"""

from theano.tensor.random import type, var


def __getattr__(name):
    """Raise an AttributeError that names a replacement."""
    raise AttributeError(
        f"only Theano-PyMC has theano.tensor.random.{name}: use "
        "theano.sandbox.rng_mrg.MRG_RandomStream or theano.tensor.shared_randomstreams.RandomStreams"
    )
