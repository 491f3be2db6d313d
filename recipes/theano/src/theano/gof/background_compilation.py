"""Compile modules at low priority while the program runs, and install them when g++ has finished.

A linker requests the compilation of its module (`request`) if it can compute its node without the
module. `start` starts g++. A thread waits for g++, adds the modules to the module cache and
installs them. While the thread changes the cache, it holds the lock of `theano.compile.threads`, so
no other thread compiles a function. The thread ends before the process ends, and before a fork.

One process per compiledir compiles in the background, so that the tasks of a job array do not all
compile the same modules. Every RETRY seconds, the other processes try to become this process. Then
they find the modules that it compiled in the cache.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from theano import config
from theano.gof import cmodule, compilelock, lock_files, module_files
from theano.gof.compilation import Arguments, CompilationPool, ModuleParts, compilations

_logger = logging.getLogger("theano.gof.cmodule")

# The lock file, relative to the compiledir. The process that holds the lock compiles.
LOCK = Path("lock_dir", "background")
# The seconds after which a process without the lock tries to acquire it again.
RETRY = 1.0
# The seconds for which a thread that forks waits for a thread that compiles.
PATIENCE = 1.0
# The number that is added to the nice value of g++.
NICE = 5


def get_compile_lock() -> threading.RLock:
    """Return the lock that a thread holds while it compiles. A forked process has a new lock."""
    # Theano imports theano.compile after this module.
    from theano.compile import threads  # noqa: PLC0415

    return threads.lock


class Request:
    """Request to compile a module. ModuleCache.module_from_key uses the request as a linker.

    Attributes:
        module: the DynamicModule.
        arguments: compile_str's arguments for the module.
        install: a function that makes the node use the compiled module.
        is_started: whether the module is in the pool.
    """

    # Not a dataclass: the import of dataclasses would take 3 ms of `import theano`.
    def __init__(
        self, module: ModuleParts, arguments: Arguments, install: Callable[[ModuleType], None]
    ) -> None:
        self.module = module
        self.arguments = arguments
        self.install = install
        self.is_started = False

    def get_src_code(self) -> str:
        """Return the source of the module."""
        source: str = self.arguments["src_code"]
        return source

    def compile_cmodule(self, location: str) -> ModuleType:
        """Compile the module in a directory and load it."""
        module: ModuleType = cmodule.GCC_compiler.compile_str(location=location, **self.arguments)
        return module


class BackgroundCompiler:
    """The requests of this process, and the runs of g++ for them.

    A thread that uses the attributes holds the lock of `theano.compile.threads`.

    Attributes:
        requests: maps the key of a module to its request, until the module is installed.
        pool: the runs of g++, or None.
        timer: the timer of the next attempt to start, or None.
    """

    def __init__(self) -> None:
        self.requests: dict[Any, Request] = {}
        self.pool: CompilationPool | None = None
        self.timer: threading.Timer | None = None
        self._file: int | None = None

    def request(self, key: Any, request: Request) -> None:
        """Request the compilation of a module; `start` starts it."""
        register_fork_hooks()
        self.requests[key] = request

    def start(self) -> None:
        """Start to compile the requested modules, unless another process has the lock."""
        with get_compile_lock():
            new = {key: value for key, value in self.requests.items() if not value.is_started}
            if self.timer or not new:
                return
            if not self.pool:
                if not self._acquire():
                    self.timer = threading.Timer(RETRY, self._retry)
                    self.timer.daemon = True
                    self.timer.start()
                    return
                self.pool = CompilationPool(NICE)
                self.pool.__enter__()
                threading.Thread(target=self._wait, args=[self.pool]).start()
            cache = cmodule.get_module_cache(config.compiledir)
            for request in new.values():
                request.is_started = True
            try:
                self.pool.compile(
                    (request.module, request.arguments)
                    for key, request in new.items()
                    if key not in cache.entry_from_key
                )
            except OSError as error:
                # No directory has space for the sources. The functions work without the modules.
                _logger.warning("Modules are not compiled in the background: %s", error)
                for key in new:
                    del self.requests[key]

    def _retry(self) -> None:
        """Call `start` again. Another process may have added the modules to the cache."""
        # At the end of the process, Python raises RuntimeError instead of starting a thread.
        with get_compile_lock(), contextlib.suppress(RuntimeError):
            self.timer = None
            with compilelock.lock_ctx():
                module_files.refresh(cmodule.get_module_cache(config.compiledir))
            self.start()

    def _wait(self, pool: CompilationPool) -> None:
        """Wait for the runs of g++ in a pool; install the modules of each run when it has ended."""
        while self.pool is pool:
            pool.wait_for_run()
            with get_compile_lock():
                self._install(pool)

    def finish(self) -> None:
        """Wait until all requested modules are compiled, and install them.

        Do nothing if another process holds the lock of the compiledir, or if another thread
        compiles a function for longer than PATIENCE seconds.
        """
        lock = get_compile_lock()
        if self.pool and lock.acquire(timeout=PATIENCE):
            try:
                while self.pool:
                    self.pool.wait_for_run()
                    self._install(self.pool)
            finally:
                lock.release()

    def _install(self, pool: CompilationPool) -> None:
        """Add the modules of the ended runs to the cache, and install them. Close an idle pool."""
        if self.pool is not pool:
            return
        cache = cmodule.get_module_cache(config.compiledir)
        started = [(key, value) for key, value in self.requests.items() if value.is_started]
        for key, request in started:
            run = compilations.get(request.module.code_hash)
            if run and not run.future.done():
                continue
            try:
                request.install(cache.module_from_key(key=key, lnk=request))
            except Exception as error:
                # The function computes the same results without the module, but slower.
                _logger.warning("A module could not be compiled in the background: %s", error)
            del self.requests[key]
        if not any(request.is_started for request in self.requests.values()):
            pool.close()
            self.pool = None
            self._release()

    def _acquire(self) -> bool:
        """Acquire the lock of the compiledir, unless another process holds it."""
        # In a read-only compiledir, or without locks, each process compiles for itself.
        with contextlib.suppress(OSError):
            self._file = lock_files.open_lock(Path(config.compiledir, LOCK))
            if not lock_files.try_lock(self._file):
                self._release()
                return False
        return True

    def _release(self) -> None:
        """Release the lock of the compiledir."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def forget(self) -> None:
        """Reset the state in a forked process, which has no other threads."""
        self._release()
        self.requests, self.pool, self.timer = {}, None, None


compiler = BackgroundCompiler()


@functools.cache
def register_fork_hooks() -> None:
    """Register the functions that run before a fork and in the forked process."""
    # concurrent.futures acquires a lock before a fork. Python calls the functions in reverse order,
    # so register `finish` after concurrent.futures: other threads need the lock while it waits.
    importlib.import_module("concurrent.futures.thread")
    os.register_at_fork(before=compiler.finish, after_in_child=compiler.forget)
