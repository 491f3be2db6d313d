"""Host side: turns a stack's name into packages, a channel, an environment and a report."""
