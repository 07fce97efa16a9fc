"""The denoiser is the gradient of its output, and trains in a span as in whole vectors."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient, Span
from featlab.engine.batch import train_many
from featlab.networks import Denoiser
from featlab.networks.denoiser import TiedWeights


@pytest.mark.rounding
def test_it_is_the_gradient_of_its_energy():
    rng = np.random.default_rng(0)
    with jax.enable_x64(True):
        weights, inputs = (jnp.asarray(rng.standard_normal((rows, 5))) for rows in (3, 2))
        network, params = Denoiser(width=3), TiedWeights(weights)
        by_hand = ((inputs @ weights.T) ** 2) @ weights / np.sqrt(3)
        np.testing.assert_allclose(network.denoise(params, inputs), by_hand, rtol=1e-12)
        np.testing.assert_allclose(jax.grad(lambda x: network(params, x))(inputs), by_hand, rtol=1e-12)


def experiment(**changes):
    return fl.Experiment(
        data=fl.data.SignalTokens(n=5, d=60, tokens=2, snr=0.5, noise_scale=0.1),
        network=Denoiser(width=3, init_scale=0.05),
        objective=fl.objectives.Denoising(t=0.3),
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[fl.probes.feature_balance.on(fl.probes.at_end)],
        steps=60,
        **changes,
    )


def test_an_infinite_dimension_is_refused_in_one_sentence():
    data = fl.data.SignalTokens(n=5, d=np.inf, tokens=2, snr=0.5)
    with pytest.raises(fl.InputError, match="Denoiser needs a finite d, got inf"):
        fl.run(dataclasses.replace(experiment(), data=data), progress=False)


@pytest.mark.slow
def test_span_and_ambient_agree_in_law():
    """The means over 400 seeds of each, of what is trained: within four standard errors."""
    seeds = range(500, 900)
    read = [train_many([experiment(space=space)] * len(seeds), seeds) for space in (Span, Ambient)]
    for name in ("signal_product", "noise_product", "balance"):
        one, two = (np.log(each[name]) for each in read)
        error = np.sqrt((one.var() + two.var()) / len(seeds))
        assert abs(one.mean() - two.mean()) < 4 * error, name
        assert error < 0.05 and np.exp(one.mean()) > 0
