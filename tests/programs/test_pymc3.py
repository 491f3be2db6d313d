"""PyMC3 finds what least squares and NumPy do by hand, and its traces are the same once read again.

It runs in an environment with PyMC3: ./invoke build --stack=openblas --with=pymc3
"""

import arviz
import numpy as np
import pymc3 as pm
import pytest

RNG = np.random.RandomState(1)
DRAWS = {"random_seed": 3, "progressbar": False}
NOISE = 0.5
X = np.column_stack([np.ones(200), RNG.standard_normal((200, 2))])
Y = X @ [1.0, -2.0, 0.5] + NOISE * RNG.standard_normal(len(X))


@pytest.fixture
def regression():
    """Y on X, with flat priors: the posterior is least squares' estimate, and its covariance."""
    with pm.Model() as model:
        beta = pm.Flat("beta", shape=X.shape[1])
        pm.Normal("y", pm.math.dot(X, beta), NOISE, observed=Y)
    return model


def least_squares():
    """The estimate, and its standard errors."""
    covariance = np.linalg.inv(X.T @ X) * NOISE**2
    return covariance @ X.T @ Y / NOISE**2, np.sqrt(np.diag(covariance))


def test_nuts_in_two_processes(regression, tmp_path):
    estimate, errors = least_squares()
    with regression:
        start = {"beta": np.zeros(X.shape[1])}
        drawn = pm.sample(
            1000, tune=500, chains=2, cores=2, start=start, return_inferencedata=True, **DRAWS
        )
    beta = drawn.posterior.beta.values
    assert beta.shape == (2, 1000, 3)
    assert not np.array_equal(beta[0], beta[1])
    # Six Monte Carlo errors of 2,000 draws, were they independent; these are close to that.
    beta = beta.reshape(-1, 3)
    np.testing.assert_array_less(abs(beta.mean(0) - estimate), 6 * errors / np.sqrt(2000))
    np.testing.assert_allclose(beta.std(0), errors, rtol=0.1)
    assert arviz.summary(drawn).r_hat.max() < 1.02
    drawn.to_netcdf(str(tmp_path / "drawn.nc"))
    again = arviz.from_netcdf(str(tmp_path / "drawn.nc"))
    np.testing.assert_array_equal(again.posterior.beta, drawn.posterior.beta)


def test_advi(regression):
    estimate, errors = least_squares()
    with regression:
        found = pm.fit(
            8000, obj_optimizer=pm.adam(learning_rate=0.02), start={"beta": estimate}, **DRAWS
        )
    np.testing.assert_allclose(found.mean.eval(), estimate, atol=errors.max())
    # What a normal distribution without correlations has, nearest to the posterior.
    alone = NOISE / np.sqrt((X**2).sum(0))
    np.testing.assert_allclose(found.std.eval(), alone, rtol=0.2)


def test_gaussian_process():
    old, new = np.linspace(0, 4, 12)[:, None], np.linspace(0, 5, 7)[:, None]
    seen = np.sin(old[:, 0])

    def covariance(a, b):
        return 1.5**2 * np.exp(-((a - b.T) ** 2) / (2 * 0.8**2))

    with pm.Model():
        process = pm.gp.Marginal(cov_func=1.5**2 * pm.gp.cov.ExpQuad(1, ls=0.8))
        y = process.marginal_likelihood("y", X=old, y=seen, noise=0.1)
        mean, cov = process.predict(new, point={})
        logp = y.logp({})
    exact = covariance(old, old) + 0.1**2 * np.eye(len(old))
    # What PyMC3 adds, so that there is a Cholesky decomposition.
    own = exact + 1e-6 * np.eye(len(old))
    between = covariance(new, old)
    np.testing.assert_allclose(mean, between @ np.linalg.solve(own, seen), rtol=1e-5)
    by_hand = covariance(new, new) - between @ np.linalg.solve(own, between.T)
    np.testing.assert_allclose(cov, by_hand, atol=1e-5)
    density = seen @ np.linalg.solve(exact, seen) + np.linalg.slogdet(2 * np.pi * exact)[1]
    np.testing.assert_allclose(logp, -density / 2, rtol=1e-5)


def test_minibatches_are_rows_of_the_data():
    data = np.arange(40.0).reshape(20, 2)
    batch = pm.Minibatch(data, batch_size=5).eval()
    assert batch.shape == (5, 2)
    np.testing.assert_array_equal(batch[:, 1] - batch[:, 0], 1)


def test_mixture():
    """Of two normal distributions far apart: each is its half of the data."""
    halves = [RNG.normal(-4, 1, 100), RNG.normal(4, 1, 300)]
    with pm.Model():
        w = pm.Dirichlet("w", np.ones(2))
        mu = pm.Normal("mu", 0, 10, shape=2)
        pm.NormalMixture("y", w, mu, sigma=1, observed=np.concatenate(halves))
        start = {"mu": np.array([-1.0, 1.0])}
        trace = pm.sample(500, tune=500, chains=1, cores=1, start=start, **DRAWS)
    np.testing.assert_allclose(trace["mu"].mean(0), [half.mean() for half in halves], atol=0.05)
    np.testing.assert_allclose(trace["mu"].std(0), 1 / np.sqrt([100, 300]), rtol=0.25)
    # The mean of a Dirichlet distribution of the counts.
    np.testing.assert_allclose(trace["w"].mean(0), [101 / 402, 301 / 402], atol=0.01)
