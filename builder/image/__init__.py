"""Environments made into Docker images."""
