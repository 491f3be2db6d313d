"""Profiles of Theano programs: taken, read, compared, and drawn on pages without a network."""
