"""The beginning of programs that see what is compiled."""

# Each module's ops are put into `compiled`.
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
