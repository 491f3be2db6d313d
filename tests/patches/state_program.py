"""Program that compares C code with Python code, for one state of the patch series.

A state is Theano's source with the first patches of the series. The program uses the ops that the
patches change most: elementwise loops, reductions, views, products, slices, and a scan with its
gradient.
"""

import numpy as np
import theano
from theano import tensor as tt

random = np.random.RandomState(0)
x, w = tt.dmatrix("x"), tt.dmatrix("w")
column, index, cube = tt.dcol("column"), tt.lvector("index"), tt.dtensor3("cube")
values = {
    x: random.normal(size=(4, 5)),
    w: random.normal(size=(5, 5)),
    column: random.normal(size=(4, 1)),
    index: np.array([3, 0, 3]),
    cube: random.normal(size=(6, 4, 10)),
}


def step(row, state, w):
    """Compute one step of a recurrent network whose two gates are the halves of one product."""
    gates = tt.nnet.sigmoid(tt.dot(state, tt.concatenate([w, w], axis=1)) + row)
    return gates[:, :5] * tt.tanh(tt.dot(state, w)) + (1 - gates[:, 5:]) * state


states, _ = theano.scan(step, sequences=cube, outputs_info=x, non_sequences=w)
cost = tt.sqr(states[-1]).sum() + tt.nnet.softmax(x)[:, 0].sum() + tt.exp(column).max()
outputs = [
    cost,
    *tt.grad(cost, [w, x, column]),
    tt.set_subtensor(x[1:3, ::2], 0.5).T.dot(column),
    tt.inc_subtensor(x[index], 1.0)[:, None, ::-1],
    tt.join(0, x[index], w).reshape((-1, 8)),
    tt.alloc(x[0], 3, 5).argmax(axis=1),
    tt.ge(x, column).sum(axis=0) // 2 + tt.cast(column, "int32")[0, 0],
    tt.batched_dot(cube.dimshuffle(0, 1, 2), cube.dimshuffle(0, 2, 1)).mean(axis=(1, 2)),
    theano.ifelse.ifelse(tt.gt(cost, 0), x, w[:4]),
]
compiled = theano.function(list(values), outputs)
assert any(hasattr(thunk, "cthunk") for thunk in compiled.fn.thunks)
plain = theano.function(list(values), outputs, mode=theano.Mode("py", None))
for actual, expected in zip(compiled(*values.values()), plain(*values.values()), strict=True):
    np.testing.assert_allclose(actual, expected, rtol=1e-10)
