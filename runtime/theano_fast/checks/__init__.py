"""The checks of ``theano-fast verify``, in the order they run.

Each is a module of this package with one function, ``run(Options) -> Result``, and runs in a
process of its own: what is loaded there is the check's own doing, and a crash is its failure.
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """A check: its module's name, what it proves, and how its process is set up.

    flags are THEANO_FLAGS it needs before Theano is imported; limit is in seconds of wall time
    and generous: it ends a hang, it is no gate.
    """

    name: str
    proves: str
    flags: str = ""
    limit: int = 1200
    full_limit: int = 1200


CHECKS = (
    Check("packages", "the packages that Theano leans on are the stack's own, not pip's"),
    Check("compiler", "a C++ module compiles and loads"),
    Check(
        "blas",
        "Gemm, Gemv, Dot22 and Ger run as C in the stack's BLAS; one BLAS, one OpenMP",
        flags="openmp=True,openmp_elemwise_minsize=0",
    ),
    Check("numerics", "BLAS results are right: all orders, strides, sizes, thread counts"),
    Check("check_blas", "Theano's gemm is as fast as numpy's"),
    Check("libm", "compiled loops call amdlibm, and its functions are right to 4 ulp"),
    Check(
        "scan", "a training step of a Neural Turing Machine runs in C and is right", full_limit=7200
    ),
    Check(
        "device",
        "an NVIDIA device computes what the CPU computes",
        # Without a cache of libgpuarray's own, memory goes back to the driver.
        flags="gpuarray.preallocate=-1",
        limit=3600,
        full_limit=3600,
    ),
    Check("hermetic", "no library of the host but glibc's is loaded", flags="openmp=True"),
    Check("threads", "thread counts default to what the process may use"),
)
