"""
Modules that come compiled with an environment.

What g++ compiles for a program is mostly its own loops. The modules of ops such
as Dot22 or Softmax are the same in all programs: the directory that the flag
`cmodule.shipped` names can have them, compiled for levels of x86-64 processors. A
level's index, LEVEL.json, tells the library of each module, by a name that stands
for all that the module depends on, but for the processor.

"""
from __future__ import absolute_import, print_function, division

import glob
import importlib.machinery
import importlib.util
import json
import os
import shutil
import sys
import sysconfig
import tempfile
from collections import OrderedDict

import numpy as np

from theano import config
from theano.gof import cmodule
from theano.gof.utils import hash_from_code, memoize
from theano.misc.windows import output_subprocess_Popen

# What g++'s flags for a processor have if it is of the level; the highest first.
V3 = {'-mavx2', '-mbmi', '-mbmi2', '-mf16c', '-mfma', '-mlzcnt', '-mmovbe'}
LEVELS = OrderedDict([
    ('x86-64-v4', V3 | {'-mavx512f', '-mavx512bw', '-mavx512cd', '-mavx512dq',
                        '-mavx512vl'}),
    ('x86-64-v3', V3)])


@memoize
def headers():
    """
    Return the text of the headers that come with Theano.

    """
    texts = []
    for path in sorted(glob.glob(os.path.join(os.path.dirname(__file__), 'c_code', '*.h'))):
        with open(path) as f:
            texts.append(f.read())
    return ''.join(texts)


def name_of(module, arguments):
    """
    Return the name of a module: of two with one name, either will do.

    Parameters
    ----------
    module : DynamicModule
    arguments : dict
        What compile_str takes for it.

    """
    flags = [flag for flag in arguments['preargs']
             if flag not in cmodule.GCC_compiler.march_flags]
    described = [module.code_hash, headers(), np.__version__,
                 sysconfig.get_config_var('SOABI'), flags] + [
        arguments[key] for key in ('include_dirs', 'lib_dirs', 'libs')]
    return hash_from_code(json.dumps(described).replace(sys.prefix, ''))


@memoize
def index():
    """
    Return a dict of the shipped modules for this processor: by the modules'
    names, the libraries' paths.

    """
    flags = cmodule.GCC_compiler.march_flags or ()
    for level, needed in LEVELS.items():
        path = os.path.join(config.cmodule.shipped, level + '.json')
        if config.cmodule.shipped and needed.issubset(flags) and os.path.exists(path):
            with open(path) as f:
                return {name: os.path.join(config.cmodule.shipped, library)
                        for name, library in json.load(f).items()}
    return {}


def find(module, arguments):
    """
    Return the loaded module that was shipped for a DynamicModule, or None.

    """
    path = index() and index().get(name_of(module, arguments))
    if not path:
        return None
    # The library has the other modules as well, by the hashes of their code.
    loader = importlib.machinery.ExtensionFileLoader(module.code_hash, path)
    loaded = importlib.util.module_from_spec(
        importlib.util.spec_from_loader(module.code_hash, loader))
    loader.exec_module(loaded)
    return loaded


def write(linkers, level, directory):
    """
    Compile the modules of linkers for a level of processors, and their index.

    This process can load none of them: its own processor may be of another one.

    """
    cmodule.GCC_compiler.march_flags = ['-march=' + level]
    groups = OrderedDict()
    names = OrderedDict()
    for linker in linkers:
        arguments = linker.compile_arguments()
        module = linker.get_dynamic_module()
        name = name_of(module, arguments)
        if name not in names:
            del arguments['module_name'], arguments['src_code']
            group = json.dumps([arguments, module.macros_left()], sort_keys=True)
            library = '%s-%i.so' % (level, len(groups))
            names[name], _, modules = groups.setdefault(group, (library, arguments, []))
            modules.append(module)
    for library, arguments, modules in groups.values():
        with tempfile.TemporaryDirectory() as location:
            command, made = cmodule.GCC_compiler.write_source(
                'modules', cmodule.DynamicModule.merged_code(modules), location,
                **arguments)
            # For asserts, which tell the file.
            command.append('-ffile-prefix-map=%s=.' % location)
            _, error, status = output_subprocess_Popen(command)
            if status:
                raise RuntimeError('%s failed: %s' % (
                    ' '.join(command), error.decode(errors='replace')))
            shutil.move(made, os.path.join(directory, library))
    with open(os.path.join(directory, level + '.json'), 'w') as f:
        json.dump(names, f, indent=0, sort_keys=True)
