"""Test the search for lines of a ported program that a user must check."""

import ast

import pytest
from theano_fast.porting import rules


def find_line_numbers(source):
    """Return the numbers of the lines to check by hand."""
    return [line.number for line in rules.find_lines(ast.parse(source))]


@pytest.mark.parametrize(
    "source",
    [
        "for i in range(n / 2): pass",
        "x[: n / 2]",
        "x[(a - 1) / 2, 0]",
        "np.zeros((n / 2, 3))",
        "x.reshape((-1, n / 2))",
        "rng.uniform(size=(n / 2,))",
        "batches = n / size\nfor i in range(batches): pass",
        "batches = n / size\nvalidation = batches - 3\nfor i in range(validation): pass",
        "half = n / 2\nshape = (m, half)\nx.reshape(shape)",
        "rows = best / width\nfor i, [row, c] in enumerate(zip(rows, best % width)): xs[row]",
        "'-' * (n / 2)",
        "xs + d.values()",
        "d.keys()[0]",
        "pairs = map(f, xs)\npairs[0]",
        "pairs = zip(xs, ys)\nfor a in pairs: pass\nfor b in pairs: pass",
        "len(filter(None, xs))",
        "json.dump(x, open(name, 'wb'))",
        "with open(name, 'wb') as file:\n    file.write('a %d' % 1)",
        "for line in open(name, 'rb'):\n    line.strip().split()",
        "pickle.dump(x, open(name, 'w'))",
        "import yaml\nyaml.load(text)",
        "import h5py\nh5py.File(name)",
        "from joblib.pool import MemmapingPool",
        "import scipy.misc\nscipy.misc.imread(name)",
        "import string\nstring.join(words)",
        "xs.sort(cmp=compare)",
        "class A:\n    def __div__(self, other): pass",
    ],
)
def test_code_that_python_3_runs_differently_must_be_checked_by_hand(source):
    assert find_line_numbers(source)


@pytest.mark.parametrize(
    "source",
    [
        "for i in range(n // 2): pass",
        "for i in range(int(n / 2)): pass",
        "x[int(n / 2)]",
        "mean = total / n\nx[0]",
        "y = x[0] / 2",
        "np.zeros(n) / 2",
        "rng.uniform(low=-1 / n, size=(3,))",
        "means = xs / n\nfor i, mean in enumerate(means): xs[i]",
        "means = xs / n\nfor i, mean in zip(indices, means): xs[i]",
        "batches = int(n / size)\nfor i in range(batches): pass",
        "list(d.values())[0]",
        "for a, b in zip(xs, ys): pass",
        "pairs = list(map(f, xs))\npairs[0]",
        "pairs = zip(xs, ys)\nfor a in pairs: pass",
        "pairs = zip(xs, ys)\npairs = list(pairs)\npairs[0]",
        "json.dump(x, open(name, 'w'))",
        "with open(name, 'wb') as file:\n    file.write(data)\n    pickle.dump(x, file)",
        "for line in open(name, 'rb'):\n    line.decode().split()",
        "import yaml\nyaml.load(text, Loader=yaml.SafeLoader)\nyaml.safe_load(text)",
        "import h5py\nh5py.File(name, 'r')\nh5py.File(name, mode='a')",
        "import string\nstring.ascii_letters",
    ],
)
def test_code_that_python_3_runs_in_the_same_way_needs_no_check(source):
    assert find_line_numbers(source) == []


def test_code_with_the_future_import_of_division_needs_no_check():
    assert find_line_numbers("from __future__ import division\nx[n / 2]") == []


def test_the_advised_change_keeps_parentheses():
    (line,) = rules.find_lines(ast.parse("x[(a - 1) / 2]"))
    assert line.advice.endswith("(a - 1) // 2")
