"""Softmax attention against its formula, with the whole value matrix; its probes; and its law in a span."""

import dataclasses

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import featlab as fl
from featlab import testing
from featlab.core.space import Ambient
from featlab.networks import Head, SoftmaxAttention
from featlab.probes import View
from featlab.problem import PlainProblem, draw_run

P = fl.probes
DATA = fl.data.SignalTokens(n=6, d=24, tokens=3, snr=0.8)
NETWORK = SoftmaxAttention(head=3, init_scale=0.3, output_norm=1.7, value_scale=0.2)
PROBES = (P.attention_mass(count=50), P.attention_products, P.attention_scores)


def softmax(scores):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return weights / weights.sum(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def task():
    with jax.enable_x64(True):
        draw = eqx.filter_jit(draw_run)(DATA, NETWORK, Ambient(DATA.d), DATA.n, 0, jax.random.key(1))
        yield PlainProblem(DATA, NETWORK, fl.objectives.as_objective(fl.objectives.logistic, NETWORK), draw)


@pytest.mark.rounding
def test_descent_on_the_value_is_descent_on_the_whole_value_matrix(task):
    """Three steps of plain autodiff on W_Q, W_K, W_V beside a fixed w_O, and of the network on Q, K, u."""
    with jax.enable_x64(True):
        batch, start, rate = task.draw.training, task.start, 0.4
        output = jnp.array([0.6, -1.2, 0.5, 0.3])
        output = NETWORK.output_norm * output / jnp.linalg.norm(output)
        # Any W_V with W_V w_O = |w_O| u will do: beside what is seen of it, one in which w_O sees nothing.
        rest = jax.random.normal(jax.random.key(2), (24, 4))
        unseen = rest - (rest @ output)[:, None] * output[None] / jnp.sum(output**2)
        value = jnp.outer(start.value[0], output) / NETWORK.output_norm + unseen
        whole = (start.query.T, start.key.T, value)

        def loss(whole):
            query, key, value = whole
            scores = batch.inputs @ query @ jnp.swapaxes(batch.inputs @ key, 1, 2)
            read = jax.nn.softmax(scores, axis=-1) @ batch.inputs @ value @ output
            return jnp.mean(jnp.log1p(jnp.exp(-batch.labels * read.mean(axis=1))))

        slope, gradient, params = jax.jit(jax.grad(loss)), jax.jit(lambda p: task.gradient(p, batch)), start
        for _ in range(3):
            whole = jax.tree.map(lambda w, g: w - rate * g, whole, slope(whole))
            params = jax.tree.map(lambda w, g: w - rate * g, params, gradient(params))
        np.testing.assert_allclose(params.query, whole[0].T, rtol=1e-12)
        np.testing.assert_allclose(params.key, whole[1].T, rtol=1e-12)
        np.testing.assert_allclose(NETWORK.output_norm * params.value[0], whole[2] @ output, rtol=1e-12)
        np.testing.assert_allclose(task.value(params, batch), loss(whole), rtol=1e-12)
        assert np.abs(params.value - start.value).max() > 0.01


@pytest.mark.rounding
def test_probes_read_what_whole_vectors_say(task):
    with jax.enable_x64(True):
        start, batch = task.start, task.draw.training
        params = Head(start.query * 1.5, start.key, start.value + 0.1 * start.query[:1])

        @eqx.filter_jit
        def read_all(params, task, key):
            view = View(params, jnp.zeros((), int), task, fl.algorithms.GradientDescent(0.1))
            read = {name: value for probe in PROBES for name, value in probe(view).items()}
            return read, task.data.fresh(key, task.draw.truth, task.draw.space, 20_000).inputs

        read, test = jax.tree.map(np.asarray, read_all(params, task, jax.random.key(9)))
    query, key, value = (np.asarray(rows) for rows in (params.query, params.key, params.value))
    x = np.asarray(batch.inputs)
    scores = (x @ query.T) @ np.swapaxes(x @ key.T, 1, 2)
    on_signal = softmax(scores)[:, :, 0]
    assert read["attention_on_signal"] == pytest.approx(on_signal.mean(), rel=1e-12)
    assert read["attention_of_signal"] == pytest.approx(on_signal[:, 0].mean(), rel=1e-12)
    assert read["attention_of_noise"] == pytest.approx(on_signal[:, 1:].mean(), rel=1e-12)
    assert read["signal_score"] == pytest.approx(scores[:, :, 0].mean(), rel=1e-12)
    assert read["signal_score_least"] == read["mu_score_least"] == pytest.approx(scores[:, :, 0].min(), rel=1e-12)
    assert read["noise_score"] == pytest.approx(scores[:, :, 1:].max(axis=2).mean(), rel=1e-12)
    signals, noise = np.asarray(task.draw.truth.vectors), np.asarray(batch.noise)
    for name, rows in {"query": query, "key": key, "value": value}.items():
        of_signals, of_noise = (np.linalg.norm(vectors @ rows.T, axis=-1) for vectors in (signals, noise))
        assert read[f"{name}_signal"] == pytest.approx(of_signals.mean(), rel=1e-12)
        assert read[f"{name}_noise"] == pytest.approx(of_noise.max(), rel=1e-12)
    fresh = softmax((test @ query.T) @ np.swapaxes(test @ key.T, 1, 2))[:, :, 0]
    for name, values in {"on": fresh.mean(1), "of": fresh[:, 0]}.items():
        drawn = read[f"test_attention_{name}_signal"]
        assert abs(drawn - values.mean()) < 4 * values.std() / np.sqrt(50)


def trained(**changes):
    return fl.Experiment(
        data=dataclasses.replace(DATA, n=16, d=1e5, tokens=4, snr=0.6, balanced=True, **changes),
        network=SoftmaxAttention(head=16, init_scale=0.2 / np.sqrt(1e5), output_norm=0.16),
        algorithm=fl.algorithms.GradientDescent(8 * 16 / 1e5),
        probes=[P.attention_scores.on(P.at_end)],
        steps=P.until(P.train_loss, 0.05, at_most=2000),
    )


@pytest.mark.slow
def test_one_signal_for_both_classes_cannot_have_a_large_score_in_both():
    """The score of the token is large, that of the signal itself has the sign of the class."""
    two, one = (fl.run(trained(shared_signal=shared), seeds=4) for shared in (False, True))
    assert two.trained.all() and one.trained.all()
    assert (two.signal_score_least > 1).all() and (two.mu_score_least == two.signal_score_least).all()
    assert (one.signal_score_least > 1).all() and (one.mu_score_least < -1).all()


@pytest.mark.slow
@pytest.mark.rounding
def test_products_and_padding_change_nothing():
    plain = testing.example_experiment(data=DATA, network=NETWORK, probes=(*PROBES, P.test_loss(count=50)))
    testing.check_products(plain)
    testing.check_padding(plain)


@pytest.mark.slow
def test_span_equals_ambient_in_law():
    """300 seeds a side, by Kolmogorov and Smirnov; a dimension three times as large is told apart."""
    short = fl.Experiment(
        data=dataclasses.replace(DATA, d=30),
        network=dataclasses.replace(NETWORK, init_scale=0.2),
        algorithm=fl.algorithms.GradientDescent(0.2),
        probes=[p.on(P.at_end) for p in (*PROBES, P.train_loss, P.test_loss(count=200))],
        steps=30,
    )

    def run(first, **changes):
        history = fl.run(dataclasses.replace(short, **changes), seeds=range(first, first + 300), block=100)
        return {name: history[name].values for name in READ}

    span, ambient = run(7_710_000, space=fl.Span), run(7_720_000, space=fl.Ambient)
    p_values = {name: stats.ks_2samp(span[name], ambient[name]).pvalue for name in READ}
    assert min(p_values.values()) > 1e-4, p_values
    wider = run(7_730_000, data=dataclasses.replace(DATA, d=90, snr=0.8 / np.sqrt(3)))
    assert min(stats.ks_2samp(wider[name], ambient[name]).pvalue for name in READ) < 1e-6


READ = (
    "train_loss",
    "test_loss",
    "attention_on_signal",
    "test_attention_on_signal",
    "value_noise",
    "signal_score",
)


def test_attention_is_refused_where_there_is_none():
    with pytest.raises(fl.InputError, match="attention_scores needs a network such as SoftmaxAttention"):
        testing.example_experiment(probes=(P.attention_scores,), space=None)
