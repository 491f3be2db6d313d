"""Import every extension module; check that the process loads only the environment and glibc."""

import ctypes
import hashlib
import importlib
import os
import re
import subprocess
import sys
import sysconfig

EXPECTED = set("""_ctypes _curses _elementtree _io _multiprocessing _sqlite3 _ssl bz2 cPickle mmap
    pyexpat readline zlib""".split())
# Before release 2.34, glibc's files had names such as ld-2.28.so.
GLIBC = re.compile(r"(ld|ld-linux-x86-64|lib(c|dl|m|pthread|resolv|rt|util|crypt|nsl))[.-]")

dynload = sysconfig.get_path("platstdlib") + "/lib-dynload"
modules = set(name.partition(".")[0] for name in os.listdir(dynload) if name.endswith(".so"))
modules = set(name[:-6] if name.endswith("module") else name for name in modules)
assert EXPECTED <= modules, EXPECTED - modules
for module in modules:
    importlib.import_module(module)

assert sys.maxunicode == 0x10FFFF
assert hashlib.md5(b"").hexdigest() == "d41d8cd98f00b204e9800998ecf8427e"

# The modules that Theano compiles have no search path. Such a library must find the environment's
# libstdc++ by the interpreter's search path.
source = b'#include <iostream>\nextern "C" void probe() { std::cout << std::flush; }\n'
command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", "probe.so"]
process = subprocess.Popen(command, stdin=subprocess.PIPE)
process.communicate(source)
assert process.returncode == 0
ctypes.CDLL("./probe.so").probe()

with open("/proc/self/maps") as maps:
    loaded = set(re.findall(r"/\S+\.so\S*", maps.read())) - set([os.path.abspath("probe.so")])
foreign = [
    path for path in loaded
    if not path.startswith(sys.prefix + os.sep) and not GLIBC.match(os.path.basename(path))
]
assert not foreign, foreign

recorded = sysconfig.get_config_vars()
compilers = (recorded["CC"], recorded["CXX"])
assert compilers == ("gcc -pthread", "g++"), compilers
assert not re.search("file-prefix-map|rpath", " ".join(map(str, recorded.values())))
