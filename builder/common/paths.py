"""Define every path that the builder reads or writes."""

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
# Recipes contain the path of this directory: ../../build/sources/<file>.
SOURCES = BUILD / "sources"
CHANNEL = BUILD / "channel"
ENVIRONMENTS = BUILD / "envs"
# Locks of stacks with programs or with AMD's library. The repository does not contain them.
OWN_LOCKS = BUILD / "locks"
IMAGES = BUILD / "images"
PACKS = BUILD / "packs"
LOGS = BUILD / "logs"
REPORTS = BUILD / "reports"
# Home directories of measured processes.
BENCHES = BUILD / "bench"
# One directory for each run of Theano's own tests that is in progress.
TEST_RUNS = BUILD / "conformance"
# Home directories and compile caches of the workers that run random programs.
FUZZING = BUILD / "fuzz"


def cache() -> Path:
    """Return the per-user cache, shared by checkouts: $THEANO_FAST_CACHE, else the XDG default."""
    chosen = os.environ.get("THEANO_FAST_CACHE")
    if chosen:
        return Path(chosen).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).expanduser() / "theano-fast"


def source_cache() -> Path:
    """Return the directory of verified source archives."""
    return cache() / "sources"


def package_cache() -> Path:
    """Return the directory of built packages, with one directory for each cache key."""
    return cache() / "packages"


def work_directory() -> Path:
    """Return the build directory. It is outside the checkout: no package depends on its path."""
    return cache() / "work"


def engine_cache() -> Path:
    """Return the cache of rattler, which holds unpacked packages."""
    return cache() / "rattler"
