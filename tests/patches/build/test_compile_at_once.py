"""build/compile-at-once.patch compiles the modules of a function in parallel and in batches.

A batch is one run of g++ that compiles several modules. Without the patch, modules are compiled one
after another, each in a separate run of g++.
"""

import shutil
from pathlib import Path

import pytest
from theano import scalar
from theano.gof import cmodule, compilation

FUNCTIONS = ("exp", "sin", "cos", "tanh", "log", "sqrt", "arctan", "cosh")
PROGRAM = f"""
import theano, theano.tensor as tt
x = tt.dvector()
function = theano.function([x], [getattr(tt, name)(x) for name in {FUNCTIONS}])
print([float(value[0]) for value in function([0.5])])
"""
BROKEN = """
import theano
class Broken(theano.gof.Op):
    __props__ = ("number",)
    def __init__(self, number): self.number = number
    def make_node(self, x): return theano.Apply(self, [x], [x.type()])
    def c_code(self, node, name, inputs, outputs, sub): return "nonsense;"
x = theano.tensor.dvector()
theano.function([x], [theano.tensor.exp(x)] + [Broken(number)(x) for number in range(8)])
"""


@pytest.fixture
def compiler(tmp_path):
    """Return a wrapper of g++ that writes a line to the file `log` at its start and at its end.

    The line for the start contains the arguments.
    """
    file = tmp_path / "cxx"
    file.write_text(
        f'#!/bin/sh\necho start $$ "$@" >> {tmp_path}/log\n'
        f'{shutil.which("g++")} "$@"\nstatus=$?\n'
        f"echo end $$ >> {tmp_path}/log\nexit $status\n"
    )
    file.chmod(0o755)
    return file


@pytest.fixture
def temporary(tmp_path):
    directory = tmp_path / "temporary"
    directory.mkdir()
    return directory


def read_log(compiler):
    return Path(compiler.parent, "log").read_text().splitlines()


def find_module_runs(compiler):
    """Return the logged runs that compile modules, without runs that only query the compiler."""
    return [line for line in read_log(compiler) if line.startswith("start") and "-shared" in line]


def count_parallel_runs(lines):
    """Return the largest number of runs that compiled modules at the same time."""
    running, most = set(), 0
    for line in lines:
        event, process, *arguments = line.split()
        if event == "end":
            running.discard(process)
        elif "-shared" in arguments:
            running.add(process)
        most = max(most, len(running))
    return most


@pytest.mark.parametrize("jobs", [1, 3])
def test_as_many_runs_as_jobs_are_parallel(run_python, compiler, tmp_path, jobs):
    flags = f"cxx={compiler},base_compiledir={tmp_path}/compiled,cmodule.jobs={jobs}"
    result = run_python(PROGRAM, flags=flags)
    assert result.returncode == 0, result.stderr
    assert count_parallel_runs(read_log(compiler)) == jobs


def test_one_run_compiles_several_modules(run_python, compiler, tmp_path, temporary):
    flags = f"cxx={compiler},base_compiledir={tmp_path}/compiled,cmodule.jobs=1"
    result = run_python(PROGRAM, flags=flags, TMPDIR=str(temporary))
    assert result.returncode == 0, result.stderr
    assert len(find_module_runs(compiler)) == 1
    libraries = {file.stat().st_ino for file in tmp_path.glob("compiled/*/tmp*/m*.so")}
    # The modules are hard links to one library, because TMPDIR and the compiledir are on the same
    # file system.
    assert len(libraries) == 1
    assert list(temporary.iterdir()) == []


def test_one_run_links_the_libraries_of_all_its_modules(run_python, compiler, tmp_path):
    program = """
    import theano, theano.tensor as tt
    x = tt.dmatrix()
    print(theano.function([x], [tt.dot(x, x), tt.nnet.softmax(x)])([[1.0]])[0])
    """
    flags = f"cxx={compiler},base_compiledir={tmp_path}/compiled,cmodule.jobs=1"
    result = run_python(program, flags=flags)
    assert result.stdout.split() == ["[[1.]]"], result.stderr
    assert len(find_module_runs(compiler)) == 1


def test_another_process_loads_the_modules_of_a_batch(run_python, tmp_path):
    """Another process computes the same values, from libraries that contain several modules."""
    flags = f"base_compiledir={tmp_path}/compiled"
    first = run_python(PROGRAM, flags=flags)
    assert first.returncode == 0, first.stderr
    second = run_python(PROGRAM, flags=flags)
    assert second.stdout == first.stdout
    modules = len(list(tmp_path.glob("compiled/*/tmp*/mod.cpp")))
    assert modules == len(list(tmp_path.glob("compiled/*/tmp*/key.pkl"))) >= len(FUNCTIONS)


def test_modules_are_split_evenly_by_code_size():
    modules = [(None, {"src_code": size * "x"}) for size in (1, 9, 5, 2, 4, 3)]
    runs = compilation.CompilationPool.split_evenly(modules, 2)
    sizes = [[len(arguments["src_code"]) for _, arguments in run] for run in runs]
    assert sizes == [[9, 3], [5, 4, 2, 1]]


def test_modules_of_a_batch_share_the_code_up_to_the_last_macro_that_stays_defined():
    """A macro stays defined if the code neither guards it by #ifndef nor undefines it."""
    module = cmodule.DynamicModule()
    module.add_support_code("#ifndef A\n#define A 1\n#endif\n#define B 2\n#undef B\n")
    module.add_support_code(scalar.int_div.c_support_code())
    assert module.shared_prefix() == ()
    expected = [*module.support_code, "# define C 3"]
    module.add_support_code(expected[-1])
    module.add_support_code("int after;")
    assert module.shared_prefix() == tuple(expected)


def test_the_sources_of_kernels_are_in_the_namespace_of_their_module():
    """Other support code is outside of the namespaces, and occurs once."""
    modules = []
    for number in range(2):
        module = cmodule.DynamicModule()
        module.add_support_code("int shared;")
        module.add_support_code(f'static const char *kernel_unsigned = "{number} \\"quoted\\"";\n')
        module.add_support_code("struct __struct_compiled_op_<<<<HASH_PLACEHOLDER>>>> {};")
        module.code()
        modules.append(module)
    outside, first, second = cmodule.DynamicModule.merge_code(modules).split("namespace module_")
    assert outside.count("int shared;") == 1
    assert "kernel_unsigned" not in outside
    for number, part in enumerate((first, second)):
        assert f'kernel_unsigned = "{number} ' in part
        assert f"__struct_compiled_op_{modules[number].code_hash}" in part


def test_a_compiler_error_is_raised_and_its_source_kept(run_python, tmp_path, temporary):
    flags = f"base_compiledir={tmp_path}/compiled"
    result = run_python(BROKEN, flags=flags, TMPDIR=str(temporary))
    assert result.returncode == 1
    assert "Compilation failed" in result.stderr
    assert "nonsense" in result.stderr
    (file,) = temporary.iterdir()
    assert file.name.startswith("theano_compilation_error")


def test_a_failed_batch_is_logged_once(run_python, tmp_path):
    """If a batch does not compile, its modules are compiled separately, with one log message."""
    compiler = tmp_path / "cxx"
    compiler.write_text(
        '#!/bin/sh\nfor file; do case $file in *.cpp) grep -q "namespace module_1" "$file" &&\n'
        "{ echo not together >&2; exit 1; };; esac; done\n"
        f'exec {shutil.which("g++")} "$@"\n'
    )
    compiler.chmod(0o755)
    flags = f"cxx={compiler},base_compiledir={tmp_path}/compiled,cmodule.jobs=1"
    result = run_python(PROGRAM, flags=flags)
    assert result.returncode == 0, result.stderr
    assert result.stderr.count("which takes longer: not together") == 1


USER_OPS = """
import theano
class Scale(theano.Op):
    __props__ = ("by",)
    def __init__(self, by): self.by = by
    def make_node(self, x): return theano.Apply(self, [x], [x.type()])
    def c_code_cache_version(self): return (1,)
    def c_support_code(self): return SUPPORT.replace("NUMBER", str(self.by))
    def c_code(self, node, name, inputs, outputs, sub):
        return CODE.replace("NUMBER", str(self.by)) + (
            "Py_XDECREF(z); z = (PyArrayObject *)PyArray_NewCopy(x, NPY_CORDER);"
            "*(double *)PyArray_DATA(z) *= BY;"
        ).replace("x", inputs[0]).replace("z", outputs[0]).replace("BY", BY)
x = theano.tensor.dscalar()
print(theano.function([x], [Scale(by)(x) for by in (2, 3, 5)])(1.0))
"""
GUARDED = "#ifndef BY\n#define BY NUMBER\n#endif\n"
# If both codes were in one source, the first op's call would resolve to the second op's overload.
OVERLOADED = (
    "struct Of_NUMBER { Of_NUMBER(int) {} };\nstatic int by(Of_NUMBER) { return NUMBER; }\n"
)


@pytest.mark.parametrize(
    ("support", "code", "by"),
    [(GUARDED, "", "BY"), ("", GUARDED, "BY"), (OVERLOADED, "", "by(1)")],
    ids=["macro", "macro in a function", "overload"],
)
def test_ops_of_users_are_compiled_alone(run_python, tmp_path, support, code, by):
    """Ops from outside of Theano are not compiled in a batch, so their code does not conflict."""
    flags = f"base_compiledir={tmp_path}/compiled,cmodule.jobs=1"
    program = f"SUPPORT, CODE, BY = {support!r}, {code!r}, {by!r}\n" + USER_OPS
    result = run_python(program, flags=flags)
    assert result.returncode == 0, result.stderr
    assert result.stdout.split() == ["[array(2.),", "array(3.),", "array(5.)]"]
    assert "which takes longer" not in result.stderr
