import argparse

import pytest
from theano_fast import completion


@pytest.fixture
def parser():
    """Return the parser of a command with two subcommands, one of which has its own parser."""
    parser = argparse.ArgumentParser(prog="theano-fast")
    commands = parser.add_subparsers()
    check = commands.add_parser("check")
    check.add_argument("--full", action="store_true")
    check.add_argument("preset", choices=["fast", "slow"])
    commands.add_parser("profile", add_help=False).add_argument("words", nargs="...")
    return parser


@pytest.fixture
def others():
    """Return the subcommand's own parser."""
    parser = argparse.ArgumentParser(prog="theano-fast profile")
    parser.add_subparsers().add_parser("read").add_argument("--html")
    return {"profile": parser}


def test_each_command_has_its_words(parser, others):
    assert dict(completion.list_words(parser, others)) == {
        "theano-fast": ("-h", "--help", "check", "profile"),
        "theano-fast check": ("-h", "--help", "--full", "fast", "slow"),
        "theano-fast profile": ("-h", "--help", "read"),
        "theano-fast profile read": ("-h", "--help", "--html"),
    }


def test_fish_distinguishes_a_command_from_its_subcommands(parser, others):
    lines = completion.make_script("fish", parser, others).splitlines()
    assert (
        "complete -c theano-fast -n '__fish_seen_subcommand_from profile; and not"
        " __fish_seen_subcommand_from read' -a '-h --help read'"
    ) in lines


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_function_has_each_command(parser, others, shell):
    script = completion.make_script(shell, parser, others)
    assert "'theano-fast profile read') words='-h --help --html' ;;" in script
