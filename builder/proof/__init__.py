"""Tests that judge what was built: Theano's own, random programs, this project's."""
