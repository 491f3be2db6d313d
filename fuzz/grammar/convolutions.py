"""Write convolutions, pooling and similar operations on images, and their gradients."""

from __future__ import annotations

from fuzz.grammar.writer import Variable, Writer


def write(writer: Writer) -> Variable:
    """Write a convolution, a pooling, or another operation on images."""
    return writer.choose(
        (write_convolution, write_convolution, write_pooling, write_pooling, write_other)
    )(writer)


def _choose_images(writer: Writer, dtype: str, dims: tuple[str, ...]) -> Variable:
    """Return an input of this type with these dimensions; add an input if none exists."""
    candidates = [
        variable for variable in writer.inputs if variable.dtype == dtype and variable.dims == dims
    ]
    return writer.choose(candidates) if candidates else writer.add_input(dtype, dims)


def _add_with_gradient(writer: Writer, text: str, dtype: str, *operands: Variable) -> Variable:
    """Add the operation ``text`` with four dimensions, or the gradient of its sum of squares."""
    dims = tuple(f"{text}{axis}" for axis in range(4))
    if writer.decide(40):
        wrt = writer.choose([variable for variable in operands if variable in writer.inputs])
        text = f"T.grad(({text} ** 2).sum(), {wrt.name})"
        return writer.add(text, dtype, wrt.dims, *operands)
    return writer.add(text, dtype, dims, *operands, exact=True)


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
    options = f"border_mode={mode}"
    if writer.decide(50):
        options += f", subsample=({writer.choose((1, 2))}, {writer.choose((1, 2, 3))})"
    if writer.decide(25):
        options += ", filter_flip=False"
    if writer.decide(20):
        options += f", filter_dilation=({writer.choose((1, 2))}, 1)"
    if writer.decide(30):
        options += f", filter_shape=({', '.join(k.dims)})"
    text = f"T.nnet.conv2d({x.name}, {k.name}, {options})"
    return _add_with_gradient(writer, text, dtype, x, k)


def write_pooling(writer: Writer) -> Variable:
    """Write a pooling of images."""
    dtype = writer.choose(("float64", "float32"))
    dims = (writer.choose("a2"), writer.choose("12"), writer.choose("3456"), writer.choose("3456"))
    x = _choose_images(writer, dtype, dims)
    mode = writer.choose(("max", "sum", "average_inc_pad", "average_exc_pad"))
    ws = f"({writer.choose((1, 2, 3))}, {writer.choose((1, 2, 3))})"
    options = f"ignore_border={writer.decide(60)}, mode={mode!r}"
    if writer.decide(40):
        options += f", stride=({writer.choose((1, 2, 3))}, {writer.choose((1, 2))})"
    elif writer.decide(30) and "True" in options:
        ws = "(2, 3)"
        options += f", pad=({writer.choose((0, 1))}, 1)"
    return _add_with_gradient(writer, f"pool_2d({x.name}, {ws}, {options})", dtype, x)


def write_other(writer: Writer) -> Variable:
    """Write conv3d, images2neibs, bilinear_upsampling, or conv2d with filters of height 1."""
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
        options = "2, batch_size=None, num_input_channels=2"
        text = f"T.nnet.abstract_conv.bilinear_upsampling({x.name}, {options})"
        return writer.add(text, dtype, tuple(f"{text}{p}" for p in range(4)), x, exact=True)
    k = writer.add_input(dtype, ("2", "2", "1", writer.choose("123")))
    text = f"T.nnet.conv2d({x.name}, {k.name}, border_mode='valid')"
    return _add_with_gradient(writer, text, dtype, x, k)
