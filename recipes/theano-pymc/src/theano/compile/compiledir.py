"""theano.compile.compiledir of Theano-PyMC: alias module of Theano's own objects."""

from theano.gof.compiledir import (
    basecompiledir_ls,
    basecompiledir_purge,
    cleanup,
    compiledir_purge,
    print_compiledir_content,
    print_title,
)
