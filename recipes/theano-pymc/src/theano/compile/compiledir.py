"""theano.compile.compiledir of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.compiledir import (
    basecompiledir_ls,
    basecompiledir_purge,
    cleanup,
    compiledir_purge,
    print_compiledir_content,
    print_title,
)
