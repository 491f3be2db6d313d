"""Functions with a profile read the list of the cache's modules once.

Without the patch, each of them opened all modules.
"""

import theano
import theano.tensor as tt
from theano.gof.cmodule import ModuleCache


def test_second_function_does_not_list_again(monkeypatch):
    x = tt.dvector()
    profile = theano.compile.ProfileStats(atexit_print=False)
    theano.function([x], x + 1, profile=profile)
    listed = []
    refresh = ModuleCache.refresh
    monkeypatch.setattr(
        ModuleCache, "refresh", lambda *args, **kw: listed.append(args) or refresh(*args, **kw)
    )
    function = theano.function([x], x + 2, mode="FAST_COMPILE", profile=profile)
    assert function([1.0]).tolist() == [3.0]
    assert listed == []
