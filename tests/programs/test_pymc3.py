"""Compare the estimates of PyMC3's models with NumPy and closed forms, and load saved traces.

The tests run in an environment with PyMC3: ./invoke build --stack=openblas --with=NAME, where NAME
is pymc3, pymc3-3.7 or pymc3-3.11.
"""

import arviz
import numpy as np
import pandas as pd
import pymc3 as pm
import pytest
import theano
import theano.tensor as tt

RNG = np.random.RandomState(1)
DRAWS = {"random_seed": 3, "progressbar": False}
CHAIN = {"chains": 1, "cores": 1, "compute_convergence_checks": False, **DRAWS}
# The standard deviation of the noise in the data of linear models, here and below.
NOISE = 0.5
X = np.column_stack([np.ones(200), RNG.standard_normal((200, 2))])
Y = X @ [1.0, -2.0, 0.5] + NOISE * RNG.standard_normal(len(X))

only_3_11 = pytest.mark.skipif(
    not pm.__version__.startswith("3.11"), reason="the test is written for PyMC3 3.11"
)


@pytest.fixture
def regression():
    """Return a linear regression of Y on X with flat priors.

    The posterior mean is the least-squares estimate.
    """
    with pm.Model() as model:
        beta = pm.Flat("beta", shape=X.shape[1])
        pm.Normal("y", pm.math.dot(X, beta), NOISE, observed=Y)
    return model


def compute_least_squares():
    """Return the least-squares estimate for Y on X, and its standard errors."""
    covariance = np.linalg.inv(X.T @ X) * NOISE**2
    return covariance @ X.T @ Y / NOISE**2, np.sqrt(np.diag(covariance))


def test_nuts_samples_a_regression_in_two_processes(regression, tmp_path):
    """The posterior has the mean and the deviation of least squares; the trace can be reloaded."""
    estimate, errors = compute_least_squares()
    with regression:
        start = {"beta": np.zeros(X.shape[1])}
        trace = pm.sample(1000, tune=500, chains=2, cores=2, start=start, **DRAWS)
        summary = pm.summary(trace)
        data = arviz.from_pymc3(trace)
    beta = data.posterior.beta.values
    assert beta.shape == (2, 1000, 3)
    assert not np.array_equal(beta[0], beta[1])
    # The tolerance is six standard errors of the mean of 2,000 independent draws. The draws are
    # nearly independent.
    beta = beta.reshape(-1, 3)
    np.testing.assert_array_less(abs(beta.mean(0) - estimate), 6 * errors / np.sqrt(2000))
    np.testing.assert_allclose(beta.std(0), errors, rtol=0.1)
    # The tolerance is 1e-3, because ArviZ rounds the values of a summary.
    np.testing.assert_allclose(summary["mean"], beta.mean(0), atol=1e-3)
    np.testing.assert_allclose(summary["sd"], beta.std(0), atol=1e-3)
    assert arviz.summary(data).r_hat.max() < 1.02
    data.to_netcdf(str(tmp_path / "data.nc"))
    loaded = arviz.from_netcdf(str(tmp_path / "data.nc"))
    np.testing.assert_array_equal(loaded.posterior.beta, data.posterior.beta)


def test_advi_approximates_a_regression(regression):
    estimate, errors = compute_least_squares()
    with regression:
        approximation = pm.fit(
            8000, obj_optimizer=pm.adam(learning_rate=0.02), start={"beta": estimate}, **DRAWS
        )
    np.testing.assert_allclose(approximation.mean.eval(), estimate, atol=errors.max())
    # These are the standard deviations of the nearest normal distribution without correlations.
    uncorrelated = NOISE / np.sqrt((X**2).sum(0))
    np.testing.assert_allclose(approximation.std.eval(), uncorrelated, rtol=0.2)


def test_a_gaussian_process_has_the_closed_forms():
    """The prediction and the likelihood of a process with fixed parameters equal NumPy's."""
    old, new = np.linspace(0, 4, 12)[:, None], np.linspace(0, 5, 7)[:, None]
    observed = np.sin(old[:, 0])

    def compute_covariance(a, b):
        return 1.5**2 * np.exp(-((a - b.T) ** 2) / (2 * 0.8**2))

    with pm.Model():
        process = pm.gp.Marginal(cov_func=1.5**2 * pm.gp.cov.ExpQuad(1, ls=0.8))
        y = process.marginal_likelihood("y", X=old, y=observed, noise=0.1)
        mean, cov = process.predict(new, point={})
        logp = y.logp({})
    exact = compute_covariance(old, old) + 0.1**2 * np.eye(len(old))
    # Before a prediction, PyMC3 adds 1e-6 to the diagonal, which stabilizes the Cholesky
    # decomposition.
    stabilized = exact + 1e-6 * np.eye(len(old))
    between = compute_covariance(new, old)
    np.testing.assert_allclose(mean, between @ np.linalg.solve(stabilized, observed), rtol=1e-5)
    expected = compute_covariance(new, new) - between @ np.linalg.solve(stabilized, between.T)
    np.testing.assert_allclose(cov, expected, atol=1e-5)
    density = observed @ np.linalg.solve(exact, observed)
    density += np.linalg.slogdet(2 * np.pi * exact)[1]
    np.testing.assert_allclose(logp, -density / 2, rtol=1e-5)


@pytest.mark.parametrize("lengths", [None, 10, [10], [10, 2]])
def test_minibatches_are_rows_of_the_data(lengths):
    """With ``in_memory_size``, the rows come from the first 10 rows of the data."""
    data = np.arange(40.0).reshape(20, 2)
    size = [slice(length) for length in lengths] if isinstance(lengths, list) else lengths
    batch = pm.Minibatch(data, batch_size=50, in_memory_size=size).eval()
    assert batch.shape == (50, 2)
    np.testing.assert_array_equal(batch[:, 1] - batch[:, 0], 1)
    assert batch.max() < (40 if lengths is None else 20)


def test_a_mixture_separates_two_groups():
    """The components of a mixture have the means of two distant groups of 100 and 300 values."""
    group_values = [RNG.normal(-4, 1, 100), RNG.normal(4, 1, 300)]
    with pm.Model():
        w = pm.Dirichlet("w", np.ones(2))
        mu = pm.Normal("mu", 0, 10, shape=2)
        pm.NormalMixture("y", w, mu, sigma=1, observed=np.concatenate(group_values))
        start = {"mu": np.array([-1.0, 1.0])}
        trace = pm.sample(500, tune=500, chains=1, cores=1, start=start, **DRAWS)
    np.testing.assert_allclose(
        trace["mu"].mean(0), [values.mean() for values in group_values], atol=0.05
    )
    np.testing.assert_allclose(trace["mu"].std(0), 1 / np.sqrt([100, 300]), rtol=0.25)
    # The posterior of the weights is a Dirichlet distribution with these means.
    np.testing.assert_allclose(trace["w"].mean(0), [101 / 402, 301 / 402], atol=0.01)


def test_the_trend_is_removed_from_temperatures(tmp_path):
    """A regression on warming and seasons predicts the temperatures without warming.

    The program ATTRICI has such a model. The test saves and loads the trace before the prediction.
    """
    years = np.arange(0, 3, 1 / 73)
    warming = years / 3
    season = np.column_stack([np.sin(2 * np.pi * years), np.cos(2 * np.pi * years)])
    design = np.column_stack([np.ones_like(years), warming, season])
    temperatures = design @ [10.0, 2.0, 3.0, -1.0] + NOISE * RNG.standard_normal(len(years))
    estimate, *_ = np.linalg.lstsq(design, temperatures, rcond=None)
    with pm.Model():
        predictor = pm.Data("predictor", warming)
        intercept = pm.Normal("intercept", 0, 100)
        slope = pm.Normal("slope", 0, 100)
        cycle = pm.Normal("cycle", 0, 100, shape=2)
        sigma = pm.HalfCauchy("sigma", 1)
        mu = intercept + slope * predictor + pm.math.dot(season, cycle)
        pm.Normal("tas", mu, sigma, observed=temperatures)
        best = pm.find_MAP(progressbar=False)
        trace = pm.sample(500, tune=500, chains=2, cores=2, **DRAWS)
        pm.save_trace(trace, str(tmp_path / "trace"))
        loaded = pm.load_trace(str(tmp_path / "trace"))
        pm.set_data({"predictor": np.zeros_like(warming)})
        predicted = pm.sample_posterior_predictive(loaded, 1000, random_seed=3, progressbar=False)
    mode = [best["intercept"], best["slope"], *best["cycle"]]
    # The priors are so wide that the mode of the posterior is the least-squares estimate.
    np.testing.assert_allclose(mode, estimate, atol=1e-3)
    table = pm.trace_to_dataframe(loaded)
    errors = NOISE * np.sqrt(np.diag(np.linalg.inv(design.T @ design)))
    columns = ["intercept", "slope", "cycle__0", "cycle__1"]
    np.testing.assert_array_less(abs(table[columns].mean() - estimate), errors / 3)
    np.testing.assert_allclose(table["sigma"].mean(), NOISE, rtol=0.1)
    without_warming = estimate * [1, 0, 1, 1]
    np.testing.assert_allclose(predicted["tas"].mean(0), design @ without_warming, atol=0.15)


def test_plots_are_drawn(regression):
    """``traceplot`` draws two columns; ``plot_posterior`` names the mode of integers."""
    with regression:
        trace = pm.sample(20, tune=20, chains=1, cores=1, **DRAWS)
        assert pm.traceplot(trace).shape[1] == 2
    axes = arviz.plot_posterior({"n": np.array([[1, 2, 2, 3]])}, point_estimate="mode")
    assert "mode=2" in [text.get_text() for text in np.ravel(axes)[0].texts]


@only_3_11
def test_a_logistic_regression_has_the_maximum_likelihood():
    """With flat priors, the mode of the posterior is the maximum that Newton's method finds."""
    x = RNG.standard_normal(300)
    y = (RNG.uniform(size=300) < 1 / (1 + np.exp(1 - 2 * x))).astype(int)
    with pm.Model():
        flat = {"Intercept": pm.Flat.dist(), "x": pm.Flat.dist()}
        pm.glm.GLM.from_formula(
            "y ~ x", pd.DataFrame({"x": x, "y": y}), family=pm.glm.families.Binomial(), priors=flat
        )
        mode = pm.find_MAP(progressbar=False)
    design, beta = np.column_stack([np.ones_like(x), x]), np.zeros(2)
    for _ in range(20):
        p = 1 / (1 + np.exp(-design @ beta))
        beta += np.linalg.solve(design.T @ (design * (p * (1 - p))[:, None]), design.T @ (y - p))
    np.testing.assert_allclose([mode["Intercept"], mode["x"]], beta, atol=1e-3)


@only_3_11
def test_the_means_of_groups_shrink_to_the_common_mean():
    """In a hierarchical model, the ratio of the variances determines the shrinkage."""
    groups, size, spread = 6, 5, 1.0
    group = np.repeat(np.arange(groups), size)
    y = RNG.normal(0, spread, groups)[group] + NOISE * RNG.standard_normal(groups * size)
    with pm.Model(coords={"group": np.arange(groups)}):
        mu = pm.Flat("mu")
        offset = pm.Normal("offset", 0, 1, dims="group")
        mean = pm.Deterministic("mean", mu + spread * offset, dims="group")
        pm.Normal("y", mean[group], NOISE, observed=y)
        trace = pm.sample(1500, tune=700, **CHAIN)
    means = y.reshape(groups, size).mean(1)
    weight = spread**2 / (spread**2 + NOISE**2 / size)
    expected = weight * means + (1 - weight) * means.mean()
    np.testing.assert_allclose(trace["mean"].mean(0), expected, atol=0.05)
    np.testing.assert_allclose(trace["mu"].mean(), means.mean(), atol=0.1)


@only_3_11
def test_advi_estimates_a_mean_from_minibatches():
    """The estimate and its deviation equal the closed forms for all data."""
    data = RNG.normal(2, 1, 1000)
    with pm.Model():
        mu = pm.Normal("mu", 0, 10)
        batch = pm.Minibatch(data, batch_size=100)
        pm.Normal("y", mu, 1, observed=batch, total_size=len(data))
        approximation = pm.fit(
            6000,
            method="advi",
            obj_optimizer=pm.adam(learning_rate=0.01),
            random_seed=3,
            progressbar=False,
        )
    np.testing.assert_allclose(approximation.mean.eval(), [data.mean()], atol=0.1)
    np.testing.assert_allclose(approximation.std.eval(), [1 / np.sqrt(len(data))], rtol=0.5)


@only_3_11
def test_a_differential_equation_has_the_closed_form():
    """The solution of exponential decay, and its gradients, equal the closed forms."""
    times = np.linspace(0.5, 3, 6)
    decay = pm.ode.DifferentialEquation(
        func=lambda y, t, p: [-p[0] * y[0]], times=times, n_states=1, n_theta=1, t0=0
    )
    rate, start = tt.dvector("rate"), tt.dvector("start")
    rate.tag.test_value, start.tag.test_value = np.ones(1), np.ones(1)
    with theano.config.change_flags(compute_test_value="ignore"):
        states = decay(y0=start, theta=rate)
        gradient = theano.grad(states.sum(), [rate, start])
    states, by_rate, by_start = theano.function([rate, start], [states, *gradient])([0.7], [3.0])
    expected = np.exp(-0.7 * times)
    np.testing.assert_allclose(states[:, 0], 3 * expected, rtol=1e-5)
    np.testing.assert_allclose(by_rate, [(-3 * times * expected).sum()], rtol=1e-4)
    np.testing.assert_allclose(by_start, [expected.sum()], rtol=1e-4)


@only_3_11
def test_sequential_monte_carlo_has_the_closed_forms():
    """The posterior and the evidence of a normal mean equal the closed forms."""
    y = RNG.normal(1, 1, 10)
    with pm.Model():
        mu = pm.Normal("mu", 0, 2)
        pm.Normal("y", mu, 1, observed=y)
        trace = pm.sample_smc(1000, chains=1, cores=1, parallel=False, random_seed=3)
    variance = 1 / (1 / 2**2 + len(y))
    np.testing.assert_allclose(trace["mu"].mean(), variance * y.sum(), atol=0.06)
    np.testing.assert_allclose(trace["mu"].std(), np.sqrt(variance), rtol=0.15)
    covariance = np.eye(len(y)) + 2**2 * np.ones((len(y), len(y)))
    evidence = (
        -(y @ np.linalg.solve(covariance, y) + np.linalg.slogdet(2 * np.pi * covariance)[1]) / 2
    )
    np.testing.assert_allclose(np.mean(trace.report.log_marginal_likelihood), evidence, atol=0.3)


class LogLikelihood(theano.Op):
    """Compute the log-likelihood of normal data with NumPy, as an op in PyMC3's examples does."""

    itypes, otypes = [tt.dscalar], [tt.dscalar]

    def __init__(self, data):
        self.data = data

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.array(-((self.data - inputs[0]) ** 2).sum() / 2)

    def infer_shape(self, fgraph, node, shapes):
        return [()]

    def grad(self, inputs, gradients):
        return [gradients[0] * Derivative(self.data)(inputs[0])]


class Derivative(theano.Op):
    """Compute the derivative of LogLikelihood with respect to the mean."""

    def __init__(self, data):
        self.data = data

    def make_node(self, mean):
        return theano.Apply(self, [tt.as_tensor_variable(mean)], [tt.dscalar()])

    def perform(self, node, inputs, outputs):
        outputs[0][0] = np.array((self.data - inputs[0]).sum())

    def infer_shape(self, fgraph, node, shapes):
        return [()]


@only_3_11
def test_a_users_op_is_the_likelihood():
    """If an op of the test computes the likelihood, the posterior has the closed form.

    The op has Theano-PyMC's signatures: ``infer_shape`` has the parameter ``fgraph``.
    """
    assert issubclass(LogLikelihood, theano.graph.op.Op)
    data = RNG.normal(1, 1, 50)
    with pm.Model():
        mu = pm.Flat("mu", testval=0.0)
        pm.Potential("likelihood", LogLikelihood(data)(mu))
        trace = pm.sample(1500, tune=500, **CHAIN)
    error = 1 / np.sqrt(len(data))
    np.testing.assert_allclose(trace["mu"].mean(), data.mean(), atol=error / 3)
    np.testing.assert_allclose(trace["mu"].std(), error, rtol=0.15)
