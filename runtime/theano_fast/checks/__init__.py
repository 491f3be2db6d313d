"""List the checks of ``theano-fast verify``, in the order in which they run.

Each check is a module of this package with a function ``run(Options) -> Result``. Each check runs
in its own process. So it sees only the libraries that it loads itself, and if it crashes, the other
checks still run.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A check: the name of its module, the property that it proves, and its process's settings.

    ``flags`` are the check's own THEANO_FLAGS, which Theano reads when it is imported. ``limit``
    is the timeout in seconds, ``full_limit`` with --full. A timeout only ends a process that hangs;
    it does not test speed.
    """

    name: str
    proves: str
    flags: str = ""
    limit: int = 1200
    full_limit: int = 1200


CHECKS = (
    Check("packages", "the packages that Theano needs are the stack's, not replaced by pip"),
    Check("compiler", "a C++ module compiles and loads"),
    # Disable shipped modules, so that g++ compiles the loops on this machine.
    Check("loops", "g++ vectorizes loops for this processor", flags="cmodule.shipped="),
    Check(
        "blas",
        "Gemm, Gemv, Dot22 and Ger run in C; the process loads one BLAS and one OpenMP library",
        flags="openmp=True,openmp_elemwise_minsize=0",
    ),
    Check(
        "numerics",
        "BLAS results are correct for all orders, strides, sizes and thread counts",
        limit=3600,
        full_limit=3600,
    ),
    Check("check_blas", "Theano's gemm takes at most 1.25 times as long as NumPy's dot"),
    Check(
        "libm",
        "compiled loops call amdlibm; its errors are at most 4 units in the last place (ulp)",
    ),
    Check(
        "scan",
        "a training step of a Neural Turing Machine runs in C and is correct",
        full_limit=7200,
    ),
    Check(
        "device",
        "an NVIDIA device computes the same results as the CPU",
        # Disable libgpuarray's memory pool. Freed memory then returns to the driver, so that the
        # check can measure memory leaks.
        flags="gpuarray.preallocate=-1",
        limit=3600,
        full_limit=3600,
    ),
    Check("hermetic", "no library of the host except glibc is loaded", flags="openmp=True"),
    Check("threads", "BLAS and OpenMP start one thread per CPU that the process may use"),
)
