"""Test built environments with Theano's own tests, random programs and this project's tests."""
