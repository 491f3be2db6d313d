"""Run, parse, compare and draw profiles of Theano programs."""
