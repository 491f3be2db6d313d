"""Test the completion scripts of bash, zsh and fish for a small command line."""

import argparse

import pytest
from theano_fast import completion


@pytest.fixture
def parser():
    """Return a parser with the subcommands check and profile; profile has its own parser."""
    parser = argparse.ArgumentParser(prog="theano-fast")
    commands = parser.add_subparsers()
    check = commands.add_parser("check")
    check.add_argument("--full", action="store_true")
    check.add_argument("preset", choices=["fast", "slow"])
    commands.add_parser("profile", add_help=False).add_argument("words", nargs="...")
    return parser


@pytest.fixture
def other_parsers():
    """Return the parser of the subcommand profile, by name."""
    parser = argparse.ArgumentParser(prog="theano-fast profile")
    parser.add_subparsers().add_parser("read").add_argument("--html")
    return {"profile": parser}


def test_each_command_is_completed_by_its_options_choices_and_subcommands(parser, other_parsers):
    assert dict(completion.list_words(parser, other_parsers)) == {
        "theano-fast": ("-h", "--help", "check", "profile"),
        "theano-fast check": ("-h", "--help", "--full", "fast", "slow"),
        "theano-fast profile": ("-h", "--help", "read"),
        "theano-fast profile read": ("-h", "--help", "--html"),
    }


def test_fish_does_not_complete_a_command_after_its_subcommand(parser, other_parsers):
    lines = completion.make_script("fish", parser, other_parsers).splitlines()
    assert (
        "complete -c theano-fast -n '__fish_seen_subcommand_from profile; and not"
        " __fish_seen_subcommand_from read' -a '-h --help read'"
    ) in lines


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_the_script_of_a_shell_has_a_case_for_each_command(parser, other_parsers, shell):
    script = completion.make_script(shell, parser, other_parsers)
    assert "'theano-fast profile read') words='-h --help --html' ;;" in script
