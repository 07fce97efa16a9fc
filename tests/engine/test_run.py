"""A result depends on the experiment and the seed alone, and says everything about itself."""

import dataclasses
import math

import jax
import numpy as np
import optax
import pytest

import featlab as fl
from featlab.engine import dataset as labelled
from featlab.engine import loop
from featlab.engine.loop import draw_one

pytestmark = pytest.mark.gpu

P = fl.probes


def experiment(**changes):
    base = dict(
        data=fl.data.SignalNoise(n=20, d=1e5, snr=0.3, noise_scale=1e5**-0.5, label_flip=0.2),
        network=fl.networks.TwoLayerCNN(width=6, init_scale=0.05),
        algorithm=fl.algorithms.GradientDescent(1.0),
        probes=[P.coefficients, P.train_loss, P.test_error(count=500), P.margins],
        steps=50,
        record=P.every(10),
    )
    return fl.Experiment(**{**base, **changes})


@pytest.mark.slow
@pytest.mark.parametrize("precision, tolerance", [(32, 1e-5), (64, 1e-9)])
@pytest.mark.parametrize(
    "algorithm", [fl.algorithms.GradientDescent(1.0), fl.algorithms.GradientDescent(0.3, 0.9, 0.01)]
)
def test_alone_padded_and_in_company_give_the_same_numbers(precision, tolerance, algorithm):
    base = experiment(precision=precision, algorithm=algorithm)
    together = fl.run(base, seeds=5)
    alone = fl.run(base, seeds=[3])
    padded = fl.run(base, seeds=[3, 1], rows=29)
    elsewhere = fl.run(base, seeds=[9, 3, 4, 1], block=2)
    for other in (alone, padded, elsewhere):
        seeds = [s for s in other.seed.values if s in together.seed.values]
        for name in ("gamma", "rho", "train_loss", "test_error", "margin", "alpha"):
            np.testing.assert_allclose(
                other[name].sel(seed=seeds), together[name].sel(seed=seeds), atol=tolerance, err_msg=name
            )
    assert padded.rho.sizes["sample"] == 20


@pytest.mark.slow
@pytest.mark.parametrize("start", [{"uniform_start": True, "bias": True}, {"train_head": True}], ids=str)
def test_padding_changes_nothing_in_mini_batches_either(start):
    base = experiment(network=fl.networks.TwoLayerCNN(width=4, **start), precision=64)
    base = dataclasses.replace(base, data=fl.data.Minibatches(base.data, 6))
    np.testing.assert_allclose(fl.run(base, [2]).rho, fl.run(base, [2], rows=27).rho, atol=1e-9)


@pytest.mark.slow
def test_infinite_dimension_is_the_limit():
    """d = inf against d = 1e9 on the same keys at n = 50: gamma, rho and training loss to 1e-3.

    A product near 0 may cross the ReLU's kink one step earlier in one of the two, and then differs by one step's
    worth, eta/(2nm): the learning rate keeps that below the tolerance.
    """
    slow = dict(steps=3000, algorithm=fl.algorithms.GradientDescent(0.2), record=P.evenly(10))
    limit = experiment(data=fl.data.SignalNoise(n=50, d=math.inf, snr=0.3, label_flip=0.1), **slow)
    large = dataclasses.replace(
        limit, data=fl.data.SignalNoise(n=50, d=1e9, snr=0.3, label_flip=0.1, noise_scale=1e9**-0.5)
    )
    at_limit, at_large = fl.run(limit, seeds=4), fl.run(large, seeds=4)
    for name in ("gamma", "rho", "train_loss"):
        np.testing.assert_allclose(at_limit[name], at_large[name], atol=1e-3)
    assert abs(at_limit.rho).max() > 0.5
    # Test inputs see the learnt noise as nothing at d = inf and as sqrt(n/d) at d = 1e9.
    np.testing.assert_allclose(at_limit.test_error, at_large.test_error, atol=0.02)


@pytest.mark.parametrize("d", [pytest.param(1e3, marks=pytest.mark.slow), 1e12])
def test_any_dimension_keeps_the_decomposition(d):
    probes = [P.coefficients, P.coefficients_by_recursion, P.train_loss]
    for scale in (1.0, d**-0.5):  # noise of length sqrt(d), and of length one
        data = fl.data.SignalNoise(n=20, d=d, snr=0.3, noise_scale=scale, label_flip=0.2)
        network = fl.networks.TwoLayerCNN(width=6, init_scale=0.05 / (scale * d**0.5))
        step = fl.algorithms.GradientDescent(1.0 / (scale**2 * d))
        history = fl.run(experiment(data=data, network=network, algorithm=step, probes=probes), seeds=2)
        assert history.attrs["space"] == "Span" and history.residual.max() < 1e-5
        for name in ("gamma", "rho"):
            np.testing.assert_allclose(history[name], history[f"{name}_recursion"], atol=2e-5)
        assert (history.train_loss[:, -1] < history.train_loss[:, 0] - 0.02).all()


@pytest.mark.slow
def test_blocks_that_do_not_divide_the_seeds_change_nothing():
    base = experiment(probes=[P.train_loss], steps=5)
    whole, blocks = fl.run(base, seeds=7, block=7), fl.run(base, seeds=7, block=3)
    assert list(blocks.seed.values) == list(range(7))
    np.testing.assert_allclose(whole.train_loss, blocks.train_loss, atol=1e-6)


@pytest.mark.slow
def test_precision_only_changes_rounding():
    """A float64 run repeats the same draws."""
    single, double = (fl.run(experiment(precision=p), seeds=3) for p in (32, 64))
    np.testing.assert_allclose(single.rho, double.rho, atol=1e-4)
    assert (single.label == double.label).all() and double.rho.dtype == np.float64


def test_a_run_stops_at_its_level_and_stays_there():
    base = experiment(steps=P.until(P.train_loss, 0.4, at_most=400))
    history = fl.run(base, seeds=6)
    assert history.trained.all() and (history.stopped_at > 0).all() and (history.stopped_at < 400).all()
    assert (history.train_loss[:, -1] <= 0.4).all() and (history.train_loss[:, -1] > 0.35).all()
    for seed in history.seed.values:
        stopped = int(history.stopped_at.sel(seed=seed))
        after = history.rho.sel(seed=seed).where(history.step >= stopped, drop=True)
        assert (after == after.isel(step=0)).all()
    # A record of every step says that the level was not reached before.
    soon = fl.run(dataclasses.replace(base, record=P.every(1)), seeds=6)
    assert (soon.stopped_at == history.stopped_at).all()
    assert (soon.train_loss.where(soon.step < soon.stopped_at, 1.0) > 0.4).all()


def test_a_level_out_of_reach_is_said_to_be_so():
    history = fl.run(experiment(steps=P.until(P.train_loss, 1e-6, at_most=30)), seeds=2)
    assert not history.trained.any() and (history.stopped_at == -1).all()
    assert (history.status == "unfinished").all()


def test_divergence_is_reported_and_nothing_is_nan():
    leaky = fl.networks.TwoLayerCNN(width=6, activation=fl.networks.leaky_relu(0.5))  # cannot die of one step
    too_fast = fl.algorithms.GradientDescent(1e3)
    wild = experiment(network=leaky, objective=fl.objectives.squared, algorithm=too_fast, steps=300)
    with pytest.warns(labelled.Diverged, match="diverged, the first at step"):
        history = fl.run(wild, seeds=3)
    assert (history.status == "diverged").all() and not history.trained.any()
    assert (history.diverged_at >= 1).all() and (
        history.diverged_at < 100
    ).all()  # when it happened, not at the end
    assert not any(bool(np.isnan(history[name]).any()) for name in ("gamma", "rho", "alpha"))


def test_zero_steps_show_the_start():
    history = fl.run(experiment(steps=0), seeds=2)
    assert history.sizes["step"] == 1
    for name, start in {"gamma": 0, "rho": 0, "alpha": 1}.items():
        np.testing.assert_allclose(history[name], start, atol=1e-6)


def test_the_dataset_says_what_it_is():
    base = experiment()
    history = fl.run(base, seeds=[4, 7])
    assert fl.rebuild(history.attrs["experiment"]) == base
    assert history.gamma.dims == ("seed", "step", "class", "filter")
    assert history.rho.dims == ("seed", "step", "class", "filter", "sample")
    assert history.gamma.attrs["symbol"] == r"\gamma_{j,r}"
    assert list(history["class"].values) == [1, -1] and list(history.seed.values) == [4, 7]
    assert list(history.step.values) == [0, 10, 20, 30, 40, 50]
    np.testing.assert_allclose(history.time, 1.0 * 0.3**2 / 6 * history.step, rtol=1e-6)
    assert {"stopped_at", "trained", "status", "label", "clean_label"} <= set(history.data_vars)


def test_each_probe_keeps_its_own_clock():
    base = experiment(probes=[P.train_loss, P.margins.on(P.geometric(5)), P.test_error.on(P.at_end)])
    history = fl.run(base, seeds=2)
    assert history.train_loss.dims == ("seed", "step")
    assert history.margin.dims == ("seed", "step_geometric_5", "sample")
    assert history.test_error.dims == ("seed",)
    every_step = fl.run(experiment(probes=[P.margins, P.train_loss], record=P.every(1)), seeds=2)
    chosen = every_step.margin.sel(step=history.step_geometric_5.values)
    np.testing.assert_allclose(history.margin.values, chosen.values, atol=1e-6)


@pytest.mark.slow
def test_extremes_and_first_times_agree_with_a_record_of_every_step():
    half_way = P.below(P.train_loss, 0.66)
    probes = [
        P.train_loss,
        P.coefficient_bounds,
        P.coefficient_bounds.on(P.throughout),
        P.margins.on(P.first(half_way, "T1")),
    ]
    history = fl.run(experiment(probes=probes, record=P.every(1), space=fl.Ambient, data=small()), seeds=3)
    for name, _ in P.coefficient_bounds.variables:
        np.testing.assert_allclose(history[f"{name}_lowest"], history[name].min("step"), atol=1e-6)
        np.testing.assert_allclose(history[f"{name}_highest"], history[name].max("step"), atol=1e-6)
    for seed in range(3):
        losses = history.train_loss.values[seed]
        assert history.T1.values[seed] == np.flatnonzero(losses < 0.66)[0]
        moment = fl.run(
            experiment(probes=[P.margins], space=fl.Ambient, data=small(), steps=int(history.T1[seed])),
            [seed],
        )
        np.testing.assert_allclose(history.margin_at_T1[seed], moment.margin[0, -1], atol=1e-6)


def small():
    return fl.data.SignalNoise(n=20, d=100, snr=0.3, noise_scale=0.1, label_flip=0.2)


@pytest.mark.slow
def test_then_begins_where_the_first_algorithm_ended():
    slow, fast = fl.algorithms.GradientDescent(0.2), fl.algorithms.GradientDescent(2.0, momentum=0.5)
    both = fl.run(experiment(algorithm=fl.algorithms.Then(slow, 20, fast), precision=64), seeds=3)
    first = fl.run(experiment(algorithm=slow, steps=20, precision=64), seeds=3)
    np.testing.assert_allclose(both.rho.sel(step=20), first.rho.sel(step=20), atol=1e-12)
    alone = fl.run(experiment(algorithm=fast, precision=64), seeds=3)
    assert abs(both.rho.sel(step=50) - alone.rho.sel(step=50)).max() > 1e-3
    nothing = fl.algorithms.Then(fast, 0, slow)
    np.testing.assert_allclose(
        fl.run(experiment(algorithm=nothing, precision=64), seeds=2).rho,
        fl.run(experiment(algorithm=slow, precision=64), seeds=2).rho,
        atol=1e-12,
    )


@pytest.mark.slow
def test_gradient_flow_is_the_limit_of_small_steps():
    """Halving the step of descent halves its distance to the flow."""
    pytest.importorskip("diffrax", reason="gradient flow is solved by diffrax, which is not installed here")
    smooth = fl.networks.TwoLayerCNN(width=6, activation=fl.networks.relu_power(2), init_scale=0.3)
    settings = dict(network=smooth, precision=64, probes=[P.products.on(P.at_end)])
    flow = fl.run(experiment(algorithm=fl.algorithms.GradientFlow(1.0), steps=20, **settings), seeds=2)
    gaps = []
    for parts in (8, 16):
        descent = fl.algorithms.GradientDescent(1.0 / parts)
        near = fl.run(experiment(algorithm=descent, steps=20 * parts, **settings), seeds=2)
        gaps.append(float(abs(near.noise_product - flow.noise_product).max()))
    assert gaps[0] < 0.05 and 1.8 < gaps[0] / gaps[1] < 2.2


@pytest.mark.slow
def test_a_stream_never_sees_the_same_input_twice():
    online = experiment(data=fl.data.Stream(small(), 8), probes=[P.train_loss, P.test_error(count=500)], steps=300)
    history = fl.run(online, seeds=3)
    assert history.attrs["space"] == "Ambient"
    with jax.enable_x64(False):
        draw, _ = draw_one(online, online.empty_space(), np.uint32(0), 20)
        batches = [online.data.batch(jax.random.key(t), t, draw.training, draw).inputs for t in range(2)]
    rows = np.concatenate([np.asarray(b)[:, 1] for b in [*batches, draw.training.inputs]])
    assert len(np.unique(rows, axis=0)) == len(rows) == 36
    assert (history.test_error[:, -1] < history.test_error[:, 0]).all()


@pytest.mark.slow
def test_any_optax_transformation_descends():
    adam = experiment(algorithm=fl.algorithms.Descent(optax.adam(1e-2)), data=small())
    history = fl.run(adam, seeds=2)
    assert history.attrs["space"] == "Ambient" and (history.train_loss[:, -1] < 0.5).all()
    assert (history.residual[:, -1] > 0.01).all()  # Adam leaves the span, and the probe says so
    sgd = fl.run(experiment(algorithm=fl.algorithms.Descent(optax.sgd(1.0), rotates=True)), seeds=2)
    plain = fl.run(experiment(algorithm=fl.algorithms.GradientDescent(1.0)), seeds=2)
    np.testing.assert_allclose(sgd.rho, plain.rho, atol=1e-5)


def test_an_interrupt_returns_what_was_recorded(monkeypatch):
    calls = 0
    real_advance = loop.advance

    def interrupted(*args):
        nonlocal calls
        calls += 1
        if calls == 4:
            raise KeyboardInterrupt
        return real_advance(*args)

    monkeypatch.setattr(loop, "advance", interrupted)
    whole = experiment(record=P.evenly(20), steps=40)
    history = fl.run(whole, seeds=2)
    assert history.attrs["interrupted"] == 1 and not history.trained.any()
    assert 0 < history.sizes["step"] < 21
    monkeypatch.undo()
    full = fl.run(whole, seeds=2)
    np.testing.assert_array_equal(history.rho, full.rho.sel(step=history.step))


def test_an_interrupt_in_a_later_block_keeps_the_whole_ones(monkeypatch):
    real_advance, calls = loop.advance, []

    def interrupted(*args):
        calls.append(1)
        if len(calls) == 15:  # in the second block
            raise KeyboardInterrupt
        return real_advance(*args)

    monkeypatch.setattr(loop, "advance", interrupted)
    probes = [P.train_loss, P.coefficients.on(P.at_end)]
    history = fl.run(experiment(record=P.evenly(20), steps=40, probes=probes), seeds=4, block=2)
    assert history.attrs["interrupted"] == 1 and list(history.seed.values) == [0, 1]
    assert history.trained.all() and history.sizes["step"] == 21 and "rho" in history


def test_divergence_in_the_very_last_step_is_seen():
    wild = experiment(objective=fl.objectives.squared, algorithm=fl.algorithms.GradientDescent(1e25), steps=1)
    with pytest.warns(labelled.Diverged):
        history = fl.run(wild, seeds=2)
    assert (history.diverged_at == 1).all()


@pytest.mark.slow
def test_alpha_is_one_where_training_adds_other_vectors():
    online = experiment(data=fl.data.Stream(small(), 8), probes=[P.coefficients], steps=60)
    history = fl.run(online, seeds=2)
    assert (history.alpha == 1).all() and (history.residual[:, -1] > 0.01).all()


@pytest.mark.slow
def test_clocks_never_leave_the_run():
    for steps in (0, 1, 100):
        for clock in (P.every(7), P.evenly(10), P.geometric(1), P.geometric(10), P.at_end):
            times = clock.times(steps)
            assert times[-1] == steps and times[0] in (0, steps) and (np.diff(times) > 0).all()
    history = fl.run(experiment(steps=0, record=P.geometric(10)), seeds=1)
    assert list(history.step.values) == [0] and (history.status == "trained").all()


@pytest.mark.slow
def test_first_reads_the_moment_and_not_the_end():
    def clock(view):
        return view.step

    probes = [P.as_probe(clock).on(P.first(P.below(P.test_error(count=100), 0.3), "T1")), P.test_error(count=100)]
    history = fl.run(experiment(probes=probes, record=P.every(1), space=fl.Ambient, data=small()), seeds=3)
    assert (history.T1 > 0).all() and (history.clock_at_T1 == history.T1).all()
    for seed in range(3):
        assert history.T1[seed] == np.flatnonzero(history.test_error[seed] <= 0.3)[0]


class Watch(fl.algorithms.AbstractAlgorithm):
    """Learns nothing, and tells which batch it was shown."""

    def init(self, key, task):
        return fl.algorithms.State(task.start, jax.numpy.zeros((), int))

    def step(self, key, state, task):
        batch = task.batch(key, state.step)
        state = fl.algorithms.State(state.params, state.step + 1)
        return state, fl.algorithms.Info(0.0, extra=batch.inputs[:, 1, -1])


@pytest.mark.slow
def test_the_second_of_two_algorithms_sees_other_batches():
    def first_and_second(view):
        return jax.numpy.stack(view.info.extra)

    watched = experiment(
        data=fl.data.Minibatches(small(), 5),
        algorithm=fl.algorithms.Then(Watch(), 4, Watch()),
        probes=[first_and_second],
        steps=8,
        record=P.every(1),
    )
    seen = fl.run(watched, seeds=1).first_and_second.values[0]
    one, two = seen[1:5, 0], seen[5:9, 1]  # an epoch each
    np.testing.assert_array_equal(np.sort(one.ravel()), np.sort(two.ravel()))
    assert not np.array_equal(one, two)


@pytest.mark.slow
def test_numpy_numbers_of_seeds_and_steps_are_numbers():
    history = fl.run(experiment(probes=[P.train_loss], steps=np.int64(3)), seeds=np.int64(2))
    assert list(history.seed.values) == [0, 1] and history.step.values[-1] == 3


@pytest.mark.slow
def test_without_clean_samples_nothing_is_said_of_them():
    flipped = dataclasses.replace(small(), label_flip=1.0)
    history = fl.run(experiment(data=flipped, probes=[P.clean_noisy_split], steps=2), seeds=1)
    assert np.isnan(history.fit_clean).all() and np.isfinite(history.fit_noisy).all()


def test_weight_norms_are_refused_at_infinite_dimension():
    limit = experiment(data=fl.data.SignalNoise(n=5, d=math.inf, snr=0.3), probes=[P.weight_norms])
    with pytest.raises(fl.InputError, match="infinite at d = inf"):
        fl.run(limit)


def test_clean_and_flipped_samples_are_told_apart():
    history = fl.run(experiment(probes=[P.clean_noisy_split, P.margins, P.train_error]), seeds=5)
    flipped = history.label != history.clean_label
    fitted = history.margin > 0
    for seed in range(5):
        if flipped[seed].any():
            expected = fitted[seed].where(flipped[seed], drop=True).mean("sample")
            np.testing.assert_allclose(history.fit_noisy[seed], expected, atol=1e-6)
        np.testing.assert_allclose(
            history.fit_clean[seed], fitted[seed].where(~flipped[seed], drop=True).mean("sample"), atol=1e-6
        )
    np.testing.assert_allclose(history.train_error, 1 - fitted.mean("sample"), atol=1e-6)


def test_results_survive_the_disk(tmp_path):
    history = fl.run(experiment(), seeds=2)
    fl.save(history, tmp_path)
    back = fl.load(tmp_path)
    for name in history.data_vars:
        np.testing.assert_array_equal(back[name], history[name])
    assert fl.rebuild(back.attrs["experiment"]) == experiment()
    assert [path.name for path in tmp_path.iterdir()] == ["results.nc"]
    (tmp_path / "results.nc").write_bytes(b"nonsense")
    with pytest.raises(fl.InputError, match="cannot|no results that can be read"):
        fl.load(tmp_path)


def test_one_seed_given_twice_is_no_second_run():
    with pytest.raises(fl.InputError, match=r"run needs different seeds, got \[3, 3\]"):
        fl.run(experiment(), [3, 3])


def test_a_block_of_large_runs_is_small():
    from featlab.engine.run import _blocks

    seeds = np.arange(20)
    assert len(_blocks(seeds, None, 100)[0]) >= 10 and len(_blocks(seeds, None, 20_000)[0]) == 2
    assert len(_blocks(seeds, None, 31_000)) == 20
