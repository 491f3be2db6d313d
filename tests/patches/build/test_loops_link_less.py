"""build/loops-alone.patch links modules of loops to the C library only.

Without the patch, ld reads the C++ library for each module, although loops do not use it.
"""

import subprocess

import theano
from theano import tensor as tt
from theano.gof import cc


def test_loops_link_only_with_the_c_library():
    x = tt.fvector("x")
    outputs = [tt.log2(x), tt.arctan2(x, 3)]
    theano.function([x], outputs, mode=theano.Mode("cvm", None))([1])
    for output in outputs:
        linker = output.owner.op.c_linker(output.owner, [])
        path = cc.get_module_cache().entry_from_key[linker.cmodule_key()]
        # Use readelf, because ldd omits libraries if it cannot find one of them, such as Python's.
        command = ["readelf", "--dynamic", path]
        listing = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "libm.so.6" in listing
        assert "libstdc++" not in listing


def test_other_modules_link_with_all_libraries():
    x, y = tt.dmatrices("x", "y")
    node = tt.nnet.softmax_op(x).owner
    assert "-nodefaultlibs" not in node.op.c_linker(node, []).make_compile_arguments()["preargs"]
    node = (x + y).owner
    assert "-nodefaultlibs" in node.op.c_linker(node, []).make_compile_arguments()["preargs"]
