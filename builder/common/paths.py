"""Every path the builder reads or writes."""

from __future__ import annotations

import os
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
STACKS = ROOT / "builder" / "stack" / "stacks.toml"
RECIPES = ROOT / "recipes"
LOCKS = ROOT / "envs"
REFERENCES = ROOT / "references"
BENCH = ROOT / "bench"
DOCKERFILE = ROOT / "docker" / "Dockerfile"
CONFORMANCE = RECIPES / "theano" / "conformance.toml"
VENV = ROOT / ".venv"
REQUIREMENTS = ROOT / "requirements.txt"

BUILD = ROOT / "build"
# Recipes name their sources by this directory: ../../build/sources/<file>.
SOURCES = BUILD / "sources"
CHANNEL = BUILD / "channel"
ENVIRONMENTS = BUILD / "envs"
# Locks of stacks with a file of the user's, which are nobody else's.
OWN_LOCKS = BUILD / "locks"
IMAGES = BUILD / "images"
PACKS = BUILD / "packs"
LOGS = BUILD / "logs"
REPORTS = BUILD / "reports"
# The homes of measured processes.
BENCHES = BUILD / "bench"
# Runs of Theano's own tests under way, one directory each.
TEST_RUNS = BUILD / "conformance"
# The homes of workers that run random programs, and what they compiled.
FUZZING = BUILD / "fuzz"


def cache() -> Path:
    """The per-user cache shared by checkouts: $THEANO_FAST_CACHE, else the XDG default."""
    chosen = os.environ.get("THEANO_FAST_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).expanduser() / "theano-fast"


def source_cache() -> Path:
    """Verified source archives, by file name."""
    return cache() / "sources"


def package_cache() -> Path:
    """Built packages, one directory for each input key."""
    return cache() / "packages"


def work() -> Path:
    """Where the engine builds; outside the checkout, so that no package depends on its path."""
    return cache() / "work"


def engine_cache() -> Path:
    """Unpacked packages, as rattler keeps them."""
    return cache() / "rattler"
