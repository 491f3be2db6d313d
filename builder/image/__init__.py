"""Build Docker images of environments, verify them, and push them to a registry."""
