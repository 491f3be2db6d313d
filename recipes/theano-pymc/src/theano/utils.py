"""theano.utils of Theano-PyMC: aliases of Theano's objects."""

from theano.compat import (
    DefaultOrderedDict,
    cmp,
    exc_message,
    get_unbound_function,
    maybe_add_to_os_environ_pathlist,
)
from theano.compile.debugmode import (
    NoDuplicateOptWarningFilter,
)
from theano.misc.windows import (
    call_subprocess_Popen,
    output_subprocess_Popen,
    subprocess_Popen,
)
from theano.gof.utils import (
    deprecated,
    difference,
    flatten,
    from_return_values,
    hash_from_code,
    memoize,
    to_return_values,
    uniq,
)
