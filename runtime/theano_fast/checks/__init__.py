"""List the checks of ``theano-fast verify``, in the order in which they run.

Each check is a module of this package with a function ``run(Options) -> Result``. It runs in its
own process, so that it sees only the libraries that it loads, and a crash is its failure.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A check: its module, the property that it proves, and the settings of its process.

    ``flags`` are THEANO_FLAGS that the import of Theano needs. ``limit`` is in seconds of wall
    time; it ends a process that hangs, and is no test of speed.
    """

    name: str
    proves: str
    flags: str = ""
    limit: int = 1200
    full_limit: int = 1200


CHECKS = (
    Check("packages", "the packages that Theano needs are the stack's, not replaced by pip"),
    Check("compiler", "a C++ module compiles and loads"),
    # Shipped modules were compiled on another machine.
    Check("loops", "g++ vectorizes loops for this processor", flags="cmodule.shipped="),
    Check(
        "blas",
        "Gemm, Gemv, Dot22 and Ger run in C with the stack's BLAS; one BLAS, one OpenMP",
        flags="openmp=True,openmp_elemwise_minsize=0",
    ),
    Check(
        "numerics",
        "BLAS results are right for all orders, strides, sizes and thread counts",
        limit=3600,
        full_limit=3600,
    ),
    Check("check_blas", "Theano's gemm is as fast as numpy's"),
    Check("libm", "compiled loops call amdlibm, and its functions are right to 4 ulp"),
    Check(
        "scan", "a training step of a Neural Turing Machine runs in C and is right", full_limit=7200
    ),
    Check(
        "device",
        "an NVIDIA device computes the same results as the CPU",
        # Without libgpuarray's memory pool, freed memory returns to the driver.
        flags="gpuarray.preallocate=-1",
        limit=3600,
        full_limit=3600,
    ),
    Check("hermetic", "no library of the host except glibc is loaded", flags="openmp=True"),
    Check("threads", "the default numbers of threads are the CPUs that the process may use"),
)
