"""The duration of builds: estimates, the order of recipes, and the critical path."""
