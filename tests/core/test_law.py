"""Span equals Ambient in law, for Gaussian and for PyTorch's start; and the test has power.

Two-sample Kolmogorov-Smirnov and Welch tests on order parameters of short runs, 400 seeds a side. Seeds are fixed,
so a verdict never changes by luck; with 7 statistics x 2 tests, a true equality in law fails at level 1e-4 about
once in 700 choices of seeds.
"""

import dataclasses

import jax
import numpy as np
import pytest
from scipy import stats

import featlab as fl
from featlab.core import space as space_module

pytestmark = pytest.mark.gpu

SEEDS = 400
LEVEL = 1e-4


def experiment(**network):
    return fl.Experiment(
        data=fl.data.SignalNoise(n=16, d=40, snr=0.4, label_flip=0.1, orthogonal=not network.get("bias", False)),
        network=fl.networks.TwoLayerCNN(width=4, **{"init_scale": 0.05, **network}),
        algorithm=fl.algorithms.GradientDescent(0.05),
        probes=[
            p.on(fl.probes.at_end)
            for p in (
                fl.probes.coefficients,
                fl.probes.train_loss,
                fl.probes.test_error(count=1000),
                fl.probes.weight_norms,
                fl.probes.products,
            )
        ],
        steps=30,
    )


def statistics(history):
    rest = [dim for dim in history.rho.dims if dim != "seed"]
    return {
        "max gamma": history.gamma.max(["class", "filter"]),
        "mean gamma": history.gamma.mean(["class", "filter"]),
        "max rho": history.rho.max(rest),
        "spread of rho": (history.rho**2).mean(rest),
        "train loss": history.train_loss,
        "test error": history.clean_test_error,
        "weight norm": history.weight_norm.mean("row"),
    }


def smallest_p_value(one, two):
    one, two = statistics(one), statistics(two)
    p_values = {}
    for name in one:
        a, b = one[name].values, two[name].values
        p_values[name] = min(stats.ks_2samp(a, b).pvalue, stats.ttest_ind(a, b, equal_var=False).pvalue)
    return min(p_values.values()), p_values


def both_spaces(base):
    span = fl.run(dataclasses.replace(base, space=fl.Span), seeds=range(SEEDS), block=100)
    ambient = fl.run(dataclasses.replace(base, space=fl.Ambient), seeds=range(10_000, 10_000 + SEEDS), block=100)
    return span, ambient


@pytest.mark.parametrize(
    "network",
    [
        {},
        pytest.param({"activation": fl.networks.relu_power(3)}, marks=pytest.mark.slow),
        pytest.param({"uniform_start": True, "bias": True, "average_patches": True}, marks=pytest.mark.slow),
    ],
    ids=["gaussian start", "cubic", "uniform start, isotropic noise"],
)
def test_span_equals_ambient_in_law(network):
    smallest, all_of_them = smallest_p_value(*both_spaces(experiment(**network)))
    assert smallest > LEVEL, all_of_them


@pytest.mark.slow
def test_wrong_chi_degrees_are_rejected(monkeypatch):
    jax.clear_caches()
    monkeypatch.setattr(space_module, "_bartlett_degrees", lambda d, rank, count: d + 0.0 * np.arange(count))
    try:
        smallest, _ = smallest_p_value(*both_spaces(experiment()))
    finally:
        jax.clear_caches()
    assert smallest < LEVEL


@pytest.mark.slow
def test_a_gaussian_stand_in_for_the_uniform_start_is_rejected():
    """The uniform start's own spread of lengths is what its Gram matrix carries and a Gaussian one gets wrong."""
    base = experiment(uniform_start=True)
    gaussian = dataclasses.replace(
        base, network=dataclasses.replace(base.network, uniform_start=False, init_scale=(3 * 40) ** -0.5)
    )
    base, gaussian = (dataclasses.replace(e, steps=0, space=fl.Span) for e in (base, gaussian))
    right, wrong = fl.run(base, seeds=SEEDS, block=100), fl.run(gaussian, seeds=SEEDS, block=100)
    assert stats.ks_2samp(right.weight_norm.values.ravel(), wrong.weight_norm.values.ravel()).pvalue < LEVEL


@pytest.mark.slow
def test_fresh_products_have_the_law_of_whole_test_vectors():
    """The fast road to the test error against the plain one: the same runs, test inputs drawn either way."""
    fast = dataclasses.replace(experiment(), steps=30)
    plain = dataclasses.replace(fast, network=Plain(fast.network), space=fl.Ambient, probes=fast.probes[2:3])
    fast = fl.run(dataclasses.replace(fast, space=fl.Ambient), seeds=100)
    plain = fl.run(plain, seeds=100)
    difference = fast.clean_test_error - plain.clean_test_error
    t = stats.ttest_1samp(difference.values, 0.0)
    assert t.pvalue > LEVEL
    # Each error is a mean of 1000 independent inputs, so the differences scatter as two binomial errors do.
    p = fast.clean_test_error.values
    expected = np.sqrt(np.mean(2 * p * (1 - p) / 1000))
    assert 0.75 * expected < difference.std().item() < 1.25 * expected


class Plain(fl.networks.AbstractNetwork):
    """The same network without saying that it only sees inner products."""

    network: fl.networks.TwoLayerCNN

    def init(self, key, space):
        return self.network.init(key, space)

    def __call__(self, params, inputs):
        return self.network(params, inputs)
