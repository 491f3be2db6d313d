"""Expressions whose loops g++ must vectorize on each processor with fused multiply-add."""

EXPRESSIONS = {
    **{name: f"tensor.{name}(x)" for name in ("exp", "log", "log1p", "tanh")},
    "pow": "x ** y",
    "sigmoid": "tensor.nnet.sigmoid(x)",
    "softplus": "tensor.nnet.softplus(x)",
    "cell": "tensor.tanh(x) * tensor.nnet.sigmoid(x) + tensor.exp(x)",
}
