"""Lock, install, archive and describe the environment of a stack."""
