"""Write random draws from streams with a seed. Optimizations must not change a bit of a draw."""

from __future__ import annotations

from fuzz.grammar import subtensors
from fuzz.grammar.writer import Variable, Writer


def write(writer: Writer) -> Variable:
    """Write one or two draws from a new stream; the draws become outputs."""
    seed = writer.choose((1, 7, 1234))
    kind = writer.choose(("MRG_RandomStreams", "MRG_RandomStreams", "RandomStreams"))
    stream = writer.add_statement(f"{kind}({seed})")
    # Draws must be equal: this makes the tolerance 0.
    writer.rounding = False
    x = writer.choose_variable(("float64", "float32"), (1, 2))
    size = writer.choose(
        (
            "(3,)",
            "(2, 3)",
            "(0,)",
            "(1,)",
            f"({x.name}.shape[0],)",
            "(17,)",
            f"({x.name}.shape[0], 3)",
            f"({subtensors.add_position(writer, 0, 4).name}, 2)",
        )
    )
    ndim = size.count(",") + (0 if size.endswith(",)") else 1)
    dims = tuple(f"{size}{axis}" for axis in range(ndim))
    dtype = writer.choose(("float64", "float32"))
    forms = [
        (f"uniform({size}, dtype={dtype!r})", dtype),
        (f"uniform({size}, low=-2, high=3, dtype={dtype!r})", dtype),
        (f"binomial({size}, p=0.4, dtype='int64')", "int64"),
    ]
    if kind == "RandomStreams":
        forms += [
            (f"random_integers({size}, 0, 9)", "int64"),
            (f"permutation(({size[1:-1].rstrip(',')},), 4)", "int64"),
            (f"normal({size}, 1.0, 2.0, dtype={dtype!r})", dtype),
        ]
    text, drawn_dtype = writer.choose(forms)
    if "permutation" in text:
        text, dims, drawn_dtype = "permutation((2,), 4)", ("2", "4"), "int64"
    drawn = writer.add(f"{stream}.{text}", drawn_dtype, dims)
    if writer.decide(40):
        second = writer.add(f"{stream}.{text}", drawn_dtype, dims)
        writer.outputs.append(second.name)
    writer.outputs.append(drawn.name)
    return drawn
