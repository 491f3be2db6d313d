"""Write theanorc files: presets for this machine, and old files translated to current flags.

Flags are named as in THEANO_FLAGS: ``floatX``, ``dnn.conv.algo_fwd``.
"""

import configparser
import ctypes
import io
import re
from collections.abc import Mapping
from pathlib import Path

# g++ flags for faster loops. They violate IEEE 754: loops assume no NaN and no infinity, and change
# the order of sums.
FAST_CXXFLAGS = "-O3 -ffast-math -ftree-loop-distribution -funroll-loops -ftracer"
PRESETS = ("fastest", "development", "multi-gpu")

# Maps a flag from before Theano 1.0 to the current flags with the same meaning, or to () if no
# current flag has this meaning.
RENAMED: Mapping[str, tuple[str, ...]] = {
    "cublas.lib": (),
    "dnn.conv.algo_bwd": ("dnn.conv.algo_bwd_filter", "dnn.conv.algo_bwd_data"),
    "dnn.conv.workmem": ("dnn.conv.algo_fwd",),
    "dnn.conv.workmem_bwd": ("dnn.conv.algo_bwd_filter", "dnn.conv.algo_bwd_data"),
    "lib.cnmem": ("gpuarray.preallocate",),
    "pycuda.init": (),
}
# Sections of a theanorc that have no meaning now. nvcc compiled the kernels of the old GPU back
# end; NVRTC compiles the kernels of libgpuarray.
GONE_SECTIONS = ("nvcc.",)
OLD_DEVICE = re.compile(r"\bgpu(\d*)\b")


class RcError(Exception):
    """A theanorc cannot be read, or a preset does not fit this machine."""


def count_devices() -> int:
    """Return the number of devices that NVIDIA's driver reports; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def make_preset(name: str, gpus: int) -> dict[str, str]:
    """Return the flags of a preset.

    Args:
        name: one of PRESETS.
        gpus: the number of GPUs of the machine.

    Raises:
        RcError: the preset needs more GPUs.
    """
    if name == "development":
        return {"device": "cpu", "mode": "FAST_COMPILE"}
    flags = {"floatX": "float32", "mode": "FAST_RUN", "gcc.cxxflags": FAST_CXXFLAGS}
    if name == "multi-gpu":
        if gpus < 2:
            raise RcError(f"multi-gpu needs at least two devices, and Theano can use {gpus} here")
        # If each device chose its fastest algorithm, devices would compute different numbers.
        names = ("dnn.conv.algo_bwd_filter", "dnn.conv.algo_bwd_data")
        contexts = ";".join(f"dev{i}->cuda{i}" for i in range(gpus))
        shared = {"device": "cpu", "contexts": contexts}
        return flags | shared | dict.fromkeys(names, "deterministic")
    if not gpus:
        return {**flags, "device": "cpu"}
    # Time cuDNN's algorithms once. Allocate 95 % of the memory once; cuDNN may need the other 5 %.
    return {
        **flags,
        "device": "cuda",
        "dnn.conv.algo_fwd": "time_once",
        "dnn.conv.algo_bwd_filter": "time_once",
        "dnn.conv.algo_bwd_data": "time_once",
        "gpuarray.preallocate": "0.95",
    }


def translate(flags: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Translate flags to Theano 1.0.5; return the flags, and a message for each changed flag."""
    translated: dict[str, str] = {}
    messages = []
    for flag, value in flags.items():
        if flag in ("device", "init_gpu_device", "contexts"):
            new = {flag: OLD_DEVICE.sub(r"cuda\1", value)}
        elif flag.startswith(GONE_SECTIONS):
            new = {}
        else:
            new = dict.fromkeys(RENAMED.get(flag, (flag,)), value)
        translated |= new
        if new != {flag: value}:
            messages.append(
                f"{flag}={value} is now " + ", ".join(f"{name}={new[name]}" for name in new)
                if new
                else f"{flag}={value} was removed: Theano 1.0.5 has no such flag"
            )
    return translated, tuple(messages)


def parse(text: str) -> dict[str, str]:
    """Return the flags in the text of a theanorc; raises RcError."""
    parser = _make_parser()
    try:
        parser.read_string(text)
    except configparser.Error as error:
        raise RcError(str(error)) from error
    return {
        option if section == "global" else f"{section}.{option}": value
        for section in parser.sections()
        for option, value in parser.items(section)
    }


def read(file: Path) -> dict[str, str]:
    """Return the flags in a theanorc file; raises RcError."""
    try:
        return parse(file.read_text())
    except OSError as error:
        raise RcError(f"{file} cannot be read: {error.strerror}") from error


def render(flags: Mapping[str, str]) -> str:
    """Return flags as the text of a theanorc."""
    parser = _make_parser()
    for flag, value in sorted(flags.items(), key=lambda item: ("." in item[0], item)):
        section, _, option = flag.rpartition(".")
        if not parser.has_section(section or "global"):
            parser.add_section(section or "global")
        parser.set(section or "global", option, value)
    text = io.StringIO()
    parser.write(text)
    return text.getvalue().rstrip() + "\n"


def _make_parser() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    # Keep capitals, as in floatX.
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    return parser
