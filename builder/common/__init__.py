"""Shared by all other packages: errors, paths, files, subprocesses and progress output."""
