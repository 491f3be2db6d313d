"""Generate the completion scripts of bash, zsh and fish from the command line's parsers."""

import argparse
import shlex
from collections.abc import Iterator, Mapping

SHELLS = ("bash", "zsh", "fish")
# The template of the completion function in bash and zsh. Its loop finds the subcommand in the
# words before the cursor. The scripts also complete file names after every subcommand.
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
# The parts of FUNCTION that differ between the shells.
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
    parser: argparse.ArgumentParser,
    own_parsers: Mapping[str, argparse.ArgumentParser],
    path: str = "",
) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the path of each command, and its subcommands, choices and options.

    Args:
        parser: the parser of the command at ``path``.
        own_parsers: by name, the parsers of the subcommands of cli.WITH_PARSERS.
        path: the words of the command, such as "theano-fast cache"; "" is the parser's program.
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
        yield from list_words(own_parsers.get(name, subparser), own_parsers, f"{path} {name}")


def make_script(
    shell: str, parser: argparse.ArgumentParser, own_parsers: Mapping[str, argparse.ArgumentParser]
) -> str:
    """Return the completion script of one of SHELLS; list_words describes the parsers."""
    words_by_path = dict(list_words(parser, own_parsers))
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
        subcommands = {
            longer_path.removeprefix(f"{path} ").split()[0]
            for longer_path in words_by_path
            if longer_path.startswith(f"{path} ")
        }
        if subcommands:
            conditions.append(f"not __fish_seen_subcommand_from {' '.join(sorted(subcommands))}")
        condition = shlex.quote("; and ".join(conditions) or "true")
        yield f"complete -c {command} -n {condition} -a {shlex.quote(' '.join(words))}\n"
