"""Placeholders for the names of theano.sandbox.cuda, the old GPU back end of Theano 0.6 to 0.9.

Theano 1.0 does not have this back end. Old programs test whether it has a GPU: the placeholders
report that it has none. Old programs also import types, ops and functions that they do not call on
a CPU: they derive classes from ops, or test the class of a variable. A use that needs the back end
raises OldBackEnd, with a message of one line that names the next step. The transfers to and from
the GPU return their variable unchanged, unless theano.gpuarray uses a device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from unittest import SkipTest

import theano
from theano import gof, gpuarray, tensor

__all__ = [
    "CURAND_RandomStreams",
    "CudaNdarray",
    "CudaNdarrayConstant",
    "CudaNdarraySharedVariable",
    "CudaNdarrayType",
    "CudaNdarrayVariable",
    "CudaNdarray_unpickler",
    "GpuContiguous",
    "GpuFromHost",
    "GpuOp",
    "HostFromGpu",
    "OldBackEnd",
    "active_device_name",
    "active_device_number",
    "as_cuda_array",
    "as_cuda_ndarray_variable",
    "cuda_available",
    "cuda_enabled",
    "cuda_initialization_error_message",
    "cuda_shared_constructor",
    "device_properties",
    "dnn_available",
    "dnn_version",
    "float32_shared_constructor",
    "gpu_contiguous",
    "gpu_from_host",
    "handle_shared_float32",
    "host_from_gpu",
    "mem_info",
    "register_opt",
    "register_specialize_device",
    "set_cuda_disabled",
    "shared_constructor",
    "unuse",
    "use",
]

cuda_available = False
cuda_enabled = False
cuda_initialization_error_message = "Theano 1.0 has no theano.sandbox.cuda back end"

# Maps a name that cannot work to its replacement. Ops need no entry: GpuOp suggests
# theano.gpuarray's op of the same name. Other names without an entry have no replacement.
REPLACEMENTS: Mapping[str, str] = {
    "CURAND_RandomStreams": "theano.sandbox.rng_mrg.MRG_RandomStreams",
    "CudaNdarray": "pygpu.gpuarray.GpuArray, or a NumPy array on the CPU",
    "CudaNdarrayConstant": "theano.tensor.TensorConstant",
    "CudaNdarraySharedVariable": "theano.shared",
    "CudaNdarrayType": "theano.gpuarray.type.GpuArrayType, or theano.tensor.TensorType on the CPU",
    "CudaNdarrayVariable": "theano.tensor.TensorVariable",
    "GpuOp": "theano.gpuarray.basic_ops.GpuKernelBase, or theano.Op on the CPU",
    "as_cuda_array": "theano.tensor.as_tensor_variable",
    "as_cuda_ndarray_variable": "theano.tensor.as_tensor_variable",
    "cuda_shared_constructor": "theano.shared",
    "float32_shared_constructor": "theano.shared",
    "mem_info": "theano.gpuarray.type.get_context(None).free_gmem",
    "shared_constructor": "theano.shared",
}


class OldBackEnd(ImportError, SkipTest):
    """Raised if a program needs a part of the old GPU back end.

    It is an ImportError, which programs catch to use the CPU, and a SkipTest, with which test
    runners skip a test.
    """


def make_error(name: str, advice: str = "") -> OldBackEnd:
    """Return the error for a name of the old back end that cannot work.

    Args:
        name: the name, or a call such as "use('gpu0')".
        advice: the next step. The default names the replacement in REPLACEMENTS.
    """
    if not advice and name in REPLACEMENTS:
        advice = f"write {REPLACEMENTS[name]}"
    ending = f": {advice}" if advice else ". It has no replacement: remove the call."
    return OldBackEnd(
        f"{name} belongs to theano.sandbox.cuda, the old GPU back end, which Theano 1.0 does not"
        f" have{ending}"
    )


def find_name(name: str) -> Any:
    """Return the placeholder for a name of theano.sandbox.cuda. Most placeholders raise an error.

    The modules of theano.sandbox.cuda import this function as their ``__getattr__``.

    Raises:
        OldBackEnd: the name is a constructor of GPU variables, such as fmatrix.
        AttributeError: the old back end had no such name.
    """
    if name in TYPES:
        raise make_error(name, f"write theano.tensor.{name}")
    if name in __all__:
        return globals()[name]
    if name.startswith("Gpu"):
        return make_op_class(name)
    if name.startswith("gpu_"):
        return make_op_class(name)()
    if name.startswith("local_gpu_"):
        return make_placeholder(name)
    raise AttributeError(f"theano.sandbox.cuda, the old GPU back end, has no name {name}")


# The constructors of variables, such as fmatrix.
TYPES = frozenset(
    prefix + name
    for prefix in ("", "f")
    for name in ("col", "matrix", "row", "scalar", "tensor3", "tensor4", "vector")
)


def make_placeholder(name: str) -> Callable[..., Any]:
    """Return a function of this name that can be imported and raises OldBackEnd when called."""

    def raise_error(*arguments: Any, **options: Any) -> Any:
        raise make_error(name)

    raise_error.__name__ = name
    return raise_error


active_device_name = make_placeholder("active_device_name")
active_device_number = make_placeholder("active_device_number")
as_cuda_array = make_placeholder("as_cuda_array")
as_cuda_ndarray_variable = make_placeholder("as_cuda_ndarray_variable")
cuda_shared_constructor = make_placeholder("cuda_shared_constructor")
device_properties = make_placeholder("device_properties")
float32_shared_constructor = make_placeholder("float32_shared_constructor")
mem_info = make_placeholder("mem_info")
shared_constructor = make_placeholder("shared_constructor")


class CudaNdarray:
    """Placeholder for the class of GPU arrays. It serves isinstance and has no instances."""

    __init__ = make_placeholder("CudaNdarray")


class CURAND_RandomStreams:
    """Placeholder for the generator of random numbers on the GPU; it has no instances."""

    __init__ = make_placeholder("CURAND_RandomStreams")


class GpuOp(gof.Op):
    """Placeholder for the base class of the old back end's ops, for subclasses and isinstance."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Accept the arguments of any op."""

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Raise OldBackEnd."""
        name = type(self).__name__
        op = f"theano.gpuarray's {name} with the flag device=cuda, or an op of theano.tensor"
        raise make_error(name, f"write {REPLACEMENTS.get(name, op)}")


@cache
def make_op_class(name: str) -> type[GpuOp]:
    """Make the class of an op; return the same class in each call with the same name."""
    return type(name, (GpuOp,), {})


class GpuFromHost(GpuOp):
    """Placeholder for the class of gpu_from_host, which works."""

    def __call__(self, x: Any, *inputs: Any, **options: Any) -> Any:
        """Transfer a variable to theano.gpuarray's device; return it unchanged if there is none."""
        if not gpuarray.pygpu_activated:
            return tensor.as_tensor_variable(x)
        return gpuarray.basic_ops.as_gpuarray_variable(x, None)


class GpuContiguous(GpuFromHost):
    """Placeholder for the class of gpu_contiguous, which works."""

    def __call__(self, x: Any, *inputs: Any, **options: Any) -> Any:
        """Make a variable contiguous on the device; return it unchanged without a device."""
        x = super().__call__(x)
        return gpuarray.basic_ops.gpu_contiguous(x) if gpuarray.pygpu_activated else x


class HostFromGpu(GpuOp):
    """Placeholder for the class of host_from_gpu, which works."""

    def __call__(self, x: Any, *inputs: Any, **options: Any) -> Any:
        """Transfer a variable to the host's memory."""
        return tensor.as_tensor_variable(x).transfer("cpu")


gpu_contiguous = GpuContiguous()
gpu_from_host = GpuFromHost()
host_from_gpu = HostFromGpu()


class CudaNdarrayType(tensor.TensorType):
    """Placeholder without instances: unpickling an instance of the old class makes a TensorType."""

    __init__ = make_placeholder("CudaNdarrayType")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Change this object into a float32 TensorType with the pickled broadcastable pattern."""
        require_unpickling_on_cpu()
        self.__class__ = tensor.TensorType
        self.__init__("float32", state["broadcastable"], state.get("name"))  # type: ignore[misc]


class CudaNdarrayVariable(tensor.TensorVariable):
    """Placeholder for the class of variables. It serves isinstance and has no instances."""

    __init__ = make_placeholder("CudaNdarrayVariable")


class CudaNdarrayConstant(tensor.TensorConstant):
    """Placeholder for the class of constants. It serves isinstance and has no instances."""

    __init__ = make_placeholder("CudaNdarrayConstant")


class CudaNdarraySharedVariable(tensor.sharedvar.TensorSharedVariable):
    """Placeholder without instances.

    Unpickling an instance of the old class makes a TensorSharedVariable.
    """

    __init__ = make_placeholder("CudaNdarraySharedVariable")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Change this object into a shared variable on the CPU."""
        require_unpickling_on_cpu()
        self.__class__ = tensor.sharedvar.TensorSharedVariable
        self.__dict__.update(state)


def require_unpickling_on_cpu() -> None:
    """Raise OldBackEnd unless the flag experimental.unpickle_gpu_on_cpu is set."""
    if not theano.config.experimental.unpickle_gpu_on_cpu:
        raise OldBackEnd(
            "this pickle has CudaNdarrays, arrays of the old GPU back end, which Theano 1.0 does"
            " not have: load it as NumPy arrays with the flag experimental.unpickle_gpu_on_cpu=True"
        )


def CudaNdarray_unpickler(array: Any) -> Any:
    """Return the NumPy array of a pickled CudaNdarray.

    Raises:
        OldBackEnd: the flag experimental.unpickle_gpu_on_cpu is not set.
    """
    require_unpickling_on_cpu()
    return array


def use(device: str, *arguments: Any, **options: Any) -> None:
    """Raise OldBackEnd; its message has the current name of the device, such as cuda0 for gpu0."""
    current_device = str(device).replace("gpu", "cuda", 1)
    raise make_error(
        f"use({device!r})",
        f"write theano.gpuarray.use({current_device!r}) or set the flag device={current_device};"
        " on a machine without a GPU, remove the line",
    )


def unuse() -> None:
    """Do nothing: no device is in use."""


def set_cuda_disabled() -> None:
    """Do nothing: there is no back end."""


def handle_shared_float32(tf: bool) -> None:
    """Raise OldBackEnd if shared variables of float32 should move to the GPU."""
    if tf:
        raise make_error("handle_shared_float32(True)", "set the flag device=cuda")


def dnn_available() -> bool:
    """Return False: this placeholder does not use cuDNN."""
    return False


dnn_available.msg = cuda_initialization_error_message  # type: ignore[attr-defined]


def dnn_version() -> Any:
    """Raise OldBackEnd."""
    raise make_error("dnn_version()", "write theano.gpuarray.dnn.version()")


def register_opt(*tags: str, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator that registers nothing: no graph has ops of this back end."""
    return lambda optimizer: optimizer


def register_specialize_device(optimizer: Any, *tags: str, **options: Any) -> Any:
    """Return the optimizer unchanged; register nothing.

    If the argument is a tag, return a decorator that does the same.
    """
    return register_opt() if isinstance(optimizer, str) else optimizer
