"""Verify an environment in minimal root file systems of other Debian releases."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from builder.common import paths, processes, progress
from builder.common.errors import CommandFailed, HostToolMissing, UsageError, VerifyFailed
from builder.environment import envs
from builder.image.build_context import PREFIX
from builder.options import Options
from builder.pipeline import Build
from builder.source import debian

# Debian 11 (the oldest release on the mirrors), Debian 13, and the development release.
SUITES = ("bullseye", "trixie", "sid")
# The script that verifies an environment in a root file system, as an unprivileged user. $1 is the
# root file system, $2 is the directory with the environment, and $3 is its mount point.
INSIDE = """
mkdir -p "$1$3" "$1/home/user"
chown 1000:1000 "$1/home/user"
mount --bind "$2" "$1$3"
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
exec chroot --userspec=1000:1000 "$1" \
    /usr/bin/env -i HOME=/home/user PATH=/usr/bin:/bin "$3/bin/theano-fast" verify
"""


def verify_on_hosts(stack: str, suites: Sequence[str], options: Options) -> None:
    """Verify a stack's environment in minimal root file systems of other Debian releases.

    Args:
        stack: the name of a stack; it is built if needed.
        suites: the releases, by their codenames in SUITES.

    Raises:
        UsageError: a release is not in SUITES.
        HostToolMissing: this host cannot create the root file systems.
        VerifyFailed: a check failed on a release. The other releases are verified too.
    """
    if unknown := sorted(set(suites) - set(SUITES)):
        raise UsageError(f"unknown release {unknown[0]!r}", f"choose among: {', '.join(SUITES)}")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise HostToolMissing(
            "./invoke hosts needs root and the command unshare",
            "run the command as root, on Debian",
        )
    lock = Build.create(stack, options).lock()
    rows, failed = [], []
    with tempfile.TemporaryDirectory(prefix="theano-fast-hosts-") as directory:
        prefix = Path(directory, "environment")
        prefix.mkdir()
        envs.install_packages(lock.files, prefix, f"the environment {lock.stack}", PREFIX)
        started = time.monotonic()
        for number, suite in enumerate(suites):
            root = Path(directory, suite)
            time_left = progress.format_time_left(number, len(suites), started)
            progress.say(f"{lock.stack} on {suite}{time_left}")
            try:
                debian.bootstrap(root, suite=suite, variant="essential")
            except (CommandFailed, LookupError) as error:
                raise HostToolMissing(
                    f"{suite} cannot be installed: {error}",
                    "install mmdebstrap, and configure apt with a Debian mirror",
                ) from error
            glibc = processes.run(["chroot", root, "getconf", "GNU_LIBC_VERSION"]).output.strip()
            log = paths.LOGS / f"{lock.stack}-{suite}-verify.log"
            namespace = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
            call: list[str | Path] = [*namespace, "sh", "-ec", INSIDE, "sh", root, prefix, PREFIX]
            status = processes.run_logged(call, env=processes.clean_environ(), log=log)
            last_line = (log.read_text("utf-8", "replace").strip().splitlines() or ["nothing"])[-1]
            rows.append([suite, glibc, last_line])
            if status != 0:
                failed.append(f"{suite}: {progress.display_path(log)}")
    progress.print_table(["host", "C library", f"verification of {lock.stack}"], rows)
    if failed:
        raise VerifyFailed(
            f"verification of {lock.stack} failed on {len(failed)} of {len(rows)} systems",
            "; ".join(failed),
        )
