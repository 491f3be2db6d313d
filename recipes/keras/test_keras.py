"""A model of one layer computes what NumPy does, on Theano, and is the same once it is read again."""

import numpy as np
from keras import backend, layers, models

assert backend.backend() == "theano", "the back end is not Theano"
model = models.Sequential([layers.Dense(3, input_shape=(4,))])
model.compile("sgd", "mse")
weights, bias = model.get_weights()
x = np.arange(8.0).reshape(2, 4)
expected = x @ weights + bias
model.save("model.h5")
for each in model, models.load_model("model.h5"):
    np.testing.assert_allclose(each.predict(x), expected, rtol=1e-5)
