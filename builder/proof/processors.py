"""Run a command, and all programs that it starts, on a processor that QEMU emulates.

QEMU's user mode emulates one process; its child processes run on the host's processor. Therefore
this module creates a user namespace. In the namespace, the kernel's binfmt_misc starts every x86-64
program through QEMU. A file that is computed from the emulated instruction CPUID replaces
/proc/cpuinfo. So compilers, libraries and scripts all see the emulated processor.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builder import report, verification
from builder.common import paths, processes, progress
from builder.common.errors import HostToolMissing, TheanoFastError, UsageError, VerifyFailed
from builder.proof import cpuinfo
from builder.stack import stacks

QEMU = "qemu-x86_64-static"
# A program with the byte MARK at the offset MARKED_BYTE of its ELF header runs without QEMU. No
# program reads this byte, the last of e_ident. QEMU itself and its shell contain MARK, because the
# kernel must not run QEMU in QEMU.
MARKED_BYTE, MARK = 15, 0x51
# The start of the ELF header of an x86-64 program without MARK. MASK selects the compared bits.
MAGIC = rb"\x7fELF\x02" + rb"\x00" * 10 + rb"\x00" + rb"\x00\x00" + rb"\x3e\x00"
MASK = rb"\xff" * 5 + rb"\x00" * 10 + rb"\xff" + rb"\x00\x00" + rb"\xff\xff"
# The rule for binfmt_misc. The kernel's admin-guide/binfmt-misc.rst explains the syntax. The flag P
# passes the program's argv[0] to the interpreter.
RULE = b":theano-fast-processor:M:0:" + MAGIC + b":" + MASK + b":%s:P\n"
# The script with which the kernel starts a program. It names the model in a flag, because programs
# that clear their environment would lose the variable QEMU_CPU.
INTERPRETER = """#!{shell}
program=$1 name=$2
shift 2
exec {qemu} -cpu {model},check=off -0 "$name" "$program" "$@"
"""
# The script that runs as root of the namespace. Its arguments are the directory with the rule, the
# Python interpreter, the file of the module cpuinfo, and the command.
INSIDE = """
mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
cat "$1/rule" > /proc/sys/fs/binfmt_misc/register
"$2" -I -S "$3" > "$1/cpuinfo"
mount --bind "$1/cpuinfo" /proc/cpuinfo
shift 3
exec "$@"
"""
NAMESPACE = ("unshare", "--user", "--map-root-user", "--mount")

# The checks to omit: they measure speed, and the emulator's speed is not the processor's speed.
WITHOUT = ("check_blas",)


@contextmanager
def emulate(model: str) -> Iterator[list[str]]:
    """Yield a command prefix that runs a command on an emulated processor.

    Args:
        model: a model that ``qemu-x86_64-static -cpu help`` lists. Changes of its features may
            follow, as in ``Haswell,-fma``.

    Raises:
        HostToolMissing: QEMU or unshare is missing, or the kernel refuses the namespace.
        UsageError: QEMU does not have this model.
    """
    qemu, shell = shutil.which(QEMU), shutil.which("sh")
    if qemu is None or shell is None or shutil.which(NAMESPACE[0]) is None:
        raise HostToolMissing(
            f"the emulation of a processor needs {QEMU} and {NAMESPACE[0]}",
            "as root: apt-get install --no-install-recommends qemu-user-static util-linux",
        )
    probe = processes.run([qemu, "-cpu", f"{model},check=off", "/bin/true"], check=False)
    if probe.status != 0:
        raise UsageError(
            f"QEMU does not emulate {model!r}: {probe.output.strip()}",
            f"to list the models: {QEMU} -cpu help",
        )
    with tempfile.TemporaryDirectory(prefix="theano-fast-processor-") as name:
        directory = Path(name)
        for program in (qemu, shell):
            mark(Path(program), directory / Path(program).name)
        interpreter = directory / "interpreter"
        interpreter.write_text(
            INTERPRETER.format(
                shell=directory / Path(shell).name, qemu=directory / QEMU, model=model
            )
        )
        interpreter.chmod(0o755)
        (directory / "rule").write_bytes(RULE % bytes(interpreter))
        python = str(Path(sys.executable).resolve())
        prefix = [*NAMESPACE, "sh", "-euc", INSIDE, "sh", name, python, cpuinfo.__file__]
        probe = processes.run([*prefix, "true"], check=False)
        if probe.status != 0:
            raise HostToolMissing(
                f"the kernel refuses to run programs through QEMU: {probe.output.strip()}",
                "use Linux 6.7 or newer with binfmt_misc and user namespaces",
            )
        yield prefix


def mark(program: Path, copy: Path) -> None:
    """Copy an ELF program with MARK; the kernel runs the copy without QEMU."""
    content = bytearray(program.read_bytes())
    content[MARKED_BYTE] = MARK
    copy.write_bytes(content)
    copy.chmod(0o755)


def verify_on_processors(name: str, models: Sequence[str], arguments: Sequence[str]) -> None:
    """Verify a built environment on emulated processors.

    Args:
        name: the name of a stack.
        models: models of processors, as for :func:`emulate`.
        arguments: flags of ``theano-fast verify``.

    Raises:
        EnvironmentFailed: the environment was not built.
        HostToolMissing: this host cannot emulate processors.
        UsageError: QEMU does not have a model.
        VerifyFailed: a check failed on a processor. The other processors are verified too.
    """
    name = stacks.normalize_name(name)
    command = verification.find_program(name)
    rows, failures = [], []
    for model in models:
        file = paths.REPORTS / f"{name}-{model}-verify.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.unlink(missing_ok=True)
        progress.say(f"{name} on {model}")
        started = time.monotonic()
        with emulate(model) as prefix:
            call: list[str | Path] = [
                *prefix,
                command,
                "verify",
                "--json",
                file,
                "--without",
                *WITHOUT,
                *arguments,
            ]
            status = processes.run_on_terminal(
                call, env=processes.select_own_kernels(processes.clean_environ())
            )
        seconds = f"{time.monotonic() - started:.0f}"
        if status != 0:
            failures.append(model)
        verdict = "yes" if status == 0 else f"NO (exit status {status})"
        document = report.read(file) if file.exists() else {}
        rows.append([model, verdict, format_kernels(document), seconds])
    progress.print_table(["processor", f"{name} verified", "kernels", "seconds"], rows)
    if failures:
        raise VerifyFailed(
            f"verification of the stack {name} failed on {', '.join(failures)}",
            "the failed checks are above and in build/reports",
        )


def format_kernels(document: dict[str, Any]) -> str:
    """Format the name of the kernels that each BLAS uses, from the JSON of ``theano-fast verify``.

    OpenBLAS chooses its kernels by the processor, such as ``Haswell``.
    """
    libraries = document.get("facts", {}).get("blas", [])
    return ", ".join(library.get("kernels", "-") for library in libraries) or "-"


def main(arguments: Sequence[str]) -> int:
    """Run a command on an emulated processor: MODEL COMMAND...; return its exit status."""
    model, *command = arguments
    # .ci/processor sets PYTHONPATH for this module. The command must not inherit the variable.
    environ = processes.select_own_kernels(os.environ)
    environ.pop("PYTHONPATH", None)
    try:
        with emulate(model) as prefix:
            return processes.run_on_terminal([*prefix, *command], env=environ)
    except TheanoFastError as error:
        print(f"error: {error}", file=sys.stderr)
        return error.exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
