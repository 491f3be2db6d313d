"""Download source archives from Debian, package indexes and upstream, and verify them."""
