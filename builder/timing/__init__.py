"""Estimate the duration of a build, order its recipes, and find its critical path."""
