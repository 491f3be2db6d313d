"""Test the replacement of tabs in the indentation of programs."""

import ast

from theano_fast.porting import sources


def test_form_feeds_do_not_change_which_tabs_are_replaced():
    text = '''if 1:
\ta = """
\tb"""
\f
if 2:
\ta = """
\tb"""
\f\tb = a
'''
    expanded = sources.expand_tabs(text)
    assert (
        expanded
        == '''if 1:
        a = """
\tb"""
\f
if 2:
        a = """
\tb"""
\f        b = a
'''
    )
    ast.parse(expanded)
