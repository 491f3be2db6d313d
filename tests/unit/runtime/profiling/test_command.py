import json

import pytest
from theano_fast import profiles
from theano_fast.profiling import command


def test_compare_prints_a_table_and_writes_a_page(files, tmp_path, capsys):
    page = tmp_path / "page.html"
    assert command.main(["compare", *map(str, files("train_fn")), "--html", str(page)]) == 0
    assert "55.918 1.00x    49.395 0.88x    48.985 0.88x" in capsys.readouterr().out
    assert page.read_text().startswith("<!DOCTYPE html>")


def test_read_prints_every_row(files, capsys):
    assert command.main(["read", str(files("train_fn")[1])]) == 0
    told = capsys.readouterr().out
    assert "optimizer            1013.89" in told
    assert "theano.compile.ops.DeepCopyOp" in told


@pytest.mark.parametrize("name", ["read", "compare"])
def test_both_give_json(files, capsys, name):
    assert command.main([name, *map(str, files("grad_of_scan")), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


def test_a_foreign_file_is_told_by_name_and_line(tmp_path):
    file = tmp_path / "notes.txt"
    with pytest.raises(profiles.ProfileError, match=r"notes\.txt cannot be read"):
        command.main(["read", str(file)])
    file.write_text("nothing\n")
    with pytest.raises(profiles.ProfileError, match=r"notes\.txt, line 1: the text holds no"):
        command.main(["read", str(file)])
