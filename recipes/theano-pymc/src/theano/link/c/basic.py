"""theano.link.c.basic of Theano-PyMC: aliases of Theano's objects."""

from theano.gof.cc import (
    CLinker,
    CodeBlock,
    DualLinker,
    OpWiseCLinker,
    apply_policy,
    code_gen,
    failure_code,
    failure_code_init,
    get_c_cleanup,
    get_c_declare,
    get_c_extract,
    get_c_extract_out,
    get_c_init,
    get_c_sync,
    get_module_cache,
    get_nothing,
    get_persistent_module_cache,
    run_cthunk,
    struct_gen,
    struct_variable_codeblocks,
)
