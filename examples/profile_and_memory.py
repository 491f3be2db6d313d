"""Read a function's own profile: its calls, the time of its ops, and the memory of its nodes.

Prints:
    3 calls
    its ops include Dot22 and Sum: True
    its largest value takes 80000 bytes
"""

import numpy
import theano
import theano.tensor as T

# Theano records shapes if both flags are set before the function is compiled.
theano.config.profile = theano.config.profile_memory = True
x = T.dmatrix("x")
profile = theano.compile.ProfileStats(atexit_print=False, flag_time_thunks=True)
function = theano.function([x], T.dot(x, x).sum(), profile=profile)
for _ in range(3):
    function(numpy.ones((100, 100)))
print(profile.fct_callcount, "calls")
names = {str(node.op).split("{")[0] for node in profile.apply_time}
print("its ops include Dot22 and Sum:", {"Dot22", "Sum"} <= names)
shapes = profile.variable_shape.values()
print("its largest value takes", max(8 * int(numpy.prod(shape)) for shape in shapes), "bytes")
# profile.summary() prints the whole profile, like the flag profile=True at the end of a program.
