"""Download source archives from Debian, package indexes and upstream sites, and verify them."""
