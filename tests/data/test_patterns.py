"""Inputs made of patterns are drawn from the law that the formulas say."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient

D, K, COUNT = 20, 5, 40_000


@pytest.fixture(scope="module")
def drawn():
    """Inputs with and without structure; the second with rarer background and another length."""
    laws = [
        fl.data.PatternDictionary(n=3, d=24, patterns=D, relevant=K),
        fl.data.PatternDictionary(n=3, d=24, patterns=D, relevant=K, easy=0.0, background=0.3, norm=3.0),
    ]
    space = Ambient(24.0)
    truth, _ = laws[0].truth(jax.random.key(0), space)

    @jax.jit
    def draw(easy, background, norm):
        law = dataclasses.replace(laws[0], easy=easy, background=background, norm=norm)
        return law.fresh(jax.random.key(1), truth, space, COUNT)

    numbers = [(law.easy, law.background, law.norm) for law in laws]
    batches = [jax.device_get(draw(*map(jnp.asarray, one))) for one in numbers]
    return jax.device_get(truth), list(zip(laws, batches))


def present(truth, law, batch):
    """Which patterns are there, read off the inputs."""
    along = batch.inputs[:, 0] @ truth.patterns.T * law.spread / law.norm
    return along + np.where(truth.relevant, 0.5, law.background)


def test_inputs_are_patterns_that_are_there_or_not(drawn):
    truth, laws = drawn
    np.testing.assert_array_equal(truth.patterns @ truth.patterns.T, np.eye(D))
    assert truth.relevant.sum() == K
    for law, batch in laws:
        assert batch.inputs.shape == (COUNT, 1, 24)
        there = present(truth, law, batch)
        np.testing.assert_allclose(there, there.round(), atol=1e-5)
        assert set(np.unique(there.round())) == {0.0, 1.0}
        np.testing.assert_allclose(batch.inputs.mean(axis=0), 0, atol=5 * law.norm / law.spread * 0.5 / COUNT**0.5)
        length = (batch.inputs**2).sum(axis=(1, 2))
        np.testing.assert_allclose(length.mean(), law.norm**2, atol=5 * length.std() / COUNT**0.5 + 1e-5)
        np.testing.assert_allclose(there[:, K:].mean(axis=0), law.background, atol=5 * 0.5 / COUNT**0.5)


def test_labels_are_parities_and_easy_inputs_have_all_or_none(drawn):
    truth, laws = drawn
    for law, batch in laws:
        there = present(truth, law, batch).round()[:, :K]
        np.testing.assert_array_equal(batch.labels, np.where(there.sum(axis=1) % 2 == 1, 1.0, -1.0))
        np.testing.assert_array_equal(batch.labels, batch.clean_labels)
        assert abs(batch.labels.mean()) < 5 / COUNT**0.5
        assert abs(batch.coins.mean() - law.easy) < 5 * 0.5 / COUNT**0.5
        assert np.isin(there[batch.coins].sum(axis=1), (0, K)).all()
        assert (there[batch.coins].sum(axis=1) == K * (batch.labels[batch.coins] > 0)).all()
        hard = there[~batch.coins]
        np.testing.assert_allclose(np.cov(hard.T), np.eye(K) / 4, atol=5 * 0.25 / len(hard) ** 0.5)


def test_gamma_is_what_gives_relevant_patterns_away(drawn):
    truth, laws = drawn
    for law, batch in laws:
        there = present(truth, law, batch)
        given_away = (batch.labels[:, None] * there).mean(axis=0)
        np.testing.assert_allclose(given_away[:K], law.gamma, atol=5 / COUNT**0.5)
        np.testing.assert_allclose(given_away[K:], 0, atol=5 / COUNT**0.5)
    assert laws[0][0].gamma == 0.25 and laws[1][0].gamma == 0
    # A single pattern is the label itself, easy or not.
    assert fl.data.PatternDictionary(n=3, d=24, patterns=D, relevant=1, easy=0.0).gamma == 0.5


@pytest.mark.parametrize(
    "fields, sentence",
    [
        ({"relevant": 4}, "relevant must be odd, .* got 4"),
        ({"relevant": 21}, "at most the number of patterns, 20, got 21"),
        ({"patterns": 40}, "at most d = 24, since patterns are orthonormal, got 40"),
        ({"easy": 1.5}, "easy must be a probability"),
    ],
)
def test_impossible_dictionaries_are_refused(fields, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        fl.data.PatternDictionary(**{"n": 3, "d": 24, "patterns": D, "relevant": K, **fields})
