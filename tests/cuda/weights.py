"""Split the weights of an RNNBlock with two layers: ``weights.py MODE DIRECTION INPUT_MODE``.

Example: ``weights.py lstm bidirectional skip``. The values of the weights are 0, 1, 2, ... The
program prints JSON: ``size``, the number of weights; ``parts`` and ``shapes`` of each layer and
direction, as libcudnn splits them; ``nn``, the number of weights and the parts of theano_fast.nn.
"""

import json
import sys

import compile as stubs
import numpy as np

INPUTS, UNITS, BATCH = 5, 7, 2

if __name__ == "__main__":
    mode, direction, input_mode = sys.argv[1:]
    stubs.start()
    import theano
    from theano.gpuarray.dnn import RNNBlock
    from theano_fast import nn

    block = RNNBlock("float32", UNITS, 2, mode, input_mode, direction)
    size = (BATCH, UNITS if input_mode == "skip" else INPUTS)
    numbers = np.arange(block.get_param_size(size), dtype="float32")
    weights = theano.shared(numbers)
    layers = 4 if direction == "bidirectional" else 2
    parts = [block.split_params(weights, layer, size) for layer in range(layers)]
    values = [[np.asarray(part).tolist() for part in layer] for layer in parts]
    shapes = [[part.shape for part in layer] for layer in parts]
    count = int(weights.get_value(borrow=True, return_internal_type=True).size)
    layer = nn.RNN(mode, size[1], UNITS, 2, direction == "bidirectional", input_mode, "float32")
    layer.weights.set_value(numbers)
    layer_parts = {name: part.tolist() for name, part in layer.split().items()}
    report = {"size": count, "parts": values, "shapes": shapes, "nn": [layer.size, layer_parts]}
    print(json.dumps(report))
