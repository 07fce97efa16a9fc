"""What SAM switches off, how fast signal and noise grow, how steep the loss is; and when a level is reached."""

import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.engine.loop import draw_one

pytestmark = pytest.mark.gpu

A, P = fl.algorithms, fl.probes
SIGNAL = fl.data.SignalNoise(n=8, d=60, snr=0.6, noise_scale=60**-0.5, label_flip=0.3, orthogonal=False)
LIMIT = fl.data.SignalNoise(n=6, d=math.inf, snr=0.8)


def filters(view):
    return view.params.filters


def experiment(algorithm, probes, **changes):
    base: dict[str, Any] = dict(
        data=SIGNAL,
        network=fl.networks.TwoLayerCNN(width=3, init_scale=0.3),
        algorithm=algorithm,
        probes=probes,
        steps=8,
        record=P.every(1),
        space=fl.Ambient,
        precision=64,
    )
    return fl.Experiment(**{**base, **changes})


def training_set(made, seed):
    """Signal, noise, clean and observed labels."""
    with jax.enable_x64(True):
        draw, _ = eqx.filter_jit(draw_one)(made, made.empty_space(), jnp.uint32(seed), made.data.n)
        batch = draw.training
        return map(np.asarray, (draw.truth.vectors[0], batch.noise[:, 0], batch.clean_labels, batch.labels))


def gradient(w, mu, noise, clean, labels):
    """Of the mean logistic loss; w has the classes +1 and -1, each with its filters."""
    slopes, n, m = np.zeros_like(w), len(labels), w.shape[1]
    for i in range(n):
        patches = clean[i] * mu, noise[i]
        response = [np.maximum(w @ patch, 0).sum(axis=1) / m for patch in patches]
        f = sum(one[0] - one[1] for one in response)
        dloss = -labels[i] / (1 + np.exp(labels[i] * f))
        for j, sign in enumerate((1, -1)):
            for patch in patches:
                slopes[j] += dloss * sign / (n * m) * (w[j] @ patch > 0)[:, None] * patch
    return slopes


def on_own_class(w, mu, noise, clean, labels):
    """For each sample, the products of its signal and of its noise with the filters of its observed class."""
    own = [w[0] if label > 0 else w[1] for label in labels]
    signals = np.array([filters @ (y * mu) for filters, y in zip(own, clean)])
    return signals, np.array([filters @ xi for filters, xi in zip(own, noise)])


@pytest.mark.slow
def test_what_sam_switches_off_and_how_alignments_grow():
    """SAM for four steps, then descent, against NumPy at every step."""
    radius, switch = 0.5, 4
    made = experiment(
        A.Then(A.SAM(0.5, radius), switch, A.GradientDescent(0.4)),
        [filters, P.deactivation, P.alignments, P.growth_rates],
    )
    history, (mu, *rest) = fl.run(made, [3]).isel(seed=0), training_set(made, 3)
    weights, off, aligned = history.filters.values, [], []
    for t, w in enumerate(weights):
        uphill = gradient(w, mu, *rest)
        perturbed = w + radius * uphill / np.linalg.norm(uphill)
        before, after = (on_own_class(one, mu, *rest) for one in (w, perturbed))
        off.append([np.mean(now[was >= 0] < 0) if t < switch else np.nan for was, now in zip(before, after)])
        aligned.append([part.max(axis=1).mean() for part in before])
    off = np.array([[np.nan, np.nan], *off[:-1]])  # a reading is of the step before it
    np.testing.assert_allclose(history.deactivated_on_signal, off[:, 0], atol=1e-12)
    np.testing.assert_allclose(history.deactivated, off[:, 1], atol=1e-12)
    assert 0 < np.nanmin(off[:, 1]) and np.nanmax(off[:, 1]) < 1
    for k, name in enumerate(("signal", "noise")):
        values = np.array(aligned)[:, k]
        np.testing.assert_allclose(history[f"{name}_alignment"], values, atol=1e-12)
        np.testing.assert_allclose(history[f"{name}_growth"], [0, *np.diff(values)], atol=1e-12)


@pytest.mark.slow
def test_a_far_perturbation_switches_off_everything_and_none_nothing():
    """Noise vectors are orthogonal at d = inf, so uphill points away from every one that is active."""

    def read(radius):
        made = experiment(A.SAM(0.5, radius), [P.deactivation], data=LIMIT, space=None, steps=1)
        last = fl.run(made, 3, products=True).isel(step=-1)
        return last.deactivated, last.deactivated_on_signal

    assert all((share == 1).all() for share in read(1e6))
    assert all((share == 0).all() for share in read(1e-9))
    assert all(np.isnan(share).all() for share in read(0.0))  # nothing was perturbed


def test_what_is_not_perturbed_cannot_be_switched_off():
    with pytest.raises(fl.InputError, match="deactivation needs SAM, and GradientDescent perturbs nothing"):
        fl.run(experiment(A.GradientDescent(0.1), [P.deactivation]))


def test_the_first_sign_step_adds_eta_to_the_signal_and_eta_times_the_noise_to_the_noise():
    """Where every coordinate belongs to one sample: eta |v|, and eta times the mean of sum_k |xi_ik|."""
    eta = 0.01
    data = fl.data.SparseSignalNoise(n=4, d=300, sparsity=3)
    network = fl.networks.TwoLayerCNN(width=5, init_scale=0.1)
    made = experiment(A.SignDescent(eta), [P.growth_rates, filters], data=data, network=network, steps=1)
    history, (mu, noise, clean, labels) = fl.run(made, [1]).isel(seed=0), training_set(made, 1)
    assert (np.sum(noise != 0, axis=0) <= 1).all() and set(clean) == {1, -1}
    _, before = on_own_class(history.filters.values[0], mu, noise, clean, labels)
    assert (before.max(axis=1) > 0).all()  # some filter is active on each
    np.testing.assert_allclose(history.signal_growth[1], eta, rtol=1e-12)
    np.testing.assert_allclose(history.noise_growth[1], eta * np.mean(np.sum(abs(noise), axis=1)), rtol=1e-12)


@pytest.mark.slow
def test_gradient_norms_include_the_weight_decay_of_the_stage():
    stages = A.Adam(0.1, weight_decay=0.2), A.GradientDescent(0.3, weight_decay=0.7)
    made = experiment(A.Then(stages[0], 2, stages[1]), [P.gradient_norm, P.gradient_norm_1, filters], steps=4)
    history, drawn = fl.run(made, [3]).isel(seed=0), list(training_set(made, 3))
    slopes = [gradient(w, *drawn) + (0.2 if t < 2 else 0.7) * w for t, w in enumerate(history.filters.values)]
    np.testing.assert_allclose(history.gradient_norm, [np.linalg.norm(s) for s in slopes], rtol=1e-12)
    np.testing.assert_allclose(history.gradient_norm_1, [abs(s).sum() for s in slopes], rtol=1e-12)


LEVEL = 0.55
LOUD = P.above(P.alignments, 0.4, "noise_alignment")
BOTH = P.all_of([P.below(P.train_loss, LEVEL), LOUD])


def curves(steps, *probes):
    algorithm = A.Then(A.SAM(0.7, 0.3), 10, A.GradientDescent(0.5))
    made = experiment(algorithm, [P.train_loss, *probes], data=LIMIT, space=None, steps=steps)
    return fl.run(made, 8, products=True)


def earliest(holds):
    """The first step at which something holds in each run, -1 where it never does."""
    holds = np.asarray(holds)
    return np.where(holds.any(axis=1), holds.argmax(axis=1), -1)


@pytest.mark.slow
def test_moments_and_ends_are_those_of_a_record_of_every_step():
    """Of several conditions at once, of a probe's second variable, and of a level that must wait for a stage."""
    moments = (
        P.train_error.on(P.first(BOTH, "both")),
        P.train_loss.on(P.first(LOUD, "loud")),
    )
    full = curves(30, P.alignments, *moments)
    low, noise, steps = full.train_loss <= LEVEL, full.noise_alignment, np.arange(31)
    both, loud = earliest(low & (noise >= 0.4)), earliest(noise >= 0.4)
    assert len(set(both)) > 3 and (both != loud).any() and (both != earliest(low)).any() and -1 in both
    np.testing.assert_array_equal(full.both, both)
    np.testing.assert_array_equal(full.loud, loud)
    np.testing.assert_array_equal(full.train_loss_at_loud, full.train_loss.values[np.arange(8), loud])
    waited = curves(P.until(P.train_loss, LEVEL, at_most=30, after=10))
    ends = earliest(low & (steps >= 10))
    soon = earliest(low)
    assert ((0 <= soon) & (soon < 10)).any() and (ends > 10).any()
    np.testing.assert_array_equal(waited.stopped_at, ends)
    np.testing.assert_array_equal(waited.steps_taken, np.where(ends < 0, 30, ends))


def test_a_condition_promises_what_all_its_parts_promise():
    plain = P.all_of([P.below(P.train_loss, 0.1), lambda view: view.step > 3])
    assert BOTH.sees == fl.Sees.PRODUCTS and plain.sees == fl.Sees.COORDINATES
    assert not P.all_of([P.below(P.gradient_norm_1, 0.1), P.below(P.train_loss, 0.1)]).sees < fl.Sees.COORDINATES


def test_a_variable_that_a_probe_does_not_have_is_refused():
    moment = P.first(P.below(P.alignments, 0.1, "noise_alignmnt"), "t")
    with pytest.raises(fl.InputError, match="alignments does not return 'noise_alignmnt'.*noise_alignment"):
        fl.run(experiment(A.GradientDescent(0.1), [P.train_loss.on(moment)]))
