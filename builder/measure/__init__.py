"""Stacks measured beside stock Theano and its successors."""
