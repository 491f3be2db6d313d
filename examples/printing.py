"""Print a formula with pprint, and the nodes before and after optimization with debugprint.

Prints:
    ((x * x) + y)
    Elemwise{add,no_inplace} [id A] ''
     |Elemwise{mul,no_inplace} [id B] ''
     | |x [id C]
     | |x [id C]
     |y [id D]
    Elemwise{Composite{(sqr(i0) + i1)}} [id A] ''   0
     |x [id B]
     |y [id C]
"""

import theano
import theano.tensor as T

x, y = T.vectors("x", "y")
z = x * x + y
print(theano.pprint(z))
theano.printing.debugprint(z)
theano.printing.debugprint(theano.function([x, y], z))
