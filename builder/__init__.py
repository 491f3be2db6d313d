"""Build stacks on the host: packages, a channel, an environment, a report and an image."""
