"""Growing thresholds, step by step against NumPy."""

import dataclasses

import numpy as np
import pytest

import featlab as fl

P = fl.probes
ETA, KAPPA, ALPHA = 0.5, 0.6, 0.7


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
    network=fl.networks.SymmetricReLU(width=20, init_scale=0.1),
    algorithm=fl.algorithms.GrowingThresholds(ETA, spread=KAPPA, share=ALPHA),
    probes=(everything,),
    record=P.every(1),
    steps=6,
    precision=64,
)


def longest(w):
    return np.mean(np.sort(np.linalg.norm(w, axis=1))[-2:])  # of twenty


def by_hand(w, x, y, spread, share, paced):
    """All weights, thresholds and scales."""
    least = spread * np.sqrt(np.mean((x @ w.T) ** 2))
    first = b = max(least, share * longest(w))
    steps = [(w, b, 0.1)]
    for _ in range(6):
        products = x @ w.T
        f = np.sum(np.maximum(products - b, 0) - np.maximum(-products - b, 0), axis=1)
        slope = -y / (1 + np.exp(y * f)) / len(y)
        gradient = ((np.abs(products) > b) * slope[:, None]).T @ x
        w = w - ETA * (b / first if paced and first else 1.0) * gradient
        b = max(least, share * longest(w))
        steps.append((w, b, 0.1 * (b / first if first else 1.0)))
    return [np.array(one) for one in zip(*steps)]


@pytest.mark.parametrize(
    "spread, share, paced",
    [
        (KAPPA, ALPHA, True),
        pytest.param(KAPPA, ALPHA, False, marks=pytest.mark.slow),
        pytest.param(3.0, 0.1, True, marks=pytest.mark.slow),
        pytest.param(0.0, 0.0, True, marks=pytest.mark.slow),
    ],
)
def test_steps_are_those_by_hand(spread, share, paced):
    algorithm = fl.algorithms.GrowingThresholds(ETA, spread=spread, share=share, paced=paced)
    history = fl.run(dataclasses.replace(EXPERIMENT, algorithm=algorithm), seeds=1, progress=False).isel(seed=0)
    x, y, w = history.x[0].values, history.label.values, history.w.values
    weights, thresholds, scales = by_hand(w[0], x, y, spread, share, paced)
    np.testing.assert_allclose(w, weights, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(history.b, np.repeat(thresholds[:, None], 20, axis=1), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(history.scale, scales, rtol=1e-7)
    if share == ALPHA:
        assert thresholds[-1] > 1.05 * thresholds[0]  # they did grow
    assert np.abs(w[-1] - w[0]).max() > 1e-3


@pytest.mark.slow
def test_a_network_without_thresholds_is_refused():
    other = dataclasses.replace(EXPERIMENT, network=fl.networks.TwoLayerCNN(width=2), probes=())
    with pytest.raises(fl.InputError, match="GrowingThresholds is about SymmetricReLU"):
        fl.run(other, seeds=1)
