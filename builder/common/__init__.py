"""Code for all folders of the builder: errors, paths, files, subprocesses, progress output."""
