"""Source archives: downloads from Debian, package indexes and upstream, and their verification."""
