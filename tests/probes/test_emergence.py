"""Where neurons point and what heads on them do, against weights that are set by hand."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import featlab as fl
from featlab.claims.theorems.shi2022_emergence import Emergence
from featlab.core.space import Ambient
from featlab.problem import Draw, PlainProblem

D, K = 12, 3
END = fl.probes.at_end


def read(weights, biases, head, *probes, easy=0.5):
    """What the probes say of these neurons."""
    # Inputs of length D^1/2 have coordinates +1 and -1.
    data = fl.data.PatternDictionary(n=4, d=D, patterns=D, relevant=K, norm=D**0.5, easy=easy)
    network = fl.networks.TruncatedReLU(width=len(head))

    @jax.jit
    def readings(key):
        neurons = fl.networks.BiasedNeurons(*(jnp.asarray(one, float) for one in (weights, biases, head)))
        space = Ambient(float(D))
        truth, space = data.truth(key, space)
        nothing: Any = None  # neither trained on nor trained by
        draw = Draw(space, truth, nothing, (), neurons, None, key, key, key)
        task = PlainProblem(data, network, fl.objectives.as_objective(fl.objectives.hinge, network), draw)
        view = fl.probes.View(neurons, jnp.array(0), task, nothing)
        return {name: value for probe in probes for name, value in probe(view).items()}

    with jax.enable_x64(True):
        return jax.device_get(readings(jax.random.key(8)))


@pytest.fixture(scope="module")
def counting():
    """Four neurons whose kinks tell how many relevant patterns are there, with a head that says their parity."""
    along = np.zeros((4, D))
    along[:3, :K] = 0.5  # 0.5 times a sum of K signs: -1.5, -0.5, 0.5, 1.5 for 0, 1, 2, 3 patterns
    along[3] = np.eye(D)[K]  # a background pattern alone
    biases = [1.5, 0.5, -0.5, 0.0]  # a unit step for each further pattern
    # Of 0, 1, 2, 3 patterns the parity is -1, 1, -1, 1: -1 + 2 s_1 - 2 s_2 + 2 s_3, without its constant.
    probes = fl.probes.pattern_alignment, fl.probes.pattern_errors, fl.probes.head_errors
    return read(along, biases, [2.0, -2.0, 2.0, 0.0], *probes)


def test_directions_and_weights_of_neurons(counting):
    np.testing.assert_allclose(counting["pattern_cosine"], [1, 1, 1, 0], atol=1e-12)
    np.testing.assert_allclose(counting["median_cosine"], 1)
    np.testing.assert_allclose(counting["relevant_share"], 3 * 0.25 * K / (3 * 0.25 * K + 1))
    # Mean squares per pattern: three neurons of 0.25 on each of K, one of 1 on one of D - K.
    np.testing.assert_allclose(counting["relevant_ratio"], np.sqrt(3 * 0.25 / (1 / (D - K))))


def test_errors_of_the_output_and_of_the_best_head(counting):
    """The output is 0 instead of -1 without patterns, 2 with one, 0 with two: counts 0 and 2 err."""
    assert abs(counting["pattern_error"] - 0.5) < 5 * 0.5 / 100  # y = -1, half of everything
    assert abs(counting["parity_error"] - 0.5) < 5 * 0.5 / 70
    for name in ("head_error", "head_parity_error"):
        assert counting[name] == 0  # with a constant the head says -1, 1, -1, 1


@pytest.mark.slow
def test_a_linear_feature_is_a_vote():
    """An affine neuron along the relevant patterns: easy inputs are right, of the others those that agree with it.

    Of 8 sets of 3 patterns the majority has the parity's sign in 2: none and all. 0 and 1 are fair for the rest.
    """
    along = np.zeros((2, D))
    along[0, :K], along[1] = 0.1, 0
    probes = fl.probes.head_errors, fl.probes.fixed_head_errors
    found = read(along, [0.5, 0.5], [1.0, 0.0], *probes)
    assert abs(found["head_parity_error"] - 6 / 8) < 5 * 0.5 / 70
    assert abs(found["head_error"] - 3 / 8) < 5 * 0.5 / 100
    assert found["fixed_error"] == found["head_error"]  # nothing has moved
    assert found["fixed_parity_error"] == found["head_parity_error"]


@pytest.mark.slow
def test_without_easy_inputs_all_are_of_the_other_kind():
    along = np.zeros((2, D))
    along[0, :K] = 0.1
    probes = fl.probes.pattern_errors, fl.probes.pattern_alignment
    found = read(along, [0.5, 0.5], [1.0, 0.0], *probes, easy=0.0)
    assert found["pattern_error"] == found["parity_error"]
    np.testing.assert_allclose(found["pattern_cosine"], [1, 0], atol=1e-12)  # a neuron of length 0 looks nowhere
    assert np.isinf(found["relevant_ratio"])


@pytest.mark.slow
def test_the_first_step_of_the_paper_is_the_gradient_of_the_law():
    """Neurons that noise makes active half of the time: w_i = eta a_i E[y x] / 2, along relevant patterns."""
    claim = Emergence(patterns=20, relevant=5, width=20)
    experiment = claim.two_steps(second=False, inputs=100_000, count=100)

    @fl.probes.probe(
        learnt=fl.probes.Variable("neuron pattern", "w", "weights"), a=fl.probes.Variable("neuron", "a", "a")
    )
    def learnt(view):
        return {"learnt": view.params.weights, "a": view.problem.draw.start.head}

    network = fl.networks.TruncatedReLU(
        width=20, weights_scale=0.0, biases_scale=0.0, head_scale=1.0, noise_scale=0.05
    )
    changed = dataclasses.replace(experiment, network=network, probes=[learnt.on(END)])
    found = fl.run(changed, seeds=1, progress=False).isel(seed=0)
    data = claim._data(0.5)
    assert isinstance(experiment.algorithm, fl.algorithms.Then)
    first = experiment.algorithm.first
    assert isinstance(first, fl.algorithms.LayerwiseDescent)
    eta = first.weights_rate
    # E[y phi_j] = gamma / sigma on relevant patterns; the noisy ReLU is on with probability 1/2 at 0.
    expected = eta * 0.5 * found.a.values[:, None] * np.where(np.arange(20) < 5, data.gamma / data.spread, 0)
    noise = eta * 0.5 * np.abs(found.a.values[:, None]) * 0.5 / data.spread / np.sqrt(100_000)
    assert (np.abs(found.learnt.values - expected) < 5 * noise).all()
    assert np.abs(expected).max() > 50 * noise.max()


@pytest.mark.slow
def test_other_data_are_refused():
    with pytest.raises(fl.InputError, match="pattern_alignment needs PatternDictionary data, got SignalNoise"):
        fl.run(fl.testing.example_experiment(probes=(fl.probes.pattern_alignment,)), seeds=1, progress=False)


@pytest.mark.slow
def test_no_input_that_a_head_is_fitted_to_is_among_those_it_is_tested_on(monkeypatch):
    drawn = []
    fresh = fl.data.PatternDictionary.fresh

    def kept(self, *arguments, **options):
        batch = fresh(self, *arguments, **options)
        jax.debug.callback(lambda inputs: drawn.append(np.asarray(inputs)), batch.inputs)
        return batch

    monkeypatch.setattr(fl.data.PatternDictionary, "fresh", kept)
    monkeypatch.setattr("featlab.probes.emergence._CHUNK", 50)
    data = fl.data.PatternDictionary(n=8, d=40, patterns=40, relevant=3)
    experiment = fl.Experiment(
        data=data,
        network=fl.networks.TruncatedReLU(width=4),
        objective=fl.objectives.hinge,
        algorithm=fl.algorithms.GradientDescent(0.1),
        probes=[fl.probes.head_errors(count=150, fitted=60)],
        steps=1,
        record=fl.probes.at_end,
    )
    fl.run(experiment, seeds=1, progress=False)
    jax.effects_barrier()
    rows = [one for batch in drawn for one in batch.reshape(len(batch), -1).round(4).tolist()]
    assert len(rows) >= 150 + 60 and len({tuple(row) for row in rows}) == len(rows)
