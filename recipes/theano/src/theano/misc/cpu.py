"""The processor."""

from __future__ import annotations

import hashlib
import itertools
import platform
import re
from pathlib import Path


def cpu_features(cpuinfo: str = "/proc/cpuinfo") -> str:
    """Return a short hash of what -march=native depends on, or the machine's type if unknown.

    These are the CPU's model and the instructions it offers, of which a hypervisor may hide some.
    The other flags in cpuinfo come and go with the kernel and its settings: they would tell
    identical machines apart.
    """
    instructions = re.compile(
        r"mmx|3dnow|pni|s?sse|avx|amx|apx|fma|f16c|xop|tbm|bmi|abm|popcnt"
        r"|cx16|lahf|movbe|adx|aes|vaes|v?pclmul|gfni|sha|sm[34]"
    )
    try:
        with Path(cpuinfo).open() as file:
            # A blank line ends the first processor.
            fields = (line.partition(":") for line in itertools.takewhile(str.strip, file))
            cpu = {name.strip(): value.strip() for name, _, value in fields}
        features = [cpu["vendor_id"], cpu["cpu family"], cpu["model"]]
        features += sorted(filter(instructions.match, cpu["flags"].split()))
    except (OSError, KeyError):
        return platform.machine()
    return hashlib.sha256(" ".join(features).encode()).hexdigest()[:8]
