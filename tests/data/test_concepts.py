"""Prompts that share a concept: what a token is made of, and the laws prompts come from."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.core.space import Ambient
from featlab.data.concepts import answerable

K, LENGTH, COUNT = 3, 4, 4000
PROMPTS = fl.data.ConceptPrompts(n=5, d=16, concepts=K, length=LENGTH, noise_scale=0.0)


@pytest.fixture(scope="module")
def drawn():
    """Prompts without noise, prompts of which a fifth are mixtures and a quarter positive, and noise alone."""
    other = dataclasses.replace(PROMPTS, positive=0.25, mixed=0.2, noise_scale=0.3)
    space = Ambient(16.0)
    truth, _ = PROMPTS.truth(jax.random.key(0), space)

    @jax.jit
    def draw(positive, mixed, noise_scale):
        law = dataclasses.replace(PROMPTS, positive=positive, mixed=mixed, noise_scale=noise_scale)
        batch = law.fresh(jax.random.key(1), truth, space, COUNT)
        return batch, answerable(batch)

    laws = [(law.positive, law.mixed, law.noise_scale) for law in (PROMPTS, other)]
    return jax.device_get(truth), [jax.device_get(draw(*map(jnp.asarray, law))) for law in laws]


def test_tokens_are_concept_and_semantics_in_both_halves(drawn):
    truth, ((prompts, _), _) = drawn
    a, b, c, d = truth.input_concepts, truth.input_semantics, truth.label_concepts, truth.label_semantics
    for inputs, labels in ((a, b), (c, d)):
        rows = np.concatenate([inputs, labels])
        np.testing.assert_array_equal(rows @ rows.T, np.eye(2 * K))
    assert prompts.inputs.shape == (COUNT, LENGTH + 1, 16)
    for tokens, mixture, demonstrations, query in zip(*(
        leaf[:20] for leaf in (prompts.inputs, prompts.task, prompts.coins, prompts.labels)
    )):  # fmt: skip
        (k,) = np.flatnonzero(mixture)
        y = np.append(demonstrations, query)[:, None]
        np.testing.assert_allclose(tokens[:, :8], a[k] + y * b[k])
        np.testing.assert_allclose(tokens[:-1, 8:], (c[k] + y * d[k])[:-1])
        assert not tokens[-1, 8:].any()  # the answer is not told


def test_concepts_and_labels_come_as_often_as_they_should(drawn):
    _, ((prompts, answered), (other, _)) = drawn
    share = 4 * np.sqrt(0.25 / COUNT)
    np.testing.assert_allclose(prompts.task.mean(axis=0), 1 / K, atol=share)
    assert abs(prompts.labels.mean()) < 2 * share and abs(prompts.coins.mean()) < share
    assert abs(answered.mean() - (1 - 2.0**-LENGTH)) < share
    assert abs((other.labels > 0).mean() - 0.25) < share and abs((other.coins > 0).mean() - 0.25) < share
    mixed = (other.task > 0).all(axis=1)
    assert abs(mixed.mean() - 0.2) < share
    np.testing.assert_allclose(np.linalg.norm(other.task, axis=1), 1, atol=1e-6)
    # The first of three coordinates of a uniform direction is uniform on [-1, 1]: Archimedes.
    assert abs(other.task[mixed, 0].mean() - 0.5) < 4 * np.sqrt(1 / 12 / mixed.sum())
    assert abs((other.task[mixed, 0] < 0.25).mean() - 0.25) < 4 * np.sqrt(0.25 / mixed.sum())


def test_noise_has_its_scale_and_lies_on_every_axis(drawn):
    truth, (_, (other, _)) = drawn
    y = np.concatenate([other.coins, other.labels[:, None]], axis=1)[:, :, None]
    inputs = other.task @ truth.input_concepts, other.task @ truth.input_semantics
    noise = other.inputs[:, :, :8] - inputs[0][:, None] - y * inputs[1][:, None]
    np.testing.assert_allclose(noise.std(axis=(0, 1)), 0.3, rtol=0.03)
    np.testing.assert_allclose(other.inputs[:, :-1, -1].std(), 0.3, rtol=0.03)  # no concept there


@pytest.mark.parametrize("d", [15, 10])
def test_halves_must_hold_all_directions(d):
    with pytest.raises(fl.InputError, match=rf"must be even.*at least 4 for each of the 3 concepts, got {d}\."):
        fl.data.ConceptPrompts(n=5, d=d, concepts=3)
