"""Measure stacks against stock Theano, PyTensor and JAX."""
