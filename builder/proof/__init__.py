"""Test built environments: Theano's own tests, random programs, this project's tests."""
