"""A function's own profile: its calls, where their time goes, and the memory of its nodes.

Prints:
    3 calls
    in Dot22 and Sum: True
    its largest value takes 80000 bytes
"""

import numpy
import theano
import theano.tensor as T

# Shapes are kept where both are set before the function is made.
theano.config.profile = theano.config.profile_memory = True
x = T.dmatrix("x")
profile = theano.compile.ProfileStats(atexit_print=False, flag_time_thunks=True)
function = theano.function([x], T.dot(x, x).sum(), profile=profile)
for _ in range(3):
    function(numpy.ones((100, 100)))
print(profile.fct_callcount, "calls")
names = {str(node.op).split("{")[0] for node in profile.apply_time}
print("in Dot22 and Sum:", {"Dot22", "Sum"} <= names)
shapes = profile.variable_shape.values()
print("its largest value takes", max(8 * int(numpy.prod(shape)) for shape in shapes), "bytes")
# profile.summary() prints all of it, as profile=True does at a program's end.
