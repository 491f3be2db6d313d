"""
The flags for -march=native are kept, and found while nothing waits for them.

"""
from __future__ import absolute_import, print_function, division

import contextlib
import itertools
import json
import logging
import os
import shutil
import threading

from theano import config
from theano.configdefaults import gcc_version_str
from theano.gof.utils import replace_file

_logger = logging.getLogger('theano.gof.cmodule')

# The file of the compiledir that holds the flags.
MARCH_FLAGS = 'march_flags.json'

# The thread that finds them, once there is one.
detection = None


def describe_compiler():
    """
    Return what the flags for -march=native depend on: g++, and the CPU.

    """
    status = os.stat(shutil.which(config.cxx))
    with open('/proc/cpuinfo') as f:
        # A blank line ends the first processor.
        cpu = [line.split() for line in itertools.takewhile(str.strip, f)]
    changing = ('cpu MHz', 'bogomips')
    return [config.cxx, gcc_version_str, status.st_size, status.st_mtime_ns,
            [' '.join(words) for words in cpu
             if not ' '.join(words).startswith(changing)]]


def load():
    """
    Return the flags for -march=native that this compiler gave on this CPU
    before, or None.

    """
    try:
        with open(os.path.join(config.compiledir, MARCH_FLAGS)) as f:
            compiler, flags = json.load(f)
        return flags if compiler == describe_compiler() else None
    except (OSError, TypeError, ValueError):
        return None


def store(flags):
    """
    Keep the flags for -march=native for other processes.

    """
    try:
        replace_file(os.path.join(config.compiledir, MARCH_FLAGS),
                     json.dumps([describe_compiler(), flags]).encode())
    except (OSError, TypeError) as e:
        _logger.info("The flags for -march=native are not kept: %s", e)


def find_ahead(compiler):
    """
    Begin to find the flags: four processes, half a second.

    Parameters
    ----------
    compiler : class
        GCC_compiler.

    """
    global detection
    if (config.cxx and detection is None and compiler.march_flags is None and
            load() is None):
        def detect():
            # Whoever needs the arguments gets the error.
            with contextlib.suppress(Exception):
                compiler.compile_args()

        detection = threading.Thread(target=detect)
        detection.start()


def wait():
    """
    Wait for the thread that finds the flags, if another one does.

    """
    if detection not in (None, threading.current_thread()):
        detection.join()
