"""Source archives: where they may be had, fetched and verified."""
