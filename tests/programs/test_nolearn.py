"""Train Lasagne's networks as nolearn's estimators; cross-validate a network with scikit-learn.

The tests run in an environment with nolearn: ./invoke build --stack=openblas --with=nolearn
"""

import numpy as np
import pytest
from lasagne import layers, nonlinearities
from lasagne.objectives import squared_error
from nolearn.lasagne import NeuralNet, TrainSplit
from sklearn.model_selection import cross_val_score

RNG = np.random.RandomState(1)
X = RNG.standard_normal((300, 4)).astype("float32")


def make_network(**settings):
    """Return a network of one dense layer; ``output`` contains the settings of this layer."""
    return NeuralNet(
        [
            (layers.InputLayer, {"shape": (None, 4)}),
            (layers.DenseLayer, settings.pop("output")),
        ],
        update_learning_rate=0.1,
        update_momentum=0.9,
        **settings,
    )


def test_a_linear_regression_is_least_squares():
    """A network without a nonlinearity learns the coefficients that NumPy's lstsq computes."""
    coefficients = np.array([1, -2, 0.5, 3])
    y = (X @ coefficients + 0.1 * RNG.standard_normal(300))[:, None].astype("float32")
    net = make_network(
        output={"num_units": 1, "nonlinearity": None},
        regression=True,
        objective_loss_function=squared_error,
        train_split=TrainSplit(0),
        max_epochs=60,
    ).fit(X, y)
    design = np.column_stack([X, np.ones(len(X))])
    expected, *_ = np.linalg.lstsq(design, y, rcond=None)
    weights, bias = (net.get_all_params_values()["dense1"][i] for i in (0, 1))
    np.testing.assert_allclose(np.append(weights, bias), expected[:, 0], atol=0.02)


@pytest.mark.parametrize("stratify", [True, False])
def test_a_classifier_is_cross_validated(stratify):
    """The accuracy in each fold is above 0.9; TrainSplit(0.2) selects a fifth for validation."""
    y = (X[:, 0] > X[:, 1]).astype("int32")
    net = make_network(
        output={"num_units": 2, "nonlinearity": nonlinearities.softmax},
        train_split=TrainSplit(0.2, stratify=stratify),
        max_epochs=20,
    )
    assert cross_val_score(net, X, y, cv=3, scoring="accuracy").min() > 0.9
    training, validation, *_ = net.train_split(X, y, net)
    assert (len(training), len(validation)) == (240, 60)
