"""
Several modules in one run of g++, and several runs at once.

"""
from __future__ import absolute_import, print_function, division

import logging
import os
import re
import shutil
import tempfile
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor

from six import StringIO

from theano import config
from theano.gof import cmodule
from theano.compat import decode
from theano.misc.windows import output_subprocess_Popen

_logger = logging.getLogger('theano.gof.cmodule')


class ModuleParts(object):
    """
    What a DynamicModule's code is put together from, for several of them.

    """

    def include_lines(self):
        includes = list(self.includes)
        # It has as many lines as all other headers.
        if any(re.search(r'\bstd\b', code) for code in self.support_code +
               [function.code_block for function in self.functions]):
            includes.insert(1, '<iostream>')
        return ['#include ' + (inc if inc[0] in '<"' else '"%s"' % inc)
                for inc in includes if inc]

    def print_functions(self, stream):
        print("//////////////////////", file=stream)
        print("////  Functions", file=stream)
        print("//////////////////////", file=stream)
        for f in self.functions:
            print(f.code_block, file=stream)

        print("//////////////////////", file=stream)
        print("////  Module init", file=stream)
        print("//////////////////////", file=stream)
        self.print_methoddef(stream)
        self.print_init(stream)

    @staticmethod
    def merged_code(modules):
        """
        Return one source for several finalized modules.

        What is outside of functions stands there once, as in a module of
        several ops; each module's functions are in a namespace of their own.

        """
        includes, support_code, functions = [], [], []
        for number, module in enumerate(modules):
            sio = StringIO()
            module.print_functions(sio)
            includes.extend(module.include_lines())
            support_code.extend(code.replace(module.hash_placeholder,
                                             module.code_hash)
                                for code in module.support_code)
            functions.append('namespace module_%i {\n%s}' % (
                number, sio.getvalue().replace(module.hash_placeholder,
                                               module.code_hash)))
        return '\n'.join(list(OrderedDict.fromkeys(includes)) +
                         list(OrderedDict.fromkeys(support_code)) +
                         functions)

    def macros_left(self):
        """
        Return the support code up to the last macro that it leaves defined.

        The macro would change code after it, but for that of modules whose own
        support code begins the same.

        """
        define = re.compile(r'^[ \t]*#[ \t]*(?:ifndef[ \t]+(\w+)\s*#[ \t]*)?'
                            r'define[ \t]+(\w+)', re.MULTILINE)
        undefined = re.findall(r'^[ \t]*#[ \t]*undef[ \t]+(\w+)',
                               '\n'.join(self.support_code), re.MULTILINE)
        end = 0
        for number, code in enumerate(self.support_code):
            if any(name != guard and name not in undefined
                   for guard, name in define.findall(code)):
                end = number + 1
        return tuple(self.support_code[:end])


# The runs of the compiler that were started before their module was asked for,
# by the module's name.
compilations = {}


class Compilation(object):
    """
    A run of the compiler in another thread, for one module or several.

    """

    def __init__(self, executor, cmd, lib_filename):
        self.lib_filename = lib_filename
        self.future = executor.submit(output_subprocess_Popen, cmd)
        self.told = False

    def wait(self, lib_filename):
        """
        Return what the run has ended with, and put its library at lib_filename.

        """
        p_out = self.future.result()
        if p_out[2] == 0:
            # The second module's library is the first one's: they share its
            # place on the disk and in memory.
            try:
                os.link(self.lib_filename, lib_filename)
            except OSError:
                shutil.copy(self.lib_filename, lib_filename)
                self.lib_filename = lib_filename
        return p_out

    def tell_once(self):
        """
        Warn that modules compile alone, and not together: it costs time.

        """
        if not self.told:
            self.told = True
            _logger.warning("g++ did not compile several modules in one run,"
                            " so that each takes a run of its own: %s",
                            decode(self.future.result()[1]).strip())


class CompilationPool(object):
    """
    Compile modules ahead of need, several at once and several in one run.

    When it is left, runs that have not begun are given up.

    """
    # A run takes as long for the headers as for some modules; but the first
    # module asked for waits for the whole run.
    some_in_a_run = 32

    def __enter__(self):
        self.jobs = config.cmodule.jobs or len(os.sched_getaffinity(0))
        self.names = set()
        return self

    def compile(self, modules):
        """
        Start to compile modules.

        Parameters
        ----------
        modules : list of pairs
            A DynamicModule, and compile_str's arguments for it.

        """
        if not self.names:
            self.executor = ThreadPoolExecutor(self.jobs)
            self.directory = tempfile.TemporaryDirectory(prefix='theano-')
        alike = OrderedDict()
        for mod, arguments in modules:
            # The same code can have several keys.
            if mod.code_hash not in self.names:
                self.names.add(mod.code_hash)
                flags = tuple(self.compiler_flags(arguments))
                alike.setdefault((type(mod), flags, mod.macros_left()),
                                 []).append((mod, arguments))
        for group in alike.values():
            rounds = max(1, round(len(group) / (self.jobs * self.some_in_a_run)))
            runs = self.jobs * rounds
            for first in range(min(runs, len(group))):
                self.start(group[first::runs])

    @staticmethod
    def compiler_flags(arguments):
        return [flag for flag in arguments['preargs']
                if not flag.startswith('-Wl,')]

    def start(self, modules):
        """
        Start a run of the compiler for modules that have the same flags, but
        for those of the linker: it links with the libraries of all of them.

        """
        names = [mod.code_hash for mod, _ in modules]
        location = tempfile.mkdtemp(dir=self.directory.name)
        arguments = dict(modules[0][1], src_code=ModuleParts.merged_code(
            [mod for mod, _ in modules]))
        for key in ('include_dirs', 'lib_dirs', 'libs'):
            arguments[key] = list(OrderedDict.fromkeys(
                value for _, own in modules for value in own[key]))
        linker_flags = OrderedDict.fromkeys(
            flag for _, own in modules for flag in own['preargs']
            if flag.startswith('-Wl,'))
        arguments['preargs'] = self.compiler_flags(arguments) + list(linker_flags)
        cmd, lib_filename = cmodule.GCC_compiler.write_source(location=location,
                                                      **arguments)
        compilation = Compilation(self.executor, cmd, lib_filename)
        compilations.update((name, compilation) for name in names)

    def __exit__(self, *exc_info):
        if self.names:
            for name in self.names:
                compilations.pop(name, None)
            self.executor.shutdown(cancel_futures=True)
            self.directory.cleanup()
