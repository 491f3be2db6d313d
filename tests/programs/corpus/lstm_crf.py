"""Tag words by a conditional random field on LSTMs over characters and over words."""

import numpy as np
import theano
from theano import tensor as T

WORDS, CHARACTERS, TAGS, CHARACTER_UNITS, UNITS = 20, 9, 4, 3, 5
NUMBERS = np.random.RandomState(7)


def shared(shape, name):
    bound = np.sqrt(6.0 / sum(shape)) if shape else 0.0
    value = NUMBERS.uniform(-bound, bound, shape)
    return theano.shared(value.astype(theano.config.floatX), name=name)


class LSTM:
    """An LSTM with coupled gates, over one sequence or a batch of sequences."""

    def __init__(self, inputs, units, with_batch, name):
        self.units, self.with_batch = units, with_batch
        self.w = {
            gate: [
                shared((inputs, units), f"{name}_w_x{gate}"),
                shared((units, units), f"{name}_w_h{gate}"),
                shared((units,), f"{name}_b_{gate}"),
            ]
            for gate in "ico"
        }
        self.peepholes = [shared((units, units), f"{name}_w_c{gate}") for gate in "io"]
        self.c_0, self.h_0 = shared((units,), f"{name}_c_0"), shared((units,), f"{name}_h_0")
        self.params = [value for values in self.w.values() for value in values]
        self.params += [*self.peepholes, self.c_0, self.h_0]

    def link(self, inputs):
        def recurrence(x_t, c_before, h_before):
            def gate(name):
                w_x, w_h, b = self.w[name]
                return T.dot(x_t, w_x) + T.dot(h_before, w_h) + b

            i_t = T.nnet.sigmoid(gate("i") + T.dot(c_before, self.peepholes[0]))
            c_t = (1 - i_t) * c_before + i_t * T.tanh(gate("c"))
            o_t = T.nnet.sigmoid(gate("o") + T.dot(c_t, self.peepholes[1]))
            return [c_t, o_t * T.tanh(c_t)]

        if self.with_batch:
            inputs = inputs.dimshuffle(1, 0, 2)
            first = [T.alloc(x, inputs.shape[1], self.units) for x in (self.c_0, self.h_0)]
        else:
            first = [self.c_0, self.h_0]
        [_, h], _ = theano.scan(fn=recurrence, sequences=inputs, outputs_info=first)
        return h


def log_sum_exp(x, axis=None):
    largest = x.max(axis=axis, keepdims=True)
    return largest.max(axis=axis) + T.log(T.sum(T.exp(x - largest), axis=axis))


def forward(observations, transitions, viterbi=False, return_best_sequence=False):
    """Return the log-sum-exp of all paths' scores, or the tags of the best path."""

    def recurrence(obs, previous, transitions):
        previous = previous.dimshuffle(0, "x")
        obs = obs.dimshuffle("x", 0)
        if viterbi:
            scores = previous + obs + transitions
            if return_best_sequence:
                return scores.max(axis=0), scores.argmax(axis=0)
            return scores.max(axis=0)
        return log_sum_exp(previous + obs + transitions, axis=0)

    alpha, _ = theano.scan(
        fn=recurrence,
        outputs_info=(observations[0], None) if return_best_sequence else observations[0],
        sequences=[observations[1:]],
        non_sequences=transitions,
    )
    if not return_best_sequence:
        return (T.max if viterbi else log_sum_exp)(alpha[-1], axis=0)
    sequence, _ = theano.scan(
        fn=lambda backpointers, previous: backpointers[previous],
        outputs_info=T.cast(T.argmax(alpha[0][-1]), "int32"),
        sequences=T.cast(alpha[1][::-1], "int32"),
    )
    return T.concatenate([sequence[::-1], [T.argmax(alpha[0][-1])]])


def results():
    """Yield the losses of sentences, then tags."""
    srng = T.shared_randomstreams.RandomStreams(seed=3)
    is_train = T.iscalar("is_train")
    word_ids, tag_ids = T.ivector("word_ids"), T.ivector("tag_ids")
    char_ids, char_lengths = T.imatrix("char_ids"), T.ivector("char_lengths")
    length = word_ids.shape[0]

    embeddings, character_table = shared((WORDS, 6), "words"), shared((CHARACTERS, 4), "chars")
    inside = LSTM(4, CHARACTER_UNITS, True, "char_for")
    inside_back = LSTM(4, CHARACTER_UNITS, True, "char_rev")
    letters = character_table[char_ids]
    last = char_lengths - 1
    for_output = inside.link(letters)[last, T.arange(length)]
    rev_output = inside_back.link(letters[:, ::-1])[-1]
    inputs = T.concatenate([embeddings[word_ids], for_output, rev_output], axis=1)
    dropped = inputs * srng.binomial(n=1, p=0.5, size=inputs.shape, dtype=inputs.dtype)
    inputs = T.switch(T.neq(is_train, 0), dropped, 0.5 * inputs)

    width = 6 + 2 * CHARACTER_UNITS
    onwards, backwards = LSTM(width, UNITS, False, "for"), LSTM(width, UNITS, False, "rev")
    both = [onwards.link(inputs), backwards.link(inputs[::-1, :])[::-1, :]]
    w, b = shared((2 * UNITS, UNITS), "tanh_w"), shared((UNITS,), "tanh_b")
    hidden = T.tanh(T.dot(T.concatenate(both, axis=1), w) + b)
    w_out, b_out = shared((UNITS, TAGS), "final_w"), shared((TAGS,), "final_b")
    scores = T.dot(hidden, w_out) + b_out
    transitions = shared((TAGS + 2, TAGS + 2), "transitions")

    small = -1000
    begin = np.array([[small] * TAGS + [0, small]]).astype(theano.config.floatX)
    end = np.array([[small] * TAGS + [small, 0]]).astype(theano.config.floatX)
    padded = T.concatenate([scores, small * T.ones((length, 2))], axis=1)
    padded = T.concatenate([begin, padded, end], axis=0)
    real = scores[T.arange(length), tag_ids].sum()
    marks = [T.cast(T.alloc(tag, 1), "int32") for tag in (TAGS, TAGS + 1)]
    path = T.concatenate([marks[0], tag_ids, marks[1]])
    real += transitions[path[T.arange(length + 1)], path[T.arange(length + 1) + 1]].sum()
    cost = forward(padded, transitions) - real
    best = forward(padded, transitions, viterbi=True, return_best_sequence=True)

    params = [embeddings, character_table, w, b, w_out, b_out, transitions]
    for layer in (inside, inside_back, onwards, backwards):
        params += layer.params
    grads = T.grad(cost, params)
    norm = T.sqrt(sum(T.sum(T.square(g)) for g in grads))
    grads = [T.switch(T.ge(norm, 5.0), g * 5.0 / norm, g) for g in grads]
    inputs = [word_ids, char_ids, char_lengths]
    train = theano.function(
        [*inputs, tag_ids],
        cost,
        updates=[(param, param - 0.05 * g) for param, g in zip(params, grads)],
        givens={is_train: np.cast["int32"](1)},
    )
    tag = theano.function(inputs, [best, scores], givens={is_train: np.cast["int32"](0)})
    for words in (4, 7, 5, 4):
        lengths = NUMBERS.randint(1, 6, words)
        sentence = [
            NUMBERS.randint(0, WORDS, words).astype("int32"),
            NUMBERS.randint(0, CHARACTERS, (words, lengths.max())).astype("int32"),
            lengths.astype("int32"),
        ]
        yield float(train(*sentence, NUMBERS.randint(0, TAGS, words).astype("int32")))
    tags, scores = tag(*sentence)
    yield [tags.tolist(), scores.tolist()]
