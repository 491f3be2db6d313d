"""Configuration files for Theano: presets for this machine, and old files in today's flags.

A flag is called as in THEANO_FLAGS: ``floatX``, ``dnn.conv.algo_fwd``.
"""

import configparser
import ctypes
import io
import re
from collections.abc import Mapping
from pathlib import Path

# What compiles faster loops at the price of IEEE's rules: no NaN, no infinity, any order of sums.
FAST_CXXFLAGS = "-O3 -ffast-math -ftree-loop-distribution -funroll-loops -ftracer"
PRESETS = ("fastest", "development", "multi-gpu")

# Flags of before Theano 1.0, and those of the same meaning now; none for what is gone.
RENAMED: Mapping[str, tuple[str, ...]] = {
    "cublas.lib": (),
    "dnn.conv.algo_bwd": ("dnn.conv.algo_bwd_filter", "dnn.conv.algo_bwd_data"),
    "dnn.conv.workmem": ("dnn.conv.algo_fwd",),
    "dnn.conv.workmem_bwd": ("dnn.conv.algo_bwd_filter", "dnn.conv.algo_bwd_data"),
    "lib.cnmem": ("gpuarray.preallocate",),
    "pycuda.init": (),
}
# nvcc compiled the kernels of the old back end; libgpuarray's are compiled by NVRTC.
GONE_SECTIONS = ("nvcc.",)
OLD_DEVICE = re.compile(r"\bgpu(\d*)\b")


class RcError(Exception):
    """No such file can be written for this machine, or read."""


def devices() -> int:
    """Return the number of devices that NVIDIA's driver has; 0 without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0
    count = ctypes.c_int()
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count)):
        return 0
    return count.value


def preset(name: str, gpus: int) -> dict[str, str]:
    """Return the flags of one of PRESETS on a machine with this many devices for Theano.

    Raises:
        RcError: it needs more devices than there are.
    """
    if name == "development":
        return {"device": "cpu", "mode": "FAST_COMPILE"}
    flags = {"floatX": "float32", "mode": "FAST_RUN", "gcc.cxxflags": FAST_CXXFLAGS}
    if name == "multi-gpu":
        if gpus < 2:
            raise RcError(f"multi-gpu needs two devices or more, and Theano can use {gpus} here")
        # Two devices that choose their algorithms by time compute different numbers.
        names = ("dnn.conv.algo_bwd_filter", "dnn.conv.algo_bwd_data")
        contexts = ";".join(f"dev{i}->cuda{i}" for i in range(gpus))
        shared = {"device": "cpu", "contexts": contexts}
        return flags | shared | dict.fromkeys(names, "deterministic")
    if not gpus:
        return {**flags, "device": "cpu"}
    # Algorithms timed once, and the memory taken once: all but the 5 % that cuDNN may need.
    return {
        **flags,
        "device": "cuda",
        "dnn.conv.algo_fwd": "time_once",
        "dnn.conv.algo_bwd_filter": "time_once",
        "dnn.conv.algo_bwd_data": "time_once",
        "gpuarray.preallocate": "0.95",
    }


def translate(flags: Mapping[str, str]) -> tuple[dict[str, str], tuple[str, ...]]:
    """Return flags for Theano 1.0.5, and a message for each that was changed."""
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
            now = ", ".join(f"{name}={new[name]}" for name in new) or "nothing: it has no effect"
            messages.append(f"{flag}={value} is now {now}")
    return translated, tuple(messages)


def parse(text: str) -> dict[str, str]:
    """Read the flags of a theanorc; raises RcError."""
    parser = _parser()
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
    """Read the flags of a theanorc's file; raises RcError."""
    try:
        return parse(file.read_text())
    except OSError as error:
        raise RcError(f"{file} cannot be read: {error.strerror}") from error


def render(flags: Mapping[str, str]) -> str:
    """Return flags as the text of a theanorc."""
    parser = _parser()
    for flag, value in sorted(flags.items(), key=lambda item: ("." in item[0], item)):
        section, _, option = flag.rpartition(".")
        if not parser.has_section(section or "global"):
            parser.add_section(section or "global")
        parser.set(section or "global", option, value)
    text = io.StringIO()
    parser.write(text)
    return text.getvalue().rstrip() + "\n"


def _parser() -> configparser.RawConfigParser:
    parser = configparser.RawConfigParser()
    # Theano's flags have capitals: floatX.
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    return parser
