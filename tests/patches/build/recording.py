"""Code at the start of test programs that records the modules that they compile."""

# For each compiled module, the code appends the list of the module's ops to `compiled`.
COMPILED = """
import theano, theano.tensor as tt
from theano.gof.cc import CLinker

compiled = []
compile_cmodule = CLinker.compile_cmodule

def recorded(self, *args, **kwargs):
    compiled.append([str(node.op) for node in self.node_order])
    return compile_cmodule(self, *args, **kwargs)

CLinker.compile_cmodule = recorded
"""
