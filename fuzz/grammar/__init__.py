"""Write random statements: one module for each kind of operation."""
