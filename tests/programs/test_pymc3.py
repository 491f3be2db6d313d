"""PyMC3 finds what least squares and NumPy do by hand, and its traces are the same once read again.

It runs in an environment with PyMC3: ./invoke build --stack=openblas --with=pymc3, or pymc3-3.7
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
        trace = pm.sample(1000, tune=500, chains=2, cores=2, start=start, **DRAWS)
        summary = pm.summary(trace)
        drawn = arviz.from_pymc3(trace)
    beta = drawn.posterior.beta.values
    assert beta.shape == (2, 1000, 3)
    assert not np.array_equal(beta[0], beta[1])
    # Six Monte Carlo errors of 2,000 draws, were they independent; these are close to that.
    beta = beta.reshape(-1, 3)
    np.testing.assert_array_less(abs(beta.mean(0) - estimate), 6 * errors / np.sqrt(2000))
    np.testing.assert_allclose(beta.std(0), errors, rtol=0.1)
    # ArviZ rounds them.
    np.testing.assert_allclose(summary["mean"], beta.mean(0), atol=1e-3)
    np.testing.assert_allclose(summary["sd"], beta.std(0), atol=1e-3)
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


@pytest.mark.parametrize("kept", [None, 10, [10], [10, 2]])
def test_minibatches_are_rows_of_the_data(kept):
    data = np.arange(40.0).reshape(20, 2)
    size = [slice(number) for number in kept] if isinstance(kept, list) else kept
    batch = pm.Minibatch(data, batch_size=50, in_memory_size=size).eval()
    assert batch.shape == (50, 2)
    np.testing.assert_array_equal(batch[:, 1] - batch[:, 0], 1)
    assert batch.max() < (40 if kept is None else 20)


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


def test_a_climate_without_its_trend(tmp_path):
    """As in ATTRICI: what temperatures would be, had the global mean not risen."""
    years = np.arange(0, 3, 1 / 73)
    warming = years / 3
    season = np.column_stack([np.sin(2 * np.pi * years), np.cos(2 * np.pi * years)])
    design = np.column_stack([np.ones_like(years), warming, season])
    seen = design @ [10.0, 2.0, 3.0, -1.0] + NOISE * RNG.standard_normal(len(years))
    estimate, *_ = np.linalg.lstsq(design, seen, rcond=None)
    with pm.Model():
        predictor = pm.Data("predictor", warming)
        intercept = pm.Normal("intercept", 0, 100)
        slope = pm.Normal("slope", 0, 100)
        cycle = pm.Normal("cycle", 0, 100, shape=2)
        sigma = pm.HalfCauchy("sigma", 1)
        mu = intercept + slope * predictor + pm.math.dot(season, cycle)
        pm.Normal("tas", mu, sigma, observed=seen)
        best = pm.find_MAP(progressbar=False)
        trace = pm.sample(500, tune=500, chains=2, cores=2, **DRAWS)
        pm.save_trace(trace, str(tmp_path / "trace"))
        again = pm.load_trace(str(tmp_path / "trace"))
        pm.set_data({"predictor": np.zeros_like(warming)})
        without = pm.sample_posterior_predictive(again, 1000, random_seed=3, progressbar=False)
    found = [best["intercept"], best["slope"], *best["cycle"]]
    # The priors are as wide as nothing beside this.
    np.testing.assert_allclose(found, estimate, atol=1e-3)
    table = pm.trace_to_dataframe(again)
    errors = NOISE * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    columns = ["intercept", "slope", "cycle__0", "cycle__1"]
    np.testing.assert_array_less(abs(table[columns].mean() - estimate), errors / 3)
    np.testing.assert_allclose(table["sigma"].mean(), NOISE, rtol=0.1)
    calm = estimate * [1, 0, 1, 1]
    np.testing.assert_allclose(without["tas"].mean(0), design @ calm, atol=0.15)


def test_plots(regression):
    """A trace is drawn, and the mode of whole numbers."""
    with regression:
        trace = pm.sample(20, tune=20, chains=1, cores=1, **DRAWS)
        assert pm.traceplot(trace).shape[1] == 2
    drawn = arviz.plot_posterior({"n": np.array([[1, 2, 2, 3]])}, point_estimate="mode")
    assert "mode=2" in [text.get_text() for text in np.ravel(drawn)[0].texts]
