"""Resolve a stack to a lock file; install, archive and describe its environment."""
