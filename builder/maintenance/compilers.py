"""Install the compilers of the recipes for checks and tests."""

from __future__ import annotations

from pathlib import Path

from builder.common import paths
from builder.environment import envs
from builder.options import Options
from builder.package import package_cache
from builder.pipeline import Build


def install() -> Path:
    """Install the compilers and `patch` into ``build/compilers``; return their ``bin`` directory.

    The packages come from the package cache.

    Raises:
        CommandFailed: the package cache lacks a package, because the openblas stack is not built.
    """
    plan = Build.create("openblas", Options()).plan
    cached_packages = [
        package for key in plan.keys.values() for package in package_cache.find_cached(key) or ()
    ]
    prefix = paths.BUILD / "compilers"
    envs.install_specs(cached_packages, ["gcc_linux-64", "gxx_linux-64", "patch"], prefix)
    return prefix / "bin"
