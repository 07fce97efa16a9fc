"""What the claims on training strategies compute, units of time, paces and bounds, against runs and NumPy."""

import dataclasses
import math

import numpy as np
import pytest

import featlab as fl
from featlab.claims import find_claim
from featlab.claims.settings import sign_descent

P = fl.probes


def filters(view):
    return view.params.filters


def test_kappa_is_what_a_step_adds_to_a_noise_product_and_half_of_n_snr_to_the_signals():
    """At the start every slope of the loss is one half. Without flips, and classes of unequal size."""
    clock = dataclasses.replace(find_claim("huang2025_clock"), init_scale=1e-4)
    one = clock.descent(1, 1e8, 2.0, 0.0, probes=[P.products, P.sample_losses])
    made = dataclasses.replace(one, record=P.every(1))
    read = fl.run(made, [5], progress=False).isel(seed=0)
    noise, signal, y = read.noise_product.values, read.signal_product.values, read.label.values
    own = np.array([1, -1])[:, None, None] * y > 0  # (class, 1, sample)
    active = (noise[0] > 0) & own
    gained = noise[1][active] / noise[0][active] - 1
    assert math.isclose(np.median(gained), clock.kappa(2.0) / 2, rel_tol=1e-3)  # a product near 0 is rounded
    share = np.mean(y > 0)
    along = signal[0][0] > 0  # filters of class +1 that begin along the signal see the samples of that class
    gained = signal[1][0][along] / signal[0][0][along] - 1
    assert math.isclose(np.median(gained), clock.kappa(2.0) / 2 * clock.strength * share, rel_tol=1e-3)


def test_paces_and_times_of_sign_descent():
    values = np.random.default_rng(1).normal(size=200_000)
    assert abs(sign_descent.noise_pace(40, 6.0) / (40 * 6.0 * np.abs(values).mean()) - 1) < 0.01
    time = sign_descent.time_to_loss(0.01, 40, 6.0)
    # Both tokens give half their attention to the noise, so that margins are twice half of 2 eta t |xi|_1.
    assert math.isclose(math.exp(-2 * time * sign_descent.noise_pace(40, 6.0)), 0.01)
    # Values on signal and noise grow as 1 : s sigma_p^2 / n = 1 : 3. The margin log 100 is the sum of both.
    assert math.isclose(sign_descent.descent_test_loss(0.01, 12, 0.5, 1), math.exp(-math.log(100) / 4))


def test_the_test_loss_is_least_where_both_tokens_attend_to_the_signal():
    """By search: fresh noise has either sign, and each token gives the signal a share of its attention."""
    time, share = 0.3, np.linspace(0, 2, 201)  # of both tokens; <v, mu> is 2 eta t, as the rules say
    for noise in (0.0, 0.5, 5.0):
        margins = share * 2 * time + np.array([[1], [-1]]) * (2 - share) * noise
        losses = np.log1p(np.exp(-margins)).mean(axis=0)
        assert losses.argmin() == 200
        assert math.isclose(losses.min(), sign_descent.least_test_loss(time))


def test_the_exponent_of_the_bound_on_the_error_equals_plain_numpy():
    data = fl.data.SignalNoise(n=6, d=50, snr=3.0, noise_scale=50**-0.5)
    made = fl.Experiment(
        data=data,
        network=fl.networks.TwoLayerCNN(width=3, init_scale=1e-3),
        algorithm=fl.algorithms.GradientDescent(2.0),
        probes=[filters, P.concentration, lambda view: {"mu": view.problem.draw.truth.vectors[0]}],
        steps=10,
        record=P.every(10),
        space=fl.Ambient,
        precision=64,
    )
    read = fl.run(made, [3], progress=False).isel(seed=0, step=-1)
    w, mu = read.filters.values, read.mu.values
    names = w @ mu
    across = w - names[..., None] * mu / (mu @ mu)
    bounds = []
    for right, sign in ((0, 1), (1, -1)):  # the class, and whose signal it sees
        margin = np.maximum(sign * names[right], 0).mean() - np.maximum(sign * names[1 - right], 0).mean()
        rows = data.noise_scale * across[1 - right]
        mean = np.linalg.norm(rows, axis=1).mean() / math.sqrt(2 * math.pi)  # E max(0, N(0, s^2))
        lipschitz = np.linalg.norm(rows, 2) / math.sqrt(len(rows))  # of a mean of ReLUs
        bounds.append(max(margin - mean, 0) ** 2 / (2 * lipschitz**2))
    assert min(bounds) > 0
    np.testing.assert_allclose(read.concentration, min(bounds), rtol=1e-6)


def test_sams_radius_follows_the_batch_as_its_root():
    sam = find_claim("chen2023_sam")
    whole, part = (sam.experiment(1000.0, 2.0, 3.0, batch=size) for size in (None, 5))
    assert whole.data.n == part.data.n == 10 and part.data.size == 5
    assert math.isclose(whole.algorithm.first.radius / part.algorithm.first.radius, math.sqrt(2))


@pytest.mark.parametrize("flip, named", [(0.0, False), (0.1, True)])
def test_a_condition_on_flips_is_asked_of_label_noise_alone(flip, named):
    claim = find_claim("huang2025_label_noise_gd")
    found = claim.assumptions(claim.experiment(800, 2000.0, flip=flip))
    assert named == any("flips" in one.sentence for one in found)


def test_a_condition_on_votes_is_asked_where_votes_are_read():
    """In the second setting it does not hold, and is left out rather than set to a value that would."""
    claim = find_claim("li2025_sign_gd")
    for noise, named in ((claim.noise_scale, True), (claim.weak_noise, False)):
        found = claim.assumptions(claim.signs(claim.time(noise), 400, 6600, noise))
        assert named == any("votes" in one.sentence for one in found) and all(one.holds for one in found)
