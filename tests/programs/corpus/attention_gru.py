"""Train a GRU encoder and decoder with attention by Adadelta; sample and decode with beam search.

The program computes both gates in one product, and slices the product. It masks padding with
``m[:, None] * h``. The sampler passes no mask, so the layer creates a column of ones.
"""

from collections import OrderedDict

import numpy as np
import theano
from theano import tensor
from theano.sandbox.rng_mrg import MRG_RandomStreams

WORDS, EMBEDDING, UNITS = 11, 6, 5
NUMBERS = np.random.RandomState(1234)


def weights(*shape):
    return (0.3 * NUMBERS.randn(*shape)).astype(theano.config.floatX)


def part(x, number, width):
    """Return the number-th slice of a joined product."""
    if x.ndim == 3:
        return x[:, :, number * width : (number + 1) * width]
    return x[:, number * width : (number + 1) * width]


def init_parameters():
    values = OrderedDict()
    values["Wemb"] = weights(WORDS, EMBEDDING)
    values["Wemb_dec"] = weights(WORDS, EMBEDDING)
    for name, inputs in (
        ("encoder", EMBEDDING),
        ("encoder_r", EMBEDDING),
        ("decoder", EMBEDDING),
        ("attending", 2 * UNITS),
    ):
        values[f"{name}_W"] = weights(inputs, 2 * UNITS)
        values[f"{name}_b"] = weights(2 * UNITS)
        values[f"{name}_U"] = weights(UNITS, 2 * UNITS)
        values[f"{name}_Wx"] = weights(inputs, UNITS)
        values[f"{name}_bx"] = weights(UNITS)
        values[f"{name}_Ux"] = weights(UNITS, UNITS)
    values["att_Wc"] = weights(2 * UNITS, 2 * UNITS)
    values["att_Wd"] = weights(UNITS, 2 * UNITS)
    values["att_b"] = weights(2 * UNITS)
    values["att_u"] = weights(2 * UNITS, 1)
    values["att_c"] = weights(1)
    values["state_W"] = weights(2 * UNITS, UNITS)
    values["state_b"] = weights(UNITS)
    values["logit_Ws"] = weights(UNITS, EMBEDDING)
    values["logit_Wy"] = weights(EMBEDDING, EMBEDDING)
    values["logit_Wc"] = weights(2 * UNITS, EMBEDDING)
    values["logit_b"] = weights(EMBEDDING)
    values["out_W"] = weights(EMBEDDING, WORDS)
    values["out_b"] = weights(WORDS)
    return OrderedDict((name, theano.shared(value, name=name)) for name, value in values.items())


def gru_layer(p, below, prefix, mask=None):
    """Run a GRU over (time, sample, feature)."""
    samples = below.shape[1] if below.ndim == 3 else 1
    if mask is None:
        mask = tensor.alloc(1.0, below.shape[0], 1)
    gates = tensor.dot(below, p[f"{prefix}_W"]) + p[f"{prefix}_b"]
    candidates = tensor.dot(below, p[f"{prefix}_Wx"]) + p[f"{prefix}_bx"]

    def step(m, x, xx, h, U, Ux):
        preact = tensor.nnet.sigmoid(tensor.dot(h, U) + x)
        r, u = part(preact, 0, UNITS), part(preact, 1, UNITS)
        new = tensor.tanh(tensor.dot(h, Ux) * r + xx)
        new = u * h + (1.0 - u) * new
        return m[:, None] * new + (1.0 - m)[:, None] * h

    states, _ = theano.scan(
        step,
        sequences=[mask, gates, candidates],
        outputs_info=[tensor.zeros((samples, UNITS))],
        non_sequences=[p[f"{prefix}_U"], p[f"{prefix}_Ux"]],
        name=f"{prefix}_layers",
        n_steps=below.shape[0],
        strict=True,
    )
    return states


def attending_layer(p, below, context, state, mask=None, context_mask=None, one_step=False):
    """Run the decoder: a GRU, attention to the context, and a second GRU on the result."""
    if mask is None:
        mask = tensor.alloc(1.0, below.shape[0], 1)
    projected = tensor.dot(context, p["att_Wc"]) + p["att_b"]
    gates = tensor.dot(below, p["decoder_W"]) + p["decoder_b"]
    candidates = tensor.dot(below, p["decoder_Wx"]) + p["decoder_bx"]
    names = ["decoder_U", "decoder_Ux", "att_Wd", "att_u", "att_c"]
    names += [f"attending_{name}" for name in ("W", "b", "U", "Wx", "bx", "Ux")]

    def step(m, x, xx, h, _read, _alpha, projected, context, U, Ux, Wd, u_att, c_att, *second):
        W2, b2, U2, Wx2, bx2, Ux2 = second
        preact = tensor.nnet.sigmoid(tensor.dot(h, U) + x)
        r1, u1 = part(preact, 0, UNITS), part(preact, 1, UNITS)
        h1 = tensor.tanh(tensor.dot(h, Ux) * r1 + xx)
        h1 = u1 * h + (1.0 - u1) * h1
        h1 = m[:, None] * h1 + (1.0 - m)[:, None] * h

        attention = tensor.tanh(tensor.dot(h1, Wd)[None, :, :] + projected)
        alpha = tensor.dot(attention, u_att) + c_att
        alpha = tensor.exp(alpha.reshape([alpha.shape[0], alpha.shape[1]]))
        if context_mask:
            alpha = alpha * context_mask
        alpha = alpha / alpha.sum(0, keepdims=True)
        read = (context * alpha[:, :, None]).sum(0)

        preact = tensor.dot(h1, U2) + b2 + tensor.dot(read, W2)
        preact = tensor.nnet.sigmoid(preact)
        r2, u2 = part(preact, 0, UNITS), part(preact, 1, UNITS)
        h2 = tensor.tanh((tensor.dot(h1, Ux2) + bx2) * r2 + tensor.dot(read, Wx2))
        h2 = u2 * h1 + (1.0 - u2) * h2
        h2 = m[:, None] * h2 + (1.0 - m)[:, None] * h1
        return h2, read, alpha.T

    shared = [p[name] for name in names]
    if one_step:
        return step(mask, gates, candidates, state, None, None, projected, context, *shared)
    outputs, _ = theano.scan(
        step,
        sequences=[mask, gates, candidates],
        outputs_info=[
            state,
            tensor.zeros((below.shape[1], context.shape[2])),
            tensor.zeros((below.shape[1], context.shape[0])),
        ],
        non_sequences=[projected, context, *shared],
        name="decoder_layers",
        n_steps=below.shape[0],
        strict=True,
    )
    return outputs


def encode(p, x, mask=None):
    """Return the context (time, sample, both directions)."""
    n = x.shape[0], x.shape[1]
    backwards = x[::-1]
    emb = p["Wemb"][x.flatten()].reshape([n[0], n[1], EMBEDDING])
    emb_r = p["Wemb"][backwards.flatten()].reshape([n[0], n[1], EMBEDDING])
    forward = gru_layer(p, emb, "encoder", mask)
    backward = gru_layer(p, emb_r, "encoder_r", None if mask is None else mask[::-1])
    return tensor.concatenate([forward, backward[::-1]], axis=forward.ndim - 1)


def first_state(p, mean):
    return tensor.tanh(tensor.dot(mean, p["state_W"]) + p["state_b"])


def logits(p, state, emb, read):
    hidden = tensor.dot(state, p["logit_Ws"]) + tensor.dot(emb, p["logit_Wy"])
    return tensor.tanh(hidden + tensor.dot(read, p["logit_Wc"]) + p["logit_b"])


def build_model(p, trng, use_noise):
    x, y = tensor.matrix("x", dtype="int64"), tensor.matrix("y", dtype="int64")
    x_mask, y_mask = tensor.matrix("x_mask"), tensor.matrix("y_mask")
    context = encode(p, x, x_mask)
    mean = (context * x_mask[:, :, None]).sum(0) / x_mask.sum(0)[:, None]
    emb = p["Wemb_dec"][y.flatten()].reshape([y.shape[0], y.shape[1], EMBEDDING])
    shifted = tensor.set_subtensor(tensor.zeros_like(emb)[1:], emb[:-1])
    states, reads, alphas = attending_layer(
        p, shifted, context, first_state(p, mean), y_mask, context_mask=x_mask
    )
    hidden = logits(p, states, shifted, reads)
    hidden = tensor.switch(
        use_noise,
        hidden * trng.binomial(hidden.shape, p=0.5, n=1, dtype=hidden.dtype),
        hidden * 0.5,
    )
    scores = tensor.dot(hidden, p["out_W"]) + p["out_b"]
    shape = scores.shape
    probs = tensor.nnet.softmax(scores.reshape([shape[0] * shape[1], shape[2]]))
    flat = y.flatten()
    index = tensor.arange(flat.shape[0]) * WORDS + flat
    cost = -tensor.log(probs.flatten()[index])
    cost = (cost.reshape([y.shape[0], y.shape[1]]) * y_mask).sum(0)
    return [x, x_mask, y, y_mask], cost, alphas


def build_sampler(p, trng):
    x = tensor.matrix("x", dtype="int64")
    context = encode(p, x)
    f_init = theano.function([x], [first_state(p, context.mean(0)), context], name="f_init")
    y, state = tensor.vector("y_sampler", dtype="int64"), tensor.matrix("init_state")
    emb = tensor.switch(
        y[:, None] < 0, tensor.alloc(0.0, 1, p["Wemb_dec"].shape[1]), p["Wemb_dec"][y]
    )
    new_state, read, _ = attending_layer(p, emb, context, state, one_step=True)
    scores = tensor.dot(logits(p, new_state, emb, read) * 0.5, p["out_W"]) + p["out_b"]
    probs = tensor.nnet.softmax(scores)
    sample = trng.multinomial(pvals=probs).argmax(1)
    f_next = theano.function([y, context, state], [probs, sample, new_state], name="f_next")
    return f_init, f_next


def sample(f_init, f_next, x, length):
    """Draw one sentence."""
    (state, context), word, drawn = f_init(x), np.array([-1]), []
    for _ in range(length):
        _, word, state = f_next(word, context, state)
        drawn.append(int(word[0]))
    return drawn


def beam_search(f_init, f_next, x, width, length):
    """Return the best sentences and their costs."""
    state, context = f_init(x)
    sentences, costs, words = [[]], np.zeros(1), np.array([-1])
    for _ in range(length):
        probs, _, state = f_next(words, np.tile(context, [1, len(sentences), 1]), state)
        new_costs = costs[:, None] - np.log(probs)
        best = new_costs.ravel().argsort()[:width]
        rows, words = best // WORDS, best % WORDS
        sentences = [[*sentences[row], int(word)] for row, word in zip(rows, words)]
        costs, state = new_costs.ravel()[best], state[rows]
    return sentences, costs


def adadelta(p, grads, inputs, cost):
    """Compile the two functions of a step; shared variables pass the gradients between them."""

    def make_zeros(suffix):
        return [
            theano.shared(value.get_value() * 0.0, name=f"{name}_{suffix}")
            for name, value in p.items()
        ]

    stored = make_zeros("grad")
    squares, steps = make_zeros("rgrad2"), make_zeros("rup2")
    updates = list(zip(stored, grads))
    updates += [(old, 0.95 * old + 0.05 * g**2) for old, g in zip(squares, grads)]
    f_grad_shared = theano.function(inputs, cost, updates=updates)
    changes = [
        -tensor.sqrt(old + 1e-6) / tensor.sqrt(square + 1e-6) * g
        for g, old, square in zip(stored, steps, squares)
    ]
    updates = [(old, 0.95 * old + 0.05 * change**2) for old, change in zip(steps, changes)]
    updates += [(param, param + change) for param, change in zip(p.values(), changes)]
    f_update = theano.function([], [], updates=updates, on_unused_input="ignore")
    return f_grad_shared, f_update


def results():
    """Yield the losses, then the probabilities, samples and beams of the trained sampler."""
    trng, use_noise = MRG_RandomStreams(1234), theano.shared(np.array(0.0))
    p = init_parameters()
    inputs, cost, alphas = build_model(p, trng, use_noise)
    cost = cost.mean() + 1e-3 * sum((value**2).sum() for value in p.values())
    grads = tensor.grad(cost, wrt=list(p.values()))
    norm = sum((g**2).sum() for g in grads)
    grads = [tensor.switch(norm > 1.0, g / tensor.sqrt(norm), g) for g in grads]
    step, update = adadelta(p, grads, inputs, [cost, alphas])
    x, y = NUMBERS.randint(2, WORDS, (7, 3)), NUMBERS.randint(2, WORDS, (6, 3))
    x_mask, y_mask = np.ones((7, 3)), np.ones((6, 3))
    x_mask[5:, 1] = y_mask[3:, 2] = 0
    use_noise.set_value(np.array(1.0))
    for _ in range(3):
        loss, alphas = step(x, x_mask, y, y_mask)
        update()
        yield float(loss)
    yield alphas.sum(axis=(0, 1)).tolist()
    f_init, f_next = build_sampler(p, trng)
    sentences, costs = beam_search(f_init, f_next, x[:, :1], 4, 5)
    yield [sentences, costs.tolist(), sample(f_init, f_next, x[:, :1], 5)]
