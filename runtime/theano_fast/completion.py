"""Completion of the command line by bash, zsh and fish, made of its parsers."""

import argparse
import shlex
from collections.abc import Iterator, Mapping

SHELLS = ("bash", "zsh", "fish")
# The words so far are walked along the commands; files complete everywhere.
FUNCTION = """_theano_fast() {{
    local at={name} word found=
    for word in {before}; do
        case "$at $word" in
            {paths}) at="$at $word" ;;
        esac
    done
    case "$at" in
{cases}
    esac
    {reply}
}}
{register}
"""
DIALECTS = {
    "bash": {
        "before": '"${COMP_WORDS[@]:1:COMP_CWORD-1}"',
        "reply": 'mapfile -t COMPREPLY < <(compgen -W "$found" -- "${COMP_WORDS[COMP_CWORD]}")',
        "register": "complete -o default -F _theano_fast theano-fast",
    },
    "zsh": {
        "before": '"${(@)words[2,CURRENT-1]}"',
        "reply": "compadd -- ${=found}; _files",
        "register": "(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
        "compdef _theano_fast theano-fast",
    },
}


def words(
    parser: argparse.ArgumentParser, others: Mapping[str, argparse.ArgumentParser], path: str = ""
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each command's path, and the words that may follow it: commands, choices, options.

    others has the parsers of those commands whose own one takes all that follows.
    """
    path = path or parser.prog
    found = list[str]()
    below = list[tuple[str, argparse.ArgumentParser]]()
    for action in parser._actions:
        found += action.option_strings
        if not action.option_strings and action.choices:
            found += map(str, action.choices)
        if isinstance(action, argparse._SubParsersAction):
            below += action.choices.items()
    yield path, tuple(found)
    for name, each in below:
        yield from words(others.get(name, each), others, f"{path} {name}")


def script(
    shell: str, parser: argparse.ArgumentParser, others: Mapping[str, argparse.ArgumentParser]
) -> str:
    """Return what a shell reads to complete the command."""
    known = dict(words(parser, others))
    if shell == "fish":
        return "".join(_fish(known))
    cases = "\n".join(
        f"        {shlex.quote(path)}) found={shlex.quote(' '.join(found))} ;;"
        for path, found in known.items()
    )
    paths = " | ".join(shlex.quote(path) for path in known)
    return FUNCTION.format(name=parser.prog, paths=paths, cases=cases, **DIALECTS[shell])


def _fish(known: Mapping[str, tuple[str, ...]]) -> Iterator[str]:
    for path, found in known.items():
        command, *commands = path.split()
        here = [f"__fish_seen_subcommand_from {name}" for name in commands]
        after = [other.removeprefix(f"{path} ") for other in known if other.startswith(f"{path} ")]
        below = {other.split()[0] for other in after}
        if below:
            here.append(f"not __fish_seen_subcommand_from {' '.join(sorted(below))}")
        condition = shlex.quote("; and ".join(here) or "true")
        yield f"complete -c {command} -n {condition} -a {shlex.quote(' '.join(found))}\n"
