"""What every module leans on: errors, paths, subprocesses, and what is shown of their progress."""
