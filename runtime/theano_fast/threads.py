"""Default thread counts for the BLAS and OpenMP: what this process may use, not what the node has.

``theano_fast_threads.pth`` calls :func:`apply` and :func:`limit_spinning` when the interpreter
starts, before any library reads its environment. Too many threads on too few cores make small
matrices, the stuff of a scan, many times slower; one thread on many cores wastes the node.

The counts travel to child processes in the environment, where they may be wrong: a child can be
bound to other CPUs. ``THEANO_FAST_THREADS`` therefore records what was set here; a child whose
variables still hold that value computes them anew, and any other value is the user's and stays.
"""

import os

# Every start of the interpreter pays for this module's imports: typing and pathlib would take
# ten times as long as all the rest. Type checkers take this name for typing's.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# OpenBLAS reads GOTO_NUM_THREADS too, after its own variable, which must not hide it.
USER_VARIABLES = (*VARIABLES, "GOTO_NUM_THREADS")
MARK = "THEANO_FAST_THREADS"
# How often a waiting thread of GNU OpenMP looks for work before it sleeps. Its own 300,000 times
# take a core from the thread that it waits for, where there is one less than it counted on:
# MKL's products of 64 x 64 matrices, 41 GFLOP/s on two idle cores, fall to 0.1 when one of them is
# busy, and to 11 with this number, which changes nothing on idle ones.
SPINS = "1000"


def apply(environ: "MutableMapping[str, str]" = os.environ) -> int | None:
    """Set :data:`VARIABLES` to :func:`available` unless the user set one of them.

    Returns the number of threads set, None where the user's choice was left alone.
    """
    mark = environ.pop(MARK, None)
    for name in VARIABLES:
        if mark is not None and environ.get(name) == mark:
            del environ[name]
    if any(environ.get(name) for name in USER_VARIABLES):
        return None
    count = available(environ)
    environ.update(dict.fromkeys((*VARIABLES, MARK), str(count)))
    return count


def limit_spinning(environ: "MutableMapping[str, str]" = os.environ) -> None:
    """Set ``GOMP_SPINCOUNT`` to :data:`SPINS` unless the user chose how threads wait."""
    if not environ.get("OMP_WAIT_POLICY"):
        environ.setdefault("GOMP_SPINCOUNT", SPINS)


def available(environ: "MutableMapping[str, str]" = os.environ) -> int:
    """Return how many CPUs this process may keep busy.

    The least of its CPU affinity, its cgroups' CPU quota rounded up, and what Slurm granted to
    the task (``SLURM_CPUS_PER_TASK``).
    """
    limits = [len(os.sched_getaffinity(0))]
    quota = cgroup_quota()
    if quota is not None:
        limits.append(-int(-quota // 1))
    granted = environ.get("SLURM_CPUS_PER_TASK", "")
    if granted.isdecimal():
        limits.append(int(granted))
    return max(1, min(limits))


def cgroup_quota(root: str = "") -> float | None:
    """Return the CPUs that this process's control groups allow it, None where they set no limit.

    A group is bound by its ancestors, so that the least quota on the way up counts; this also
    covers containers, which see their own group at the root of the mount. Kernel documentation:
    ``cpu.max`` in admin-guide/cgroup-v2, ``cpu.cfs_quota_us`` in scheduler/sched-bwc (v1).
    """
    quotas: list[float] = []
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        controllers, _, own = line.partition(":")[2].partition(":")
        for group in _with_ancestors(own):
            if not controllers:
                quotas.extend(_quota_v2(f"{root}/sys/fs/cgroup{group}"))
            elif "cpu" in controllers.split(","):
                quotas.extend(_quota_v1(f"{root}/sys/fs/cgroup/cpu{group}"))
    return min(quotas, default=None)


def _with_ancestors(group: str) -> "Iterator[str]":
    yield group
    while group:
        group = group.rpartition("/")[0]
        yield group


def _quota_v2(group: str) -> "Iterator[float]":
    quota, _, period = _read(f"{group}/cpu.max").partition(" ")
    if quota.isdecimal() and period.isdecimal():
        yield int(quota) / int(period)


def _quota_v1(group: str) -> "Iterator[float]":
    # An unlimited group has a quota of -1, which is no decimal.
    quota, period = _read(f"{group}/cpu.cfs_quota_us"), _read(f"{group}/cpu.cfs_period_us")
    if quota.isdecimal() and period.isdecimal():
        yield int(quota) / int(period)


def _read(path: str) -> str:
    try:
        with open(path, errors="replace") as file:  # noqa: PTH123 - without pathlib, see above
            return file.read().strip()
    except OSError:
        return ""
