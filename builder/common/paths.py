"""Define the paths of the checkout, of its directory ``build/`` and of the per-user cache."""

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
# Recipes refer to the files of this directory as ../../build/sources/<file>.
SOURCES = BUILD / "sources"
CHANNEL = BUILD / "channel"
ENVIRONMENTS = BUILD / "envs"
# Lock files of stacks with programs or with AMD's library. The repository does not contain them.
OWN_LOCKS = BUILD / "locks"
IMAGES = BUILD / "images"
PACKS = BUILD / "packs"
LOGS = BUILD / "logs"
REPORTS = BUILD / "reports"
# Home directories and caches of the processes that `./invoke bench` measures.
BENCHES = BUILD / "bench"
# One directory for each running `./invoke conformance`.
TEST_RUNS = BUILD / "conformance"
# Home directories and compile caches of the workers that run random programs.
FUZZING = BUILD / "fuzz"


def get_cache() -> Path:
    """Return the per-user cache directory, which all checkouts share.

    This is $THEANO_FAST_CACHE if set, else $XDG_CACHE_HOME/theano-fast, by default
    ~/.cache/theano-fast.
    """
    configured = os.environ.get("THEANO_FAST_CACHE")
    if configured:
        return Path(configured).expanduser().resolve()
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base).expanduser() / "theano-fast"


def get_source_cache() -> Path:
    """Return the directory of verified source archives."""
    return get_cache() / "sources"


def get_package_cache() -> Path:
    """Return the directory of built packages. It contains one directory for each cache key."""
    return get_cache() / "packages"


def get_work_directory() -> Path:
    """Return the directory in which recipes are built.

    It is outside the checkout, so that the checkout's path does not change a package.
    """
    return get_cache() / "work"


def get_engine_cache() -> Path:
    """Return the directory of rattler's cache, which contains unpacked packages."""
    return get_cache() / "rattler"
