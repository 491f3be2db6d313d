"""What a stack is, and which recipes and compilers it takes."""
