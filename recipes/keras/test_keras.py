"""Check a model with one layer: it has NumPy's results, also after it is saved and loaded."""

import numpy as np
from keras import backend, layers, models

assert backend.backend() == "theano", f"the back end is {backend.backend()}, not Theano"
model = models.Sequential([layers.Dense(3, input_shape=(4,))])
model.compile("sgd", "mse")
weights, bias = model.get_weights()
x = np.arange(8.0).reshape(2, 4)
expected = x @ weights + bias
model.save("model.h5")
for tested in model, models.load_model("model.h5"):
    np.testing.assert_allclose(tested.predict(x), expected, rtol=1e-5)
