"""Provide the names of theano.sandbox.cuda, of Theano 0.6 to 0.9, as on a machine without a GPU.

Programs query it for a GPU. They also import types, ops and functions that they do not call on a
CPU: they derive a class from an op, or test the class of a variable. Theano 1.0 does not have this
back end. Code that needs it raises OldBackEnd, with one line that names the replacement. A transfer
returns its variable unchanged, unless a device of theano.gpuarray is in use.
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

# The replacement of each name that cannot work. An op has the same name in theano.gpuarray.
INSTEAD: Mapping[str, str] = {
    "CURAND_RandomStreams": "theano.sandbox.rng_mrg.MRG_RandomStreams",
    "CudaNdarray": "pygpu.gpuarray.GpuArray, or a NumPy array on the CPU",
    "CudaNdarrayConstant": "theano.tensor.TensorConstant",
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
    """Raised for a missing part of the old GPU back end; programs catch it as an ImportError."""


def refuse(name: str, instead: str = "") -> OldBackEnd:
    """Return the error for a name of the old back end that cannot work."""
    if not instead:
        instead = f"theano.gpuarray's {name} with the flag device=cuda, or an op of theano.tensor"
    return OldBackEnd(
        f"{name} belongs to theano.sandbox.cuda, the old GPU back end, which Theano 1.0 does not"
        f" have: write {instead}"
    )


def find_name(name: str) -> Any:
    """Return an op, a function or a rewrite of the old back end, which raises an error when called.

    It is the ``__getattr__`` of the modules of theano.sandbox.cuda.

    Raises:
        OldBackEnd: the name is the constructor of a variable on the GPU.
        AttributeError: the old back end had no such name.
    """
    if name in TYPES:
        raise refuse(name, f"theano.tensor.{name}")
    if name in __all__:
        return globals()[name]
    if name.startswith("Gpu"):
        return op_class(name)
    if name.startswith("gpu_"):
        return op_class(name)()
    if name.startswith("local_gpu_"):
        return refusing(name)
    raise AttributeError(f"theano.sandbox.cuda, the old GPU back end, has no name {name}")


TYPES = frozenset(
    prefix + name
    for prefix in ("", "f")
    for name in ("col", "matrix", "row", "scalar", "tensor3", "tensor4", "vector")
)


def refusing(name: str) -> Callable[..., Any]:
    """Return a function that raises OldBackEnd if called; importing its name raises nothing."""

    def refuse_call(*arguments: Any, **options: Any) -> Any:
        raise refuse(name, INSTEAD.get(name, ""))

    refuse_call.__name__ = name
    return refuse_call


active_device_name = refusing("active_device_name")
active_device_number = refusing("active_device_number")
as_cuda_array = refusing("as_cuda_array")
as_cuda_ndarray_variable = refusing("as_cuda_ndarray_variable")
cuda_shared_constructor = refusing("cuda_shared_constructor")
device_properties = refusing("device_properties")
float32_shared_constructor = refusing("float32_shared_constructor")
mem_info = refusing("mem_info")
shared_constructor = refusing("shared_constructor")


class CudaNdarray:
    """A class without instances, for isinstance."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise OldBackEnd."""
        raise refuse("CudaNdarray", INSTEAD["CudaNdarray"])


class CURAND_RandomStreams:
    """A class without instances. It drew random numbers on the GPU."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise OldBackEnd."""
        raise refuse("CURAND_RandomStreams", INSTEAD["CURAND_RandomStreams"])


class GpuOp(gof.Op):
    """Base class of the old back end's ops, for derived classes and isinstance."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Accept the arguments of any op."""

    def __call__(self, *inputs: Any, **options: Any) -> Any:
        """Raise OldBackEnd."""
        name = type(self).__name__
        raise refuse(name, INSTEAD.get(name, ""))


@cache
def op_class(name: str) -> type[GpuOp]:
    """Return the class of an op; equal names have the same class."""
    return type(name, (GpuOp,), {})


class GpuFromHost(GpuOp):
    """The class of gpu_from_host."""

    def __call__(self, x: Any, *inputs: Any, **options: Any) -> Any:
        """Transfer a variable to theano.gpuarray's device; return it unchanged if none is used."""
        if not gpuarray.pygpu_activated:
            return tensor.as_tensor_variable(x)
        return gpuarray.basic_ops.as_gpuarray_variable(x, None)


class GpuContiguous(GpuFromHost):
    """The class of gpu_contiguous."""

    def __call__(self, x: Any, *inputs: Any, **options: Any) -> Any:
        """Make a variable contiguous on the device; return it unchanged if none is used."""
        x = super().__call__(x)
        return gpuarray.basic_ops.gpu_contiguous(x) if gpuarray.pygpu_activated else x


class HostFromGpu(GpuOp):
    """The class of host_from_gpu."""

    def __call__(self, x: Any, *inputs: Any, **options: Any) -> Any:
        """Return a variable in the host's memory."""
        return tensor.as_tensor_variable(x).transfer("cpu")


gpu_contiguous = GpuContiguous()
gpu_from_host = GpuFromHost()
host_from_gpu = HostFromGpu()


class CudaNdarrayType(tensor.TensorType):
    """A class without instances. Unpickling an instance makes a TensorType."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise OldBackEnd."""
        raise refuse("CudaNdarrayType", INSTEAD["CudaNdarrayType"])

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Change this object into a TensorType with the pickle's broadcastable dimensions."""
        require_reading_on_cpu()
        self.__class__ = tensor.TensorType
        self.__init__("float32", state["broadcastable"], state.get("name"))  # type: ignore[misc]


class CudaNdarrayVariable(tensor.TensorVariable):
    """A class without instances."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise OldBackEnd."""
        raise refuse("CudaNdarrayVariable", INSTEAD["CudaNdarrayVariable"])


class CudaNdarrayConstant(tensor.TensorConstant):
    """A class without instances."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise OldBackEnd."""
        raise refuse("CudaNdarrayConstant", INSTEAD["CudaNdarrayConstant"])


class CudaNdarraySharedVariable(tensor.sharedvar.TensorSharedVariable):
    """A class without instances. Unpickling an instance makes a TensorSharedVariable."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        """Raise OldBackEnd."""
        raise refuse("CudaNdarraySharedVariable", "theano.shared")

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Change this object into a shared variable of the CPU."""
        require_reading_on_cpu()
        self.__class__ = tensor.sharedvar.TensorSharedVariable
        self.__dict__.update(state)


def require_reading_on_cpu() -> None:
    """Raise OldBackEnd unless the flag experimental.unpickle_gpu_on_cpu is set."""
    if not theano.config.experimental.unpickle_gpu_on_cpu:
        raise OldBackEnd(
            "this pickle has CudaNdarrays, arrays of the old GPU back end, which Theano 1.0 does"
            " not have: load it as NumPy arrays with the flag experimental.unpickle_gpu_on_cpu=True"
        )


def CudaNdarray_unpickler(array: Any) -> Any:
    """Return the NumPy array of a pickled CudaNdarray; raise OldBackEnd without the flag."""
    require_reading_on_cpu()
    return array


def use(device: str, *arguments: Any, **options: Any) -> None:
    """Raise OldBackEnd, which names today's device."""
    now = str(device).replace("gpu", "cuda", 1)
    raise refuse(
        f"use({device!r})",
        f"theano.gpuarray.use({now!r}) or set the flag device={now};"
        " on a machine without a GPU, remove the line",
    )


def unuse() -> None:
    """Do nothing: no device is in use."""


def set_cuda_disabled() -> None:
    """Do nothing: there is no back end."""


def handle_shared_float32(tf: bool) -> None:
    """Raise OldBackEnd if shared variables of float32 should move to the GPU."""
    if tf:
        raise refuse("handle_shared_float32(True)", "the flag device=cuda")


def dnn_available() -> bool:
    """Return False: cuDNN is not used by this back end."""
    return False


dnn_available.msg = cuda_initialization_error_message  # type: ignore[attr-defined]


def dnn_version() -> Any:
    """Raise OldBackEnd."""
    raise refuse("dnn_version()", "theano.gpuarray.dnn.version()")


def register_opt(*tags: str, **options: Any) -> Callable[[Any], Any]:
    """Return a decorator that registers nothing: no graph has ops of this back end."""
    return lambda optimizer: optimizer


def register_specialize_device(optimizer: Any, *tags: str, **options: Any) -> Any:
    """Return the optimizer, or a decorator if the argument is a tag; register nothing."""
    return register_opt() if isinstance(optimizer, str) else optimizer
