"""Python source of expressions of x and y whose loops g++ must vectorize.

This applies to all processors with fused multiply-add.
"""

EXPRESSIONS = {
    **{name: f"tensor.{name}(x)" for name in ("exp", "log", "log1p", "tanh")},
    "pow": "x ** y",
    "sigmoid": "tensor.nnet.sigmoid(x)",
    "softplus": "tensor.nnet.softplus(x)",
    "cell": "tensor.tanh(x) * tensor.nnet.sigmoid(x) + tensor.exp(x)",
}
