"""Growing thresholds, step by step against NumPy."""

import dataclasses

import numpy as np
import pytest

import featlab as fl

P = fl.probes
ETA, FIRST, ALPHA = 0.5, 1.2, 0.7
STOPS = 0.2  # a share so small that thresholds stop there


@P.probe(
    w=P.Variable("neuron column", "w", "weights"),
    b=P.Variable("neuron", "b", "thresholds"),
    scale=P.Variable("", r"\sigma_3", "scale"),
    x=P.Variable("sample column", "x", "inputs"),
)
def everything(view):
    x = view.training.inputs[:, 0]
    return {"w": view.params.weights, "b": view.params.thresholds, "scale": view.params.scale, "x": x}


EXPERIMENT = fl.Experiment(
    data=fl.data.SparseCoding(n=30, d=7, sparsity=1, noise_scale=0.2),
    network=fl.networks.SymmetricReLU(width=20, init_scale=0.1, threshold=FIRST),
    algorithm=fl.algorithms.GrowingThresholds(ETA, share=ALPHA),
    probes=(everything,),
    record=P.every(1),
    steps=6,
    precision=64,
)


def longest(w):
    return np.mean(np.sort(np.linalg.norm(w, axis=1))[-2:])  # of twenty


def by_hand(w, x, y, first, share, paced):
    """All weights, thresholds and scales; the squared length of the mean pull by pairs of different samples."""
    b, steps, n = first, [(w, first, 0.1)], len(y)
    for _ in range(6):
        products = x @ w.T
        f = np.sum(np.maximum(products - b, 0) - np.maximum(-products - b, 0), axis=1)
        pull = (y / (1 + np.exp(y * f)))[:, None] * x
        pairs = [pull[i] @ pull[j] for i in range(n) for j in range(n) if i != j]
        rate = ETA * (b / first if paced and first else 1.0)
        w = w + rate * (np.abs(products) > b).T @ pull / n
        b = max(b, min(b + rate / 2 * np.sqrt(max(np.mean(pairs), 0) / 7), share * longest(w)))
        steps.append((w, b, 0.1 * (b / first if first else 1.0)))
    return [np.array(one) for one in zip(*steps)]


@pytest.mark.parametrize(
    "first, share, paced",
    [
        (FIRST, ALPHA, True),
        pytest.param(FIRST, ALPHA, False, marks=pytest.mark.slow),
        pytest.param(FIRST, STOPS, True, marks=pytest.mark.slow),
        pytest.param(0.0, 0.0, True, marks=pytest.mark.slow),
    ],
)
def test_steps_are_those_by_hand(first, share, paced):
    changed = dataclasses.replace(
        EXPERIMENT,
        network=dataclasses.replace(EXPERIMENT.network, threshold=first),
        algorithm=fl.algorithms.GrowingThresholds(ETA, share=share, paced=paced),
    )
    history = fl.run(changed, seeds=1, progress=False).isel(seed=0)
    x, y, w = history.x[0].values, history.label.values, history.w.values
    weights, thresholds, scales = by_hand(w[0], x, y, 0.1 * first, share, paced)
    np.testing.assert_allclose(w, weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(history.b, np.repeat(thresholds[:, None], 20, axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(history.scale, scales, rtol=1e-7)
    assert np.isclose(thresholds[-1], share * longest(w[-1])) == (share in (0, STOPS))
    assert (thresholds[-1] > 1.05 * thresholds[0]) == (share > 0)  # they did grow
    assert np.abs(w[-1] - w[0]).max() > 1e-3


@pytest.mark.slow
def test_a_neuron_awake_on_its_atom_moves_at_the_speed_that_thresholds_are_measured_by():
    """One atom an input, no noise: a neuron above the threshold for all inputs with its atom gains v a step."""
    coding = fl.data.SparseCoding(n=4000, d=8, sparsity=1)
    one = dataclasses.replace(EXPERIMENT, data=coding, steps=1, network=fl.networks.SymmetricReLU(200, 0.01, 1.5))
    history = fl.run(one, seeds=1, progress=False).isel(seed=0)
    (before, after), b = history.w.values, history.b.values
    awake = np.abs(before) > b[0][:, None]
    moved = np.abs(after - before)[awake] / ETA
    assert 20 < awake.sum() < 0.5 * awake.size and np.abs(after - before)[~awake].max() == 0
    speed = 2 * (b[1] - b[0])[0] / ETA
    np.testing.assert_allclose(moved, 0.5 / 8, rtol=0.15)  # half of the slope's largest value, an atom in eight
    np.testing.assert_allclose(moved.mean(), speed, rtol=0.05)


@pytest.mark.slow
@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"network": fl.networks.TwoLayerCNN(width=2)},
            "needs a SymmetricReLU network, got TwoLayerCNN",
        ),
        (
            {"objective": fl.objectives.Denoising(t=0.2)},
            "needs a Supervised objective, got Denoising",
        ),
    ],
)
def test_other_networks_and_objectives_are_refused(changes, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        fl.run(dataclasses.replace(EXPERIMENT, probes=(), **changes), seeds=1)
