"""graph/no-sources-read.patch: the optimization of a graph reads no source files.

Without the patch, each DimShuffle reads the file of its C code, and each invalid replacement reads
the source of validate().
"""

import inspect
import os
from pathlib import Path

import pytest
import theano
from theano.gof import op, toolbox
from theano.tensor.elemwise import DimShuffle

CODE = """#section support_code
// {}
"""


def test_a_file_is_read_once(monkeypatch):
    first = DimShuffle((True,), [0])
    with monkeypatch.context() as patched:
        for module, name in ((op, "_open_u"), (op.os, "stat")):
            patched.setattr(module, name, lambda *_: pytest.fail("a file was read or examined"))
        other = DimShuffle((False,), [0, "x"])
    assert other.code_sections == first.code_sections
    assert other.func_codes == first.func_codes
    # An op may change its own copy of the code.
    other.code_sections.clear()
    assert DimShuffle((False,), ["x", 0]).code_sections == first.code_sections


def test_a_file_is_read_once_in_an_environment_behind_a_symbolic_link(run_python, tmp_path):
    (tmp_path / "packages").symlink_to(Path(theano.__file__).parents[1])
    result = run_python(
        """
        import theano
        from theano.gof import op
        from theano.tensor.elemwise import DimShuffle
        DimShuffle((True,), [0])
        del op._open_u
        DimShuffle((False,), [0, "x"])
        print(theano.__file__)
        """,
        PYTHONPATH=str(tmp_path / "packages"),
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.startswith(str(tmp_path))


def test_a_file_that_changed_is_read_again(tmp_path):
    """A changed file is read again even if its modification time is unchanged.

    Two writes within one tick of the kernel's clock get the same modification time.
    """
    file = tmp_path / "code.c"
    file.write_text(CODE.format("first"))
    time = file.stat().st_mtime_ns
    assert "first" in theano.gof.COp(str(file)).code_sections["support_code"]
    file.write_text(CODE.format("other"))
    os.utime(file, ns=(time, time))
    assert "other" in theano.gof.COp(str(file)).code_sections["support_code"]


def test_an_invalid_replacement_reads_no_source(monkeypatch):
    monkeypatch.setattr(inspect, "getframeinfo", lambda _: pytest.fail("source was read"))

    class Refuse(toolbox.Feature):
        def validate(self, _):
            raise theano.gof.InconsistencyError("no")

    x = theano.tensor.dscalar()
    fgraph = theano.gof.FunctionGraph([x], [x + 1], features=[Refuse(), toolbox.ReplaceValidate()])
    with pytest.raises(theano.gof.InconsistencyError, match="no"):
        fgraph.validate()
