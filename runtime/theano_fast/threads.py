"""Set the default number of BLAS and OpenMP threads to the CPUs that this process may use.

``theano_fast_threads.pth`` calls :func:`apply` and :func:`limit_spinning` when the interpreter
starts, before any library reads its environment. Products of small matrices are typical of a scan.
With more threads than cores, they are many times slower. With one thread, the other cores are idle.

Child processes inherit the variables, but may be bound to other CPUs. Therefore
``THEANO_FAST_THREADS`` records the value that this module sets. If a child's variables still hold
this value, the child computes them again; any other value is the user's and stays.
"""

import os

# Do not import typing and pathlib: each start of the interpreter imports this module, and these two
# imports take ten times as long as the others. Type checkers treat this name like
# typing.TYPE_CHECKING.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, MutableMapping

VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
# If the user sets one of these variables, do not set VARIABLES. OpenBLAS also reads
# GOTO_NUM_THREADS, but OPENBLAS_NUM_THREADS would override it.
USER_VARIABLES = (*VARIABLES, "GOTO_NUM_THREADS")
MARK = "THEANO_FAST_THREADS"
# The number of times that a waiting thread of GNU OpenMP checks for work before it sleeps. With the
# default of 300,000, waiting threads take a core from the working thread if another program uses a
# core. Measured with MKL, 64 x 64 products on two cores: if both cores are idle, 41 GFLOP/s with
# either number; if one core is busy, 0.1 GFLOP/s with the default and 11 GFLOP/s with this number.
SPINS = "1000"


def apply(environ: "MutableMapping[str, str]" = os.environ) -> int | None:
    """Set :data:`VARIABLES` to :func:`count_available`, unless the user set the number of threads.

    Returns:
        the number of threads; None if the user set one of :data:`USER_VARIABLES`.
    """
    mark = environ.pop(MARK, None)
    for name in VARIABLES:
        if mark is not None and environ.get(name) == mark:
            del environ[name]
    if any(environ.get(name) for name in USER_VARIABLES):
        return None
    count = count_available(environ)
    environ.update(dict.fromkeys((*VARIABLES, MARK), str(count)))
    return count


def limit_spinning(environ: "MutableMapping[str, str]" = os.environ) -> None:
    """Set ``GOMP_SPINCOUNT`` to :data:`SPINS` unless the user chose how threads wait."""
    if not environ.get("OMP_WAIT_POLICY"):
        environ.setdefault("GOMP_SPINCOUNT", SPINS)


def count_available(environ: "MutableMapping[str, str]" = os.environ) -> int:
    """Return the number of CPUs that this process may use, at least 1.

    This is the smallest of three numbers: the CPUs of its affinity, the CPU quota of its cgroups
    rounded up, and the CPUs that Slurm grants to the task (``SLURM_CPUS_PER_TASK``).
    """
    limits = [len(os.sched_getaffinity(0))]
    quota = read_cgroup_quota()
    if quota is not None:
        limits.append(-int(-quota // 1))
    granted = environ.get("SLURM_CPUS_PER_TASK", "")
    if granted.isdecimal():
        limits.append(int(granted))
    return max(1, min(limits))


def read_cgroup_quota(root: str = "") -> float | None:
    """Return the CPU quota of this process's control groups, in CPUs; None without a limit.

    The quotas of a group's ancestors limit the group too, so return the smallest quota up to the
    root. In a container, the root of the mount is the container's own group. Kernel documentation:
    ``cpu.max`` in admin-guide/cgroup-v2, ``cpu.cfs_quota_us`` in scheduler/sched-bwc (v1).

    Args:
        root: the directory that contains proc and sys; "" is the root directory.
    """
    quotas: list[float] = []
    for line in _read_file(f"{root}/proc/self/cgroup").splitlines():
        controllers, _, own = line.partition(":")[2].partition(":")
        for group in _list_ancestors(own):
            if not controllers:
                quotas.extend(_read_quota_v2(f"{root}/sys/fs/cgroup{group}"))
            elif "cpu" in controllers.split(","):
                quotas.extend(_read_quota_v1(f"{root}/sys/fs/cgroup/cpu{group}"))
    return min(quotas, default=None)


def _list_ancestors(group: str) -> "Iterator[str]":
    yield group
    while group:
        group = group.rpartition("/")[0]
        yield group


def _read_quota_v2(group: str) -> "Iterator[float]":
    quota, _, period = _read_file(f"{group}/cpu.max").partition(" ")
    if quota.isdecimal() and period.isdecimal():
        yield int(quota) / int(period)


def _read_quota_v1(group: str) -> "Iterator[float]":
    # An unlimited group has a quota of -1, for which isdecimal is False.
    quota, period = (
        _read_file(f"{group}/cpu.cfs_quota_us"),
        _read_file(f"{group}/cpu.cfs_period_us"),
    )
    if quota.isdecimal() and period.isdecimal():
        yield int(quota) / int(period)


def _read_file(path: str) -> str:
    try:
        with open(path, errors="replace") as file:  # noqa: PTH123 - without pathlib, see above
            return file.read().strip()
    except OSError:
        return ""
