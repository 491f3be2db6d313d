"""graph/no-sources-read.patch leaves Theano's own frames out of a variable's trace.

Without the patch, Theano reads the source line of each of its own frames for each variable.
"""

import linecache
import sys

import pytest
import theano
import theano.tensor as tt
from theano.gof import utils
from theano.misc import frames


@pytest.fixture
def read_files(monkeypatch):
    """Return a list to which each call of linecache.getline appends its file."""
    files = []
    getline = linecache.getline
    monkeypatch.setattr(
        linecache,
        "getline",
        lambda file, *arguments: files.append(file) or getline(file, *arguments),
    )
    return files


def test_only_lines_of_the_program_are_read(read_files):
    x = tt.dvector()
    y = tt.exp(x)
    assert read_files
    assert not [file for file in read_files if "/theano/gof/" in file or "/theano/tensor/" in file]
    *_, (file, number, function, line) = y.tag.trace[0]
    assert (file, function, line) == (__file__, "test_only_lines_of_the_program_are_read",
                                      "y = tt.exp(x)")  # fmt: skip
    assert number == sys._getframe().f_code.co_firstlineno + 2


@pytest.mark.parametrize(
    ("file", "skipped"),
    [("/a/theano/gof/op.py", True), ("/a/theano/gof/tests/op.py", False), ("/a/b.py", False)],
)
def test_theanos_own_frames_are_skipped(file, skipped):
    """The innermost frames are skipped up to the first frame of a program or of Theano's tests."""
    scope = {"extract": utils.simple_extract_stack}
    exec(compile("def outer(call): return call()", "/b/theano/gof/outer.py", "exec"), scope)
    exec(compile("def call(): return extract(skips=['theano/gof/'])", file, "exec"), scope)
    exec(compile("def program(): return outer(call)", "/a/program.py", "exec"), scope)
    names = [name for _, _, name, _ in scope["program"]()]
    assert names[names.index("program") :] == ["program", *([] if skipped else ["outer", "call"])]


def test_frames_of_generators_and_of_functions_that_returned_are_described():
    def extract(frame):
        return [name for _, _, name, _ in utils.simple_extract_stack(frame)]

    def return_frame():
        return sys._getframe()

    def yield_frame():
        yield extract(sys._getframe())
        yield sys._getframe()

    generator = yield_frame()
    caller = sys._getframe().f_code.co_name
    assert extract(return_frame())[-2:] == [caller, "return_frame"]
    assert next(generator)[-2:] == [caller, "yield_frame"]
    assert extract(next(generator)) == ["yield_frame"]


def test_no_frame_is_examined_with_a_limit_of_0(monkeypatch):
    monkeypatch.setattr(frames, "is_skipped", lambda *_: pytest.fail("a frame was examined"))
    with theano.change_flags({"traceback.limit": 0}):
        assert tt.exp(tt.dvector()).tag.trace == []


def test_compile_limit_keeps_theanos_frames():
    with theano.change_flags({"traceback.compile_limit": 5}):
        x = tt.exp(tt.dvector())
    assert any("theano/" in file for file, *_ in x.tag.trace[0])


def test_the_cache_of_entries_is_bounded(monkeypatch):
    monkeypatch.setattr(frames, "_frames", {})
    monkeypatch.setattr(frames, "MAX_FRAMES", 20)
    for i in range(50):
        scope = {"extract": utils.simple_extract_stack}
        (*_, entry) = eval(compile("extract()", f"program{i}.py", "eval"), scope)
        assert entry[0] == f"program{i}.py"
        assert len(frames._frames) <= 20


def test_an_entry_is_made_once_until_its_file_changes(tmp_path, read_files):
    file = tmp_path / "program.py"
    scope = {"extract": utils.simple_extract_stack}
    lines = []
    program = compile("extract()", file, "eval")
    for text in ("extract()", "extract()", "extract()  # changed"):
        if not file.exists() or file.read_text() != text:
            file.write_text(text)
            linecache.checkcache(str(file))
        (entry,) = (e for e in eval(program, scope) if e[0] == str(file))
        lines.append(entry)
    assert lines[0] is lines[1]
    assert [line for *_, line in lines] == ["extract()", "extract()", "extract()  # changed"]
    assert read_files.count(str(file)) == 2
