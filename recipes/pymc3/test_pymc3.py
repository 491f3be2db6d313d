"""Check that NUTS estimates the mean and the standard deviation of a normal sample."""

import numpy as np
import pymc3 as pm

data = np.random.RandomState(1).normal(3, 2, 400)
with pm.Model():
    mu = pm.Normal("mu", 0, 10)
    sigma = pm.HalfNormal("sigma", 10)
    pm.Normal("y", mu, sigma, observed=data)
    trace = pm.sample(500, tune=500, chains=1, cores=1, random_seed=1, progressbar=False)
np.testing.assert_allclose(trace["mu"].mean(), data.mean(), atol=0.05)
np.testing.assert_allclose(trace["sigma"].mean(), data.std(), atol=0.05)
