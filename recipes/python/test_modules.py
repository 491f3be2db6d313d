"""Import every extension module; check that all loaded libraries are the environment's or glibc's."""

import ctypes
import importlib
import os
import re
import subprocess
import sys
import sysconfig

EXPECTED = {
    "_bz2", "_ctypes", "_curses", "_curses_panel", "_decimal", "_elementtree", "_hashlib",
    "_lzma", "_multiprocessing", "_posixshmem", "_sqlite3", "_ssl", "mmap", "pyexpat",
    "readline", "zlib",
}
# Before glibc 2.34, the names of its files contain its version, as in libc-2.28.so.
GLIBC = re.compile(r"(ld|ld-linux-x86-64|lib(c|dl|m|pthread|resolv|rt|util))(-2\.\d+)?\.so")

modules = {
    name.partition(".")[0] for name in os.listdir(sysconfig.get_path("platstdlib") + "/lib-dynload")
}
assert EXPECTED <= modules, EXPECTED - modules
for module in modules:
    importlib.import_module(module)

# Theano compiles libraries without a search path. They must find the environment's libstdc++ by the
# interpreter's search path.
source = '#include <iostream>\nextern "C" void probe() { std::cout << std::flush; }\n'
subprocess.run(
    ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", "probe.so"],
    input=source, text=True, check=True,
)
ctypes.CDLL("./probe.so").probe()

with open("/proc/self/maps") as maps:
    loaded = set(re.findall(r"/\S+\.so\S*", maps.read())) - {os.path.abspath("probe.so")}
foreign = [
    path for path in loaded
    if not path.startswith(sys.prefix + os.sep) and not GLIBC.match(os.path.basename(path))
]
assert not foreign, foreign

recorded = sysconfig.get_config_vars()
assert (recorded["CC"], recorded["CXX"]) == ("gcc -pthread", "g++"), recorded
assert not re.search("file-prefix-map|rpath", " ".join(map(str, recorded.values())))
