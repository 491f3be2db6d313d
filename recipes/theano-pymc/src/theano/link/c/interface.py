"""theano.link.c.interface of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.op import (
    CLinkerObject,
    CLinkerOp,
)
from theano.gof.type import (
    CLinkerType,
)
from theano.gof.cc import (
    HideC,
)
