import argparse

import pytest
from theano_fast import completion


@pytest.fixture
def parser():
    """A command with two commands, one of which leaves its words to another parser."""
    made = argparse.ArgumentParser(prog="theano-fast")
    commands = made.add_subparsers()
    check = commands.add_parser("check")
    check.add_argument("--full", action="store_true")
    check.add_argument("preset", choices=["fast", "slow"])
    commands.add_parser("profile", add_help=False).add_argument("words", nargs="...")
    return made


@pytest.fixture
def others():
    """The other parser."""
    made = argparse.ArgumentParser(prog="theano-fast profile")
    made.add_subparsers().add_parser("read").add_argument("--html")
    return {"profile": made}


def test_words_are_those_of_each_command(parser, others):
    assert dict(completion.words(parser, others)) == {
        "theano-fast": ("-h", "--help", "check", "profile"),
        "theano-fast check": ("-h", "--help", "--full", "fast", "slow"),
        "theano-fast profile": ("-h", "--help", "read"),
        "theano-fast profile read": ("-h", "--help", "--html"),
    }


def test_fish_tells_a_command_from_those_below_it(parser, others):
    lines = completion.script("fish", parser, others).splitlines()
    assert (
        "complete -c theano-fast -n '__fish_seen_subcommand_from profile; and not"
        " __fish_seen_subcommand_from read' -a '-h --help read'"
    ) in lines


@pytest.mark.parametrize("shell", ["bash", "zsh"])
def test_a_function_has_each_command(parser, others, shell):
    made = completion.script(shell, parser, others)
    assert "'theano-fast profile read') found='-h --help --html' ;;" in made
