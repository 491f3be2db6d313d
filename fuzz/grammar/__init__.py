"""What programs are made of, a module for each kind of operations."""
