"""Estimate the duration of builds, order their recipes, and find the critical path."""
