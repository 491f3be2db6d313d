"""graph/no-sources-read.patch leaves Theano's own frames out of a variable's trace.

Without the patch, the source line of each of these frames is read for each variable.
"""

import linecache
import sys

import pytest
import theano
import theano.tensor as tt
from theano.gof import utils
from theano.misc import frames


@pytest.fixture
def read(monkeypatch):
    """Record the files whose lines are read."""
    files = []
    getline = linecache.getline
    monkeypatch.setattr(
        linecache,
        "getline",
        lambda file, *arguments: files.append(file) or getline(file, *arguments),
    )
    return files


def test_only_lines_of_the_program_are_read(read):
    x = tt.dvector()
    y = tt.exp(x)
    assert read
    assert not [file for file in read if "/theano/gof/" in file or "/theano/tensor/" in file]
    *_, (file, number, function, line) = y.tag.trace[0]
    assert (file, function, line) == (__file__, "test_only_lines_of_the_program_are_read",
                                      "y = tt.exp(x)")  # fmt: skip
    assert number == sys._getframe().f_code.co_firstlineno + 2


@pytest.mark.parametrize(
    ("file", "skipped"),
    [("/a/theano/gof/op.py", True), ("/a/theano/gof/tests/op.py", False), ("/a/b.py", False)],
)
def test_theanos_own_frames_are_skipped(file, skipped):
    """Theano's own files, without its tests, are skipped up to the first other file."""
    scope = {"extract": utils.simple_extract_stack}
    exec(compile("def outer(call): return call()", "/b/theano/gof/outer.py", "exec"), scope)
    exec(compile("def call(): return extract(skips=['theano/gof/'])", file, "exec"), scope)
    exec(compile("def program(): return outer(call)", "/a/program.py", "exec"), scope)
    names = [name for _, _, name, _ in scope["program"]()]
    assert names[names.index("program") :] == ["program", *([] if skipped else ["outer", "call"])]


def test_no_frame_is_examined_with_a_limit_of_0(monkeypatch):
    monkeypatch.setattr(frames, "is_skipped", lambda *_: pytest.fail("a frame was looked at"))
    with theano.change_flags({"traceback.limit": 0}):
        assert tt.exp(tt.dvector()).tag.trace == []


def test_compile_limit_keeps_theanos_frames():
    with theano.change_flags({"traceback.compile_limit": 5}):
        x = tt.exp(tt.dvector())
    assert any("theano/" in file for file, *_ in x.tag.trace[0])


def test_an_entry_is_made_once_until_its_file_is_read_again(tmp_path, read):
    file = tmp_path / "program.py"
    scope = {"extract": utils.simple_extract_stack}
    lines = []
    for text in ("extract()", "extract()", "extract()  # changed"):
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            linecache.checkcache(str(file))
        (entry,) = (e for e in eval(compile(text, file, "eval"), scope) if e[0] == str(file))
        lines.append(entry)
    assert lines[0] is lines[1]
    assert [line for *_, line in lines] == ["extract()", "extract()", "extract()  # changed"]
    assert read.count(str(file)) == 2
