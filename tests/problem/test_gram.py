"""Training in inner products, many runs read at their end, and paced descent: the same numbers, only faster."""

import dataclasses
import math
import time

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

import featlab as fl
from featlab.core.space import Span
from featlab.engine import batch as many
from featlab.engine.batch import train_many

pytestmark = pytest.mark.gpu

P = fl.probes
READ = [P.coefficients, P.test_error(count=500)]
ALL = [*READ, P.train_loss, P.test_loss(count=500), P.margins, P.coefficient_bounds]


class TwoNoises(fl.data.AbstractVectorModel):
    """Three patches of one signal and two noise vectors, one of them seen twice, with a coin for each."""

    n: int
    d: float
    strength: float
    length: float = 1.0

    signal_count = 1
    noise_count = 2
    signed_by_class = True

    def signals(self, space):
        return jnp.eye(1), jnp.array([self.strength])

    def noise_length(self, space):
        return self.length * space.length(0.1)

    def noise_off(self):
        return False

    def toss(self, key, training):
        label_key, coin_key = jax.random.split(key)
        label = jax.random.rademacher(label_key, (), float)
        return label, label, jax.random.rademacher(coin_key, (2,), float)

    def compose(self, clean_label, coins, signals, noise):
        return coins[0] * noise[0], clean_label * signals[0] - 0.5 * noise[1], coins[1] * noise[1]


def experiment(**changes):
    base = dict(
        data=fl.data.SignalNoise(n=6, d=math.inf, snr=0.5, label_flip=0.3),
        network=fl.networks.TwoLayerCNN(width=3, init_scale=0.3),
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[P.train_loss, P.coefficients],
        steps=20,
        record=P.every(10),
        precision=64,
    )
    return fl.Experiment(**{**base, **changes})


def network(**variant):
    return fl.networks.TwoLayerCNN(**{"width": 3, "init_scale": 0.3, **variant})


CASES = {
    "flips, isotropic noise, any slot; bias and head": dict(
        data=fl.data.SignalNoise(
            n=6, d=200, snr=0.7, noise_scale=200**-0.5, label_flip=0.3, orthogonal=False, random_slot=True
        ),
        network=network(bias=True, train_head=True),
        algorithm=fl.algorithms.GradientDescent(1.0, momentum=0.5),
        probes=[P.coefficients, P.margins],
        rows=8,
    ),
    "exclusive or, oblique; cubed": dict(
        data=fl.data.XorSignalNoise(n=6, d=50, signal_norm=1.0, noise_scale=0.2, cosine=0.4, orthogonal=False),
        network=network(activation=fl.networks.relu_power(3)),
        algorithm=fl.algorithms.PacedDescent(0.1),
    ),
    "two noise vectors; uniform start": dict(
        data=TwoNoises(5, 300.0, 1.0, 0.5),
        network=network(
            activation=fl.networks.leaky_relu(0.2), uniform_start=True, bias=True, average_patches=True
        ),
        algorithm=fl.algorithms.GradientDescent(2.0),
        probes=[P.coefficients, P.margins],
        rows=7,
    ),
    "no dimension, exclusive or; leaky, squared loss": dict(
        data=fl.data.XorSignalNoise(
            n=6, d=math.inf, snr=0.7, cosine=-0.4, label_flip=0.3, test_flip=0.1, random_slot=True
        ),
        network=network(activation=fl.networks.leaky_relu(0.2), average_filters=False, average_patches=True),
        algorithm=fl.algorithms.GradientDescent(0.3, momentum=0.5),
        objective=fl.objectives.squared,
        probes=ALL,
        rows=8,
    ),
    "no dimension, two noise vectors; on every clock": dict(
        data=TwoNoises(5, math.inf, 1.0),
        network=network(activation=fl.networks.relu_power(3), bias=True, train_head=True),
        algorithm=fl.algorithms.PacedDescent(0.5),
        probes=[
            P.coefficients,
            P.coefficient_bounds.on(P.throughout),
            P.margins.on(P.first(P.below(P.train_loss, 0.68), "T1")),
        ],
    ),
}


SOON = ("no dimension, two noise vectors; on every clock",)


@pytest.mark.parametrize("case", [pytest.param(c, marks=[] if c in SOON else pytest.mark.slow) for c in CASES])
def test_training_in_products_gives_the_same_numbers(case):
    compare(CASES[case], 1e-9)


@pytest.mark.slow
def test_training_in_products_gives_the_same_numbers_in_single_precision():
    case = CASES["flips, isotropic noise, any slot; bias and head"]
    compare({**case, "precision": 32}, 1e-4)


def compare(case, tolerance):
    case = {"probes": READ, **case}
    rows = case.pop("rows", None)
    base = experiment(**case)
    plain, products = fl.run(base, [0, 3]), fl.run(base, [0, 3], products=True, rows=rows)
    assert set(plain.data_vars) == set(products.data_vars) and plain.attrs["space"] == "Span"
    assert (abs(plain.rho[:, -1]).max(plain.rho.dims[2:]) > 0.03).all()  # something was learnt
    for name, values in plain.data_vars.items():
        if values.dtype.kind != "f":
            assert (values == products[name]).all(), name
            continue
        np.testing.assert_allclose(products[name], values, rtol=tolerance, atol=tolerance, err_msg=name)


@fl.probes.probe(sees=fl.Sees.VECTORS, moved=P.Variable("row", r"\|w - w_0\|", "movement"))
def moved(view):
    return jnp.linalg.norm(view.weights - view.start_weights, axis=1)


class Silent(fl.networks.AbstractProductNetwork):
    """Does not say what it has beside its weights."""

    def init(self, key, space):
        return space.gaussian(key, 2)

    def weights(self, params):
        return params

    def respond(self, params, products):
        return jnp.sum(products)


SMALL = fl.data.SignalNoise(n=6, d=200, snr=0.5)


@pytest.mark.parametrize(
    "changes, obstacle",
    [
        ({"data": fl.data.Minibatches(SMALL, 3)}, "the data model Minibatches sees whole vectors"),
        ({"data": dataclasses.replace(SMALL, d=12.0)}, "d = 12 is less than the 13 vectors"),
        ({"data": TwoNoises(5, math.inf, 1.0, 2.0)}, "the noise of TwoNoises has another length than one"),
        ({"network": Silent()}, "the network Silent sees whole vectors"),
        (
            {"algorithm": fl.algorithms.GradientDescent(1.0, weight_decay=0.1)},
            "GradientDescent sees whole vectors",
        ),
        ({"algorithm": fl.algorithms.Descent(optax.adam(0.1))}, "the algorithm Descent sees coordinates"),
        (
            {"algorithm": fl.algorithms.Descent(optax.sgd(0.1), rotates=True)},
            "the algorithm Descent sees whole vectors",
        ),
        ({"algorithm": fl.algorithms.GradientFlow(1.0)}, "the algorithm GradientFlow sees whole vectors"),
        ({"probes": [P.train_loss, moved]}, "the probe moved sees whole vectors"),
        ({"probes": [moved.on(P.throughout)]}, "the probe moved sees whole vectors"),
        ({"probes": [P.coefficients_by_recursion]}, "the probe CoefficientsByRecursion sees whole vectors"),
        ({"steps": P.until(P.weight_norms, 1.0)}, "the probe weight_norms sees whole vectors"),
        ({"space": fl.Ambient}, "Ambient is asked for"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_train_in_products_is_refused_by_name(changes, obstacle):
    with pytest.raises(fl.InputError, match=f"products=True.* is not possible: .*{obstacle}"):
        fl.run(experiment(**{"data": SMALL, **changes}), products=True)


def different(count, **numbers):
    """Experiments that differ in several numbers, and their seeds."""
    experiments = [
        experiment(
            data=fl.data.SignalNoise(
                n=6, snr=0.3 + 0.2 * i, label_flip=0.3, **{name: values[i] for name, values in numbers.items()}
            ),
            algorithm=fl.algorithms.GradientDescent(1.0 - 0.1 * i),
            steps=P.until(P.train_loss, 0.5 + 0.04 * i, at_most=25),
        )
        for i in range(count)
    ]
    return experiments, [4, 0, 3, 3, 1][:count]


@pytest.mark.parametrize("decay", [pytest.param(None, marks=pytest.mark.slow), 0.01])
def test_endings_are_where_each_run_ends_alone(decay):
    """Also without products, where these are not possible."""
    experiments, seeds = different(3, d=[math.inf] * 3)
    experiments = [
        dataclasses.replace(one, algorithm=dataclasses.replace(one.algorithm, weight_decay=decay))
        for one in experiments
    ]
    assert (experiments[0].representation > fl.Sees.PRODUCTS) == (decay is not None)
    read = train_many(experiments, seeds)
    for i, (one, seed) in enumerate(zip(experiments, seeds)):
        alone = fl.run(one, [seed])
        for name, values in read.items():
            last = alone[name].isel(step=-1) if "step" in alone[name].dims else alone[name]
            np.testing.assert_allclose(values[i], last[0], atol=1e-9, err_msg=name)
    assert len(set(read["steps_taken"])) > 1


@pytest.mark.slow
def test_endings_depend_neither_on_blocks_nor_on_company(monkeypatch):
    experiments, seeds = different(5, d=[50, 100, 1e3, 1e6, 1e9], noise_scale=[0.1, 0.2, 0.1, 1e-3, 1e-5])
    together = train_many(experiments, seeds)
    told = []
    monkeypatch.setattr(many, "_IN_CACHE", 2 * 2 * 6 * 6)
    monkeypatch.setattr(many, "_BLOCKS", 1)
    monkeypatch.setattr(many, "_COMPILING", 0)  # nor are a few runs rounded up here, as they were together
    apart = train_many(experiments[::-1], seeds[::-1], tell=told.append)
    assert set(together) == set(apart)
    assert told == ([2, 4, 5] if jax.default_backend() == "cpu" else [5])
    for name, values in together.items():
        np.testing.assert_allclose(apart[name][::-1], values, atol=1e-9, err_msg=name)
    assert len(np.unique(together["train_loss"])) == 5  # no run was taken for another


def test_only_a_run_that_reached_its_level_without_diverging_is_trained():
    base = experiment(network=network(activation=fl.networks.leaky_relu(0.5)), objective=fl.objectives.squared)
    rates, levels = [0.5, 0.5, 1e3], [0.45, 1e-9, 1e-9]
    runs = [
        dataclasses.replace(
            base,
            algorithm=fl.algorithms.GradientDescent(rate),
            steps=P.until(P.train_loss, level, at_most=200),
        )
        for rate, level in zip(rates, levels)
    ]
    read = train_many(runs, [0, 0, 0])
    assert list(read["trained"]) == [True, False, False]
    taken = read["steps_taken"]
    assert 0 < taken[0] < 200 and taken[1] == 200 and 0 < taken[2] < 200
    assert 0.4 < read["train_loss"][0] <= 0.45
    assert all(np.isfinite(read[name]).all() for name in ("gamma", "rho"))
    fixed = [dataclasses.replace(one, steps=200) for one in (runs[0], runs[2])]
    assert list(train_many(fixed, [0, 0])["trained"]) == [True, False]


def test_experiments_that_differ_in_more_than_numbers_do_not_run_together(monkeypatch):
    base = experiment(data=SMALL)
    others = [
        dataclasses.replace(base, network=network(width=4)),
        dataclasses.replace(base, steps=21),
        dataclasses.replace(base, precision=32),
        dataclasses.replace(base, data=dataclasses.replace(SMALL, d=math.inf)),
        dataclasses.replace(base, data=dataclasses.replace(SMALL, snr=None, signal_norm=1.0)),
        dataclasses.replace(base, algorithm=fl.algorithms.GradientDescent(1.0, weight_decay=0.1)),
        dataclasses.replace(base, data=dataclasses.replace(SMALL, d=12.0)),
    ]
    for cache in (many._IN_CACHE, 1):  # in one block, and in a block of its own
        monkeypatch.setattr(many, "_IN_CACHE", cache)
        for other in others:
            with pytest.raises(fl.InputError, match="Experiments that run together"):
                train_many([base, other], [0, 1])
    for experiments, seeds in (([base, base], [0]), ([], [])):
        with pytest.raises(fl.InputError, match="one seed for each experiment"):
            train_many(experiments, seeds)


def test_a_uniform_start_costs_no_more_in_a_larger_dimension():
    """Unit of a block have dimensions of their own, and each draws its start by both roads."""

    @jax.jit
    @jax.vmap
    def rows(dimension):
        space = dataclasses.replace(Span.create(0.0, 4), dimension=dimension)
        return space.uniform(jax.random.key(0), 2)[0]

    def seconds(dimension):
        start = time.perf_counter()
        jax.block_until_ready(rows(jnp.array([dimension])))
        return time.perf_counter() - start

    seconds(1e6)  # to compile
    assert seconds(1e9) < 10 * seconds(1e6) + 0.5


@pytest.mark.slow
def test_no_output_outruns_the_pace():
    base = experiment(
        network=network(activation=fl.networks.relu_power(3)),
        algorithm=fl.algorithms.PacedDescent(0.01),
        probes=[P.margins],
        steps=60,
        record=P.every(1),
    )
    margins = fl.run(base, 4, products=True).margin.values
    sizes = abs(margins[:, :-1])
    allowed = np.maximum(sizes, np.minimum(sizes.max(axis=-1, keepdims=True), 1) / 10)
    moved = (abs(np.diff(margins, axis=1)) / allowed).max(axis=-1)
    np.testing.assert_allclose(moved, 0.01, rtol=0.05)


@pytest.mark.slow
def test_slow_paced_descent_takes_the_path_of_gradient_flow():
    """Gamma and rho where the training loss is 0.3: half the pace, half the distance to descent in small steps."""
    base = experiment(
        network=network(activation=fl.networks.relu_power(2), init_scale=0.5),
        data=fl.data.SignalNoise(n=5, d=math.inf, snr=1.0),
        record=P.every(1),
    )

    def path(algorithm, steps):
        history = fl.run(dataclasses.replace(base, algorithm=algorithm, steps=steps), [3], products=True)
        losses = history.train_loss.values[0]
        assert (np.diff(losses) <= 0).all() and losses[-1] < 0.3
        learnt = [history[name].values[0].reshape(steps + 1, -1) for name in ("gamma", "rho")]
        return np.array([np.interp(-0.3, -losses, values) for values in np.concatenate(learnt, axis=1).T])

    flow = path(fl.algorithms.GradientDescent(0.001), 6000)
    gaps = [abs(path(fl.algorithms.PacedDescent(pace), int(16 / pace)) - flow).max() for pace in (0.08, 0.04)]
    assert abs(flow).max() > 1 and gaps[0] < 0.02 * abs(flow).max() and 1.8 < gaps[0] / gaps[1] < 2.2


@pytest.mark.slow
@pytest.mark.parametrize("activation", [fl.networks.leaky_relu(0.2), fl.networks.relu])
def test_paced_descent_stays_finite_where_all_outputs_are_zero(activation):
    """With a gradient and without one."""
    silent = network(activation=activation, init_scale=0.0)
    base = experiment(network=silent, algorithm=fl.algorithms.PacedDescent(0.1), probes=[P.margins])
    history = fl.run(base, 2, products=True)
    assert history.trained.all() and (history.margin == 0).all()
