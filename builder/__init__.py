"""Build a stack on the host: its packages, channel, environment, report and image."""
