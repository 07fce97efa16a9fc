"""Probes of concepts, on networks whose answers are known: who votes, and who is right."""

import importlib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.networks import ConceptWeights
from featlab.probes import View
from featlab.problem import PlainProblem, draw_run

K, LENGTH = 2, 3
LAWS = ("trained", "longer", "mixed", "imbalanced")


@pytest.fixture(scope="module")
def read():
    """Both probes, for networks with so much semantics in attention and so much of each in the output layer."""
    prompts = fl.data.ConceptPrompts(n=4, d=16, concepts=K, length=LENGTH, noise_scale=0.0)
    experiment = fl.testing.example_experiment(
        data=fl.data.Stream(data=prompts, size=2),
        network=fl.networks.ConceptTransformer(width=2),
        precision=32,
    )
    data, network = experiment.data, experiment.network
    assert isinstance(network, fl.networks.ConceptTransformer)

    @jax.jit
    def readings(semantics, concept, semantic):
        draw = draw_run(data, network, experiment.empty_space(), 4, 0, jax.random.key(5))
        truth = draw.truth
        attention = semantics * truth.input_semantics.T @ truth.input_semantics
        neurons = jnp.outer(jnp.ones(2), concept * truth.label_concepts.sum(axis=0))
        neurons += jnp.outer(network.signs, semantic * truth.label_semantics.sum(axis=0))
        params = ConceptWeights(attention, 2 * attention, neurons / jnp.sqrt(2))
        view = View(
            params,
            jnp.array(0),
            PlainProblem(data, network, experiment.bound_objective, draw),
            experiment.algorithm,
        )
        return fl.probes.concept_components(view) | fl.probes.prompt_errors(law=LAWS, count=3000)(view)

    return lambda *numbers: jax.device_get(readings(*map(jnp.asarray, numbers)))


def test_components_are_what_was_put_there(read):
    found = read(0.7, 1.5, 0.5)
    expected = {"query_concepts": 0, "query_semantics": 0.7, "key_concepts": 0, "key_semantics": 1.4}
    for name, value in (expected | {"output_concepts": 1.5, "output_semantics": 0.5}).items():
        np.testing.assert_allclose(found[name], np.full(K, value), atol=1e-6)


def test_without_semantics_the_majority_of_the_demonstrations_is_answered(read):
    """Of 3 labels with a match among them one is alone in 3 of 7 cases, and wrong then; 12 of 21 are matches."""
    found = read(0.0, 1.0, 1.0)
    np.testing.assert_allclose(found["prompt_error"][[0, 2]], 3 / 7, atol=4 * 0.5 / np.sqrt(3000))
    np.testing.assert_allclose(found["prompt_attention"][[0, 2]], 12 / 21, atol=4 * 0.25 / np.sqrt(3000))
    # With labels -1 three times in four: one match of +1 among three, or of -1 among three.
    p = np.array([0.25, 0.75])
    alone, matched = 3 * p * (1 - p) ** 2, 1 - (1 - p) ** 3
    np.testing.assert_allclose(found["prompt_error"][3], p @ alone / (p @ matched), atol=4 * 0.5 / np.sqrt(3000))


def test_with_semantics_matches_are_answered_whatever_the_law(read):
    found = read(3.0, 1.0, 1.0)
    np.testing.assert_array_equal(found["prompt_error"][[0, 1, 3]], 0)
    assert (found["prompt_attention"][[0, 1, 3]] > 0.999).all()
    # A mixture's score is as large, its labels being as long: u'u = 1.
    assert found["prompt_error"][2] == 0 and found["prompt_attention"][2] > 0.999
    assert (read(3.0, 1.0, -1.0)["prompt_error"] == 1).all()  # the output layer says the opposite


@pytest.mark.slow
def test_other_laws_and_networks_are_refused():
    prompts = fl.data.ConceptPrompts(n=4, d=16, concepts=K, length=LENGTH)
    network = fl.networks.ConceptTransformer(width=2)

    def run(probe, **parts):
        fl.run(fl.testing.example_experiment(**parts, probes=(probe,), steps=1), seeds=1, progress=False)

    with pytest.raises(fl.InputError, match="knows trained, longer, mixed, imbalanced, got 'shorter'"):
        run(fl.probes.prompt_errors(law=("shorter",)), data=prompts, network=network)
    with pytest.raises(fl.InputError, match="prompt_errors needs ConceptPrompts data, got SignalNoise"):
        run(fl.probes.prompt_errors, network=network)
    with pytest.raises(fl.InputError, match="needs a ConceptTransformer network, got TwoLayerCNN"):
        run(fl.probes.concept_components, data=prompts)


@pytest.mark.slow
def test_the_example_draws_its_figure(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(Path(__file__).parents[2] / "examples")
    figure = importlib.import_module("concepts").main(tmp_path, 2, 3)
    assert figure.exists() and figure.stat().st_size > 10_000
