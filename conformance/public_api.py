"""Print the public names of all Theano modules, with signatures and base classes.

``build/envs/stock/bin/python conformance/public_api.py > references/stock-api.txt`` records the
names of stock Theano. tests/patches/test_public_api.py compares a stack's names with this record.
The program runs on CPython 3.9 to 3.11.

After a module's line, there is a line for each name without a leading underscore:

    theano.tensor.basic
     Alloc class(theano.gof.op.Op)              a class that the module defines, with its bases
     Alloc.make_node def(self, value, *shape)   its methods
     alloc def(value, *shape)
     int_dtypes list                            the type of any other object

If another module defines a class or a function, the line has no bases or parameters. The record
omits imported modules of other packages.

The optional argument is the file of such a record. With it, the program also looks up the names in
the record, because a module may provide names on demand that ``dir`` does not list.
"""

import contextlib
import importlib
import inspect
import os
import pathlib
import pkgutil
import sys
import types
import warnings

import theano

# The types of defaults that have the same representation in every process.
PLAIN_TYPES = (type(None), bool, int, float, str)


class Text(str):
    """A string that is its own representation."""

    def __repr__(self):
        return str(self)


# This script reads the compiledir when it is imported.
SCRIPTS = ("theano.misc.check_duplicate_key",)


def list_modules():
    """Yield the names of the public modules, without tests but with the helpers of tests."""
    yield "theano"
    for module in pkgutil.walk_packages(theano.__path__, "theano.", onerror=lambda name: None):
        parts = module.name.split(".")
        private = any(part.startswith(("_", "test_")) for part in parts) or "tests" in parts[2:]
        if not private and module.name not in SCRIPTS:
            yield module.name


def read_record(file):
    """Return the names of each module in a record."""
    names, module = {}, ""
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith(" "):
            names[module].append(line.split()[0].partition(".")[0])
        else:
            module = line.partition(" ")[0]
            names[module] = []
    return names


def format_default(value):
    """Return a parameter's default as text; "..." if its representation is not a plain value."""
    values = value if isinstance(value, (tuple, list)) else [value]
    return Text(repr(value) if all(isinstance(item, PLAIN_TYPES) for item in values) else "...")


def format_signature(function):
    """Return the parameters of a function in Python's notation, without annotations."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return "(...)"
    parameters = [
        parameter.replace(annotation=parameter.empty)
        if parameter.default is parameter.empty
        else parameter.replace(
            annotation=parameter.empty, default=format_default(parameter.default)
        )
        for parameter in signature.parameters.values()
    ]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def describe_name(module, name, value):
    """Yield the record's lines about a name in a module: its type, and a class's methods."""
    defining_module = getattr(value, "__module__", None)
    if isinstance(value, types.ModuleType):
        # Omit the modules `tests`, because not every distribution installs them.
        if value.__name__.partition(".")[0] == "theano" and name != "tests":
            yield f"{name} module"
    elif inspect.isclass(value):
        # Describe the bases and methods only under the name with which the class was defined.
        if (defining_module, value.__qualname__) != (module, name):
            yield f"{name} class"
            return
        bases = (f"{base.__module__}.{base.__qualname__}" for base in value.__bases__)
        yield f"{name} class({', '.join(bases)})"
        for attribute, member in vars(value).items():
            function = inspect.unwrap(getattr(member, "__func__", member))
            if inspect.isfunction(function) and is_public(attribute):
                yield f"{name}.{attribute} def{format_signature(function)}"
    elif inspect.isroutine(value):
        is_own = defining_module == module
        yield f"{name} def{format_signature(value)}" if is_own else f"{name} def"
    elif defining_module != "__future__":
        yield f"{name} {type(value).__name__}"


def is_public(name):
    """Return whether a name is public; ``__init__`` and ``__call__`` are public too."""
    return not name.startswith("_") or name in ("__init__", "__call__")


def list_lines(others):
    """Return the lines of all modules.

    Args:
        others: maps a module to additional names to look up.
    """
    imported = {}
    for name in list_modules():
        try:
            imported[name] = importlib.import_module(name)
        except Exception:
            imported[name] = None
    lines = []
    for name, module in sorted(imported.items()):
        lines.append(name if module else f"{name} cannot be imported")
        described = set()
        for attribute in filter(is_public, {*dir(module), *others.get(name, ())} if module else ()):
            if hasattr(module, attribute):
                described.update(describe_name(name, attribute, getattr(module, attribute)))
        lines += sorted(f" {line}" for line in described)
    return lines


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    # Some modules print when they are imported.
    with pathlib.Path(os.devnull).open("w") as nothing, contextlib.redirect_stdout(nothing):
        report = list_lines(read_record(pathlib.Path(sys.argv[1])) if sys.argv[1:] else {})
    sys.stdout.write("".join(f"{line}\n" for line in report))
