"""
The processor.

"""
from __future__ import absolute_import, print_function, division

import hashlib
import itertools
import platform
import re


def cpu_features(cpuinfo='/proc/cpuinfo'):
    """
    Return a short hash of what -march=native depends on, or the machine's
    type where that is not known.

    These are the CPU's model and the instructions it offers, of which a
    hypervisor may hide some. The other flags in cpuinfo come and go with the
    kernel and its settings: they would tell identical machines apart.

    """
    instructions = re.compile(
        r"mmx|3dnow|pni|s?sse|avx|amx|apx|fma|f16c|xop|tbm|bmi|abm|popcnt"
        r"|cx16|lahf|movbe|adx|aes|vaes|v?pclmul|gfni|sha|sm[34]")
    try:
        with open(cpuinfo) as f:
            # A blank line ends the first processor.
            cpu = dict([field.strip() for field in line.split(':', 1)]
                       for line in itertools.takewhile(str.strip, f))
        features = [cpu['vendor_id'], cpu['cpu family'], cpu['model']]
        features += sorted(filter(instructions.match, cpu['flags'].split()))
    except (IOError, KeyError):
        return platform.machine()
    return hashlib.sha256(' '.join(features).encode()).hexdigest()[:8]
