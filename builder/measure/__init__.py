"""Measure the speed of stacks, and compare it with stock Theano, PyTensor and JAX."""
