"""dnn.dropout and its gradient compile, and each call updates the random states."""

# Compile dropout; print its nodes, whether the states have an update, and whether the function
# contains no other shared variable.
DROPOUT = """
import compile as stubs
stubs.start()
import theano
import theano.tensor as T
from theano.gpuarray import dnn
x = T.fmatrix()
y, _, after, states = dnn.dropout(x, 0.5)
function = theano.function([x], [y, theano.grad((y ** 2).sum(), x)])
for node in function.maker.fgraph.toposort():
    if "Dropout" in type(node.op).__name__:
        print(node.op)
print(states.default_update is after, function.get_shared() == [states])
"""


def test_the_states_are_updated_in_place(run):
    done = run("-c", DROPOUT, flags="floatX=float32")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "GpuDnnDropoutOp{inplace=True}",
        "GpuDnnDropoutGradOp",
        "True True",
    ]
