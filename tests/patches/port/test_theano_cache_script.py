"""Without the patch, the scripts live in a top-level package called bin, and theano-nose in it
cannot be imported where there is no nose."""

from importlib.metadata import distribution


def scripts():
    entry_points = distribution("Theano").entry_points
    return {script.name: script.value for script in entry_points.select(group="console_scripts")}


def test_scripts():
    assert scripts() == {"theano-cache": "theano.bin.theano_cache:main"}


def test_nothing_is_called_bin():
    files = distribution("Theano").files
    assert files
    assert not [file for file in files if file.parts[0] == "bin"]


def test_theano_cache(run_python, compiledir):
    command = "import sys; from theano.bin.theano_cache import main; sys.argv[1:] = {!r}; main()"
    build = "import theano; x = theano.tensor.dvector(); theano.function([x], x + 1)"
    assert run_python(build).returncode == 0
    for arguments in (
        [],
        ["list"],
        ["cleanup"],
        ["unlock"],
        ["clear"],
        ["purge"],
        ["basecompiledir", "list"],
        ["help"],
    ):
        result = run_python(command.format(arguments))
        assert result.returncode == 0, (arguments, result.stderr)
        assert "Traceback" not in result.stderr
    assert not list(compiledir.glob("*/tmp*"))


def test_what_is_required_is_what_it_runs_on():
    required = distribution("Theano").requires
    assert {line.split(";")[0].strip() for line in required if "extra" not in line} == {
        "numpy <1.27,>=1.26.4",
        "scipy <1.12,>=1.11",
        "six >=1.9.0",
    }
