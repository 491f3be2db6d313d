"""theano.compile.function.types of Theano-PyMC: aliases of Theano's objects."""

from theano.compile.function_module import (
    AliasedMemoryError,
    DUPLICATE,
    Function,
    FunctionMaker,
    NODEFAULT,
    Supervisor,
    UnusedInputError,
    alias_root,
    check_equal,
    convert_function_input,
    fgraph_updated_vars,
    get_info_on_inputs,
    infer_reuse_pattern,
    insert_deepcopy,
    orig_function,
    register_checker,
    std_fgraph,
    view_tree_set,
)
