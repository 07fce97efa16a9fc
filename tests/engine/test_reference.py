"""Float64 runs against the update of the papers, written out in plain NumPy."""

import dataclasses

import jax
import numpy as np
import pytest

import featlab as fl
from featlab.engine.loop import draw_one

pytestmark = [pytest.mark.gpu, pytest.mark.rounding]

STEPS = 60
ETA, BETA, DECAY, BATCH = 0.7, 0.8, 0.02, 5


def make(activation, algorithm, size=None, **data):
    model = fl.data.SignalNoise(n=12, d=300, snr=0.4, noise_scale=300**-0.5, label_flip=0.3, **data)
    return fl.Experiment(
        data=model if size is None else fl.data.Minibatches(model, size),
        # The cubic network needs a start that is not too small to move within the steps of the test.
        network=fl.networks.TwoLayerCNN(
            width=5, activation=activation, init_scale=0.1 if activation is fl.networks.relu else 0.8
        ),
        algorithm=algorithm,
        probes=[
            fl.probes.products,
            fl.probes.coefficients,
            fl.probes.coefficients_by_recursion,
            fl.probes.train_loss,
            fl.probes.margins,
        ],
        steps=STEPS,
        record=fl.probes.every(1),
        precision=64,
    )


def drawn(experiment, seed):
    """The run's own draw, as NumPy arrays."""
    with jax.enable_x64(True):
        space = experiment.empty_space()
        draw, _ = draw_one(experiment, space, np.uint32(seed), experiment.data.n)
        order = None
        if isinstance(experiment.data, fl.data.Minibatches):
            order = minibatch_order(draw.batch_key, experiment.data.n)
        truth = np.asarray(draw.truth.norms[0] * draw.truth.directions[0])
        batch = draw.training
        start = np.asarray(draw.start.filters)
        return (
            truth,
            np.asarray(batch.noise[:, 0]),
            np.asarray(batch.clean_labels),
            np.asarray(batch.labels),
            start,
            order,
        )


def minibatch_order(key, n):
    epochs = [jax.random.uniform(jax.random.fold_in(key, e), (n,), np.float32) for e in range(STEPS)]
    return [np.argsort(np.asarray(lottery)) for lottery in epochs]


def reference(mu, noise, y, observed, start, power, momentum=0.0, decay=0.0, order=None):
    """Gradient descent as science would write it: loops over classes, filters and samples; no autodiff."""

    def sigma(z):
        return np.maximum(z, 0.0) ** power

    def slope(z):
        return power * np.maximum(z, 0.0) ** (power - 1) * (z > 0)

    w, velocity, m, n = start.copy(), np.zeros_like(start), start.shape[1], len(y)
    history = []
    for t in range(STEPS + 1):
        f = np.zeros(n)
        for i in range(n):
            for j, sign in enumerate((1, -1)):
                for r in range(m):
                    f[i] += sign / m * (sigma(w[j, r] @ (y[i] * mu)) + sigma(w[j, r] @ noise[i]))
        history.append((w @ mu, w @ noise.T, np.mean(np.log1p(np.exp(-observed * f))), observed * f))
        chosen = np.arange(n)
        if order is not None:
            per_epoch = -(-n // BATCH)
            epoch, place = divmod(t, per_epoch)
            chosen = order[epoch][place * BATCH : (place + 1) * BATCH]
        gradient = np.zeros_like(w)
        for i in chosen:
            dloss = -1 / (1 + np.exp(observed[i] * f[i]))
            for j, sign in enumerate((1, -1)):
                for r in range(m):
                    inner = slope(w[j, r] @ (y[i] * mu)) * y[i] * mu + slope(w[j, r] @ noise[i]) * noise[i]
                    gradient[j, r] += dloss * observed[i] * sign / m * inner / len(chosen)
        velocity = momentum * velocity + gradient + decay * w
        w = w - ETA * velocity
    return [np.stack(column) for column in zip(*history)]


CASES = {
    "descent": (fl.algorithms.GradientDescent(ETA), {}, None),
    "momentum": (fl.algorithms.GradientDescent(ETA, BETA), {"momentum": BETA}, None),
    "weight decay": (fl.algorithms.GradientDescent(ETA, None, DECAY), {"decay": DECAY}, None),
    "all": (fl.algorithms.GradientDescent(ETA, BETA, DECAY), {"momentum": BETA, "decay": DECAY}, BATCH),
    "mini-batch": (fl.algorithms.GradientDescent(ETA), {}, BATCH),
}


SOON = {("all", 1, "ambient")}
EVERY = [
    pytest.param(case, power, space, marks=[] if (case, power, space) in SOON else pytest.mark.slow)
    for case in CASES
    for power in (1, 3)
    for space in ("span", "ambient")
]


@pytest.mark.parametrize("case, power, space", EVERY)
def test_run_equals_a_plain_numpy_implementation(case, power, space):
    algorithm, settings, size = CASES[case]
    activation = fl.networks.relu if power == 1 else fl.networks.relu_power(power)
    space = fl.Span if space == "span" else fl.Ambient
    experiment = dataclasses.replace(make(activation, algorithm, size), space=space)
    history = fl.run(experiment, seeds=[3])
    mu, noise, y, observed, start, order = drawn(experiment, 3)
    assert 0 < np.sum(y != observed) < len(y)  # some labels are flipped
    signal, products, loss, margins = reference(mu, noise, y, observed, start, power, order=order, **settings)
    np.testing.assert_allclose(history.signal_product[0], signal, atol=1e-10)
    np.testing.assert_allclose(history.noise_product[0], products, atol=1e-10)
    np.testing.assert_allclose(history.train_loss[0], loss, atol=1e-10)
    np.testing.assert_allclose(history.margin[0], margins, atol=1e-10)
    assert np.ptp(loss) > 0.02  # something happened


@pytest.mark.parametrize(
    "case", [pytest.param(case, marks=[] if case == "all" else pytest.mark.slow) for case in CASES]
)
def test_the_decomposition_is_exact_and_both_roads_to_it_agree(case):
    algorithm, _, size = CASES[case]
    history = fl.run(make(fl.networks.relu, algorithm, size), seeds=6)
    assert history.residual.max() < 1e-14
    for name in ("gamma", "rho", "alpha"):
        assert abs(history[name] - history[f"{name}_recursion"]).max() < 1e-12
    assert abs(history.gamma).max() > 0.05 and abs(history.rho).max() > 0.05
    decays = algorithm.weight_decay is not None
    assert (history.alpha[:, -1] < 0.9).all() if decays else (abs(history.alpha - 1) < 1e-13).all()


@pytest.mark.slow
def test_gamma_and_rho_rebuild_the_weights():
    """w = alpha w0 + j gamma mu/|mu|^2 + sum_i rho_i xi_i/|xi_i|^2, put together by hand."""
    experiment = make(fl.networks.relu, fl.algorithms.GradientDescent(ETA, BETA, DECAY), BATCH)
    history = fl.run(experiment, seeds=[3])
    mu, noise, _, _, start, _ = drawn(experiment, 3)
    j = np.array([1.0, -1.0])[:, None, None]
    for t in (0, 1, 30, 60):
        now = history.isel(seed=0, step=t)
        weights = now.alpha.item() * start + j * now.gamma.values[..., None] * mu / (mu @ mu)
        weights = weights + now.rho.values @ (noise / np.sum(noise**2, axis=1)[:, None])
        np.testing.assert_allclose(weights @ mu, now.signal_product, atol=1e-12)
        np.testing.assert_allclose(weights @ noise.T, now.noise_product, atol=1e-12)


@pytest.mark.slow
def test_without_a_signal_gamma_is_the_component_along_its_direction():
    experiment = make(fl.networks.relu, fl.algorithms.GradientDescent(ETA))
    model = dataclasses.replace(experiment.data, snr=0.0, orthogonal=False)
    history = fl.run(dataclasses.replace(experiment, data=model), seeds=2)
    assert history.residual.max() < 1e-14 and abs(history.gamma[:, -1]).max() > 1e-4
