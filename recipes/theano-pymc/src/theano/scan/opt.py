"""theano.scan.opt of Theano-PyMC: aliases of Theano's objects."""

from theano.scan_module.scan_opt import (
    PushOutDot1,
    PushOutNonSeqScan,
    PushOutScanOutput,
    PushOutSeqScan,
    ScanInplaceOptimizer,
    ScanMerge,
    ScanSaveMem,
    has_duplicates,
    list_opt_slice,
    make_equiv,
    remove_constants_and_unused_inputs_scan,
    scan_eqopt1,
    scan_eqopt2,
    scan_merge_inouts,
    scan_seqopt1,
)
