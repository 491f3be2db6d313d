"""What a build is expected to take, in which order it runs, and what it took."""
