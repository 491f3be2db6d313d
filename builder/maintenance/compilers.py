"""Install the compilers with which packages are built, for checks and tests."""

from __future__ import annotations

from pathlib import Path

from builder.common import paths
from builder.environment import envs
from builder.options import Options
from builder.package import package_cache
from builder.pipeline import Build


def install() -> Path:
    """Install the compilers and `patch`; return the directory of their programs."""
    plan = Build.of_stack("openblas", Options()).plan
    built = [
        package for key in plan.keys.values() for package in package_cache.find_cached(key) or ()
    ]
    prefix = paths.BUILD / "compilers"
    envs.install_specs(built, ["gcc_linux-64", "gxx_linux-64", "patch"], prefix)
    return prefix / "bin"
