"""An environment on hosts of other releases: root file systems of Debian's, without a compiler."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from builder import pipeline
from builder.common import paths, processes, progress
from builder.common.errors import CommandFailed, HostToolMissing, UsageError, VerifyFailed
from builder.environment import envs
from builder.image.build_context import PREFIX
from builder.pipeline import Options
from builder.source import debian

# The oldest that mirrors have, the one after Debian 12's, and what is to come.
SUITES = ("bullseye", "trixie", "sid")
# In a root file system, as a user without rights, with nothing of this host's but its kernel.
INSIDE = """
mkdir -p "$1$3" "$1/home/user"
chown 1000:1000 "$1/home/user"
mount --bind "$2" "$1$3"
mount -t proc proc "$1/proc"
mount --bind /dev "$1/dev"
exec chroot --userspec=1000:1000 "$1" \
    /usr/bin/env -i HOME=/home/user PATH=/usr/bin:/bin "$3/bin/theano-fast" verify
"""


def prove(stack: str, suites: Sequence[str], options: Options) -> None:
    """Let a stack's environment prove itself on bare hosts of other releases.

    Args:
        suites: their codenames, of SUITES.

    Raises:
        UsageError: another release.
        HostToolMissing: this host cannot make such hosts.
        VerifyFailed: a check failed on one of them; on the others it is tried nevertheless.
    """
    if unknown := sorted(set(suites) - set(SUITES)):
        raise UsageError(f"unknown release {unknown[0]!r}", f"choose from: {', '.join(SUITES)}")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        raise HostToolMissing("other hosts take root, and unshare", "run it as root, on Debian")
    _, lock = pipeline.lock(stack, options)
    rows, failed = [], []
    with tempfile.TemporaryDirectory(prefix="theano-fast-hosts-") as directory:
        prefix = Path(directory, "environment")
        prefix.mkdir()
        envs.install(lock.files, prefix, f"the environment {lock.stack}", PREFIX)
        started = time.monotonic()
        for number, suite in enumerate(suites):
            root = Path(directory, suite)
            left = progress.left(number, len(suites), started)
            progress.say(f"{lock.stack} on {suite}{left}")
            try:
                debian.bootstrap(root, suite=suite, variant="essential")
            except (CommandFailed, LookupError) as error:
                raise HostToolMissing(
                    f"{suite} cannot be had: {error}", "it takes mmdebstrap, and a Debian mirror"
                ) from error
            glibc = processes.run(["chroot", root, "getconf", "GNU_LIBC_VERSION"]).output.strip()
            log = paths.LOGS / f"{lock.stack}-{suite}-verify.log"
            namespace = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
            call: list[str | Path] = [*namespace, "sh", "-ec", INSIDE, "sh", root, prefix, PREFIX]
            status = processes.record(call, env=processes.clean_environ(), log=log)
            told = (log.read_text("utf-8", "replace").strip().splitlines() or ["nothing"])[-1]
            rows.append([suite, glibc, told])
            if status != 0:
                failed.append(f"{suite}: {progress.place(log)}")
    progress.table(["host", "C library", f"verification of {lock.stack}"], rows)
    if failed:
        raise VerifyFailed(
            f"stack {lock.stack} does not prove itself on {len(failed)} of {len(rows)} hosts",
            "; ".join(failed),
        )
