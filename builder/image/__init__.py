"""Build Docker images of environments, verify the images, and push them to a registry."""
