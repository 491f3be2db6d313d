"""Write convolutions and pooling, and their gradients."""

from __future__ import annotations

from fuzz.grammar.writer import Variable, Writer


def write(writer: Writer) -> Variable:
    """Write a convolution or a pooling."""
    return writer.choose(
        (write_convolution, write_convolution, write_pooling, write_pooling, write_other)
    )(writer)


def _choose_images(writer: Writer, dtype: str, sizes: tuple[str, ...]) -> Variable:
    same = [
        variable for variable in writer.inputs if variable.dtype == dtype and variable.dims == sizes
    ]
    return writer.choose(same) if same else writer.add_input(dtype, sizes)


def _add_with_gradient(writer: Writer, text: str, dtype: str, *of: Variable) -> Variable:
    dims = tuple(f"{text}{axis}" for axis in range(4))
    if writer.decide(40):
        wrt = writer.choose([variable for variable in of if variable in writer.inputs])
        text = f"T.grad(({text} ** 2).sum(), {wrt.name})"
        return writer.add(text, dtype, wrt.dims, *of)
    return writer.add(text, dtype, dims, *of, exact=True)


def write_convolution(writer: Writer) -> Variable:
    """Write a convolution of images with filters."""
    dtype = writer.choose(("float64", "float32"))
    rows, columns = writer.choose("3456"), writer.choose("345")
    channels = writer.choose(("1", "2", "2"))
    batch = writer.choose(("a", "b", "2"))
    x = _choose_images(writer, dtype, (batch, channels, rows, columns))
    k = writer.add_input(
        dtype, (writer.choose("12"), channels, writer.choose("123"), writer.choose("123"))
    )
    mode = writer.choose(("'valid'", "'full'", "'half'", "(1, 2)", "(0, 1)", "1"))
    more = f"border_mode={mode}"
    if writer.decide(50):
        more += f", subsample=({writer.choose((1, 2))}, {writer.choose((1, 2, 3))})"
    if writer.decide(25):
        more += ", filter_flip=False"
    if writer.decide(20):
        more += f", filter_dilation=({writer.choose((1, 2))}, 1)"
    if writer.decide(30):
        more += f", filter_shape=({', '.join(k.dims)})"
    return _add_with_gradient(writer, f"T.nnet.conv2d({x.name}, {k.name}, {more})", dtype, x, k)


def write_pooling(writer: Writer) -> Variable:
    """Write a pooling of images."""
    dtype = writer.choose(("float64", "float32"))
    dims = (writer.choose("a2"), writer.choose("12"), writer.choose("3456"), writer.choose("3456"))
    x = _choose_images(writer, dtype, dims)
    mode = writer.choose(("max", "sum", "average_inc_pad", "average_exc_pad"))
    ws = f"({writer.choose((1, 2, 3))}, {writer.choose((1, 2, 3))})"
    more = f"ignore_border={writer.decide(60)}, mode={mode!r}"
    if writer.decide(40):
        more += f", stride=({writer.choose((1, 2, 3))}, {writer.choose((1, 2))})"
    elif writer.decide(30) and "True" in more:
        ws = "(2, 3)"
        more += f", pad=({writer.choose((0, 1))}, 1)"
    return _add_with_gradient(writer, f"pool_2d({x.name}, {ws}, {more})", dtype, x)


def write_other(writer: Writer) -> Variable:
    """Write a convolution in one or three dimensions, or images2neibs."""
    dtype = writer.choose(("float64", "float32"))
    form = writer.choose(("conv3d", "neibs", "neibs", "bilinear", "one"))
    if form == "conv3d":
        x = _choose_images(writer, dtype, ("2", "1", "3", "4", "3"))
        k = writer.add_input(dtype, ("2", "1", writer.choose("12"), "2", writer.choose("12")))
        mode = writer.choose(("'valid'", "'full'", "'half'"))
        text = f"T.nnet.conv3d({x.name}, {k.name}, border_mode={mode})"
        dims = tuple(f"{text}{axis}" for axis in range(5))
        return writer.add(text, dtype, dims, x, k, exact=True)
    x = _choose_images(writer, dtype, ("a", "2", "4", "6"))
    if form == "neibs":
        mode = writer.choose(("valid", "ignore_borders", "half", "full"))
        shape = f"({writer.choose((1, 2, 3))}, 2)"
        text = f"images2neibs({x.name}, {shape}, mode={mode!r})"
        return writer.add(text, dtype, (f"{text}0", f"{text}1"), x, exact=True)
    if form == "bilinear":
        more = "2, batch_size=None, num_input_channels=2"
        text = f"T.nnet.abstract_conv.bilinear_upsampling({x.name}, {more})"
        return writer.add(text, dtype, tuple(f"{text}{p}" for p in range(4)), x, exact=True)
    k = writer.add_input(dtype, ("2", "2", "1", writer.choose("123")))
    text = f"T.nnet.conv2d({x.name}, {k.name}, border_mode='valid')"
    return _add_with_gradient(writer, text, dtype, x, k)
