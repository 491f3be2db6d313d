"""Generate the completion scripts of bash, zsh and fish from the command line's parsers."""

import argparse
import shlex
from collections.abc import Iterator, Mapping

SHELLS = ("bash", "zsh", "fish")
# The loop finds the subcommand in the words before the cursor. Files complete everywhere.
FUNCTION = """_theano_fast() {{
    local command={name} word words=
    for word in {before}; do
        case "$command $word" in
            {paths}) command="$command $word" ;;
        esac
    done
    case "$command" in
{cases}
    esac
    {reply}
}}
{register}
"""
DIALECTS = {
    "bash": {
        "before": '"${COMP_WORDS[@]:1:COMP_CWORD-1}"',
        "reply": 'mapfile -t COMPREPLY < <(compgen -W "$words" -- "${COMP_WORDS[COMP_CWORD]}")',
        "register": "complete -o default -F _theano_fast theano-fast",
    },
    "zsh": {
        "before": '"${(@)words[2,CURRENT-1]}"',
        "reply": "compadd -- ${=words}; _files",
        "register": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
        "compdef _theano_fast theano-fast",
    },
}


def list_words(
    parser: argparse.ArgumentParser, others: Mapping[str, argparse.ArgumentParser], path: str = ""
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the path of each command, and its subcommands, choices and options.

    Args:
        others: the parsers of subcommands that have their own, by name.
        path: the command and its subcommands so far; "" is the parser's program.
    """
    path = path or parser.prog
    words = list[str]()
    subparsers = list[tuple[str, argparse.ArgumentParser]]()
    for action in parser._actions:
        words += action.option_strings
        if not action.option_strings and action.choices:
            words += map(str, action.choices)
        if isinstance(action, argparse._SubParsersAction):
            subparsers += action.choices.items()
    yield path, tuple(words)
    for name, subparser in subparsers:
        yield from list_words(others.get(name, subparser), others, f"{path} {name}")


def make_script(
    shell: str, parser: argparse.ArgumentParser, others: Mapping[str, argparse.ArgumentParser]
) -> str:
    """Return a shell's completion script."""
    words_by_path = dict(list_words(parser, others))
    if shell == "fish":
        return "".join(_make_fish_lines(words_by_path))
    cases = "\n".join(
        f"        {shlex.quote(path)}) words={shlex.quote(' '.join(words))} ;;"
        for path, words in words_by_path.items()
    )
    paths = " | ".join(shlex.quote(path) for path in words_by_path)
    return FUNCTION.format(name=parser.prog, paths=paths, cases=cases, **DIALECTS[shell])


def _make_fish_lines(words_by_path: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for path, words in words_by_path.items():
        command, *commands = path.split()
        conditions = [f"__fish_seen_subcommand_from {name}" for name in commands]
        below = [
            other.removeprefix(f"{path} ").split()[0]
            for other in words_by_path
            if other.startswith(f"{path} ")
        ]
        if below:
            conditions.append(f"not __fish_seen_subcommand_from {' '.join(sorted(set(below)))}")
        condition = shlex.quote("; and ".join(conditions) or "true")
        yield f"complete -c {command} -n {condition} -a {shlex.quote(' '.join(words))}\n"
