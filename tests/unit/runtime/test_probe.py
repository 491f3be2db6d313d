"""The compiler that doctor reports."""

import pytest

probe = pytest.importorskip("theano_fast.probe", reason="the builder's Python has no Theano")


def test_a_compilers_path_may_have_a_space(tmp_path):
    compiler = tmp_path / "a b" / "g++"
    compiler.parent.mkdir()
    compiler.write_text(f'#!/bin/sh\nexec "{probe.theano.config.cxx}" "$@"\n')
    compiler.chmod(0o755)

    told = probe.compiler(str(compiler))

    assert told["version"]
    assert not told["error"]
