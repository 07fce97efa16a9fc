"""What a part needs of the rest of an experiment: declared as kinds, refused when the experiment is made."""

import dataclasses

import pytest

import featlab as fl
from featlab import testing
from featlab.core.validation import InputError
from featlab.networks import AbstractAttention, AbstractNetwork

P = fl.probes
CODING = fl.data.SparseCoding(n=6, d=40)
NEURONS = fl.networks.SymmetricReLU(width=4)


@pytest.mark.parametrize(
    "parts, sentence",
    [
        ({"probes": [P.feature_purity]}, "feature_purity needs SparseCoding data, got SignalNoise."),
        (
            {"data": CODING, "probes": [P.feature_purity.on(P.at_end)]},
            "feature_purity needs a SymmetricReLU network, got TwoLayerCNN.",
        ),
        ({"probes": [P.relative_loss]}, "relative_loss needs an InfoNCE objective, got Supervised."),
        (
            {"probes": [P.attention_mass]},
            "attention_mass needs a network such as SoftmaxAttention or TwoLayerTransformer, got TwoLayerCNN.",
        ),
        ({"probes": [P.ProgressTimes()]}, "ProgressTimes needs SparseParity data, got SignalNoise."),
        ({"steps": P.until(P.set_counts, 3)}, "set_counts needs SparseCoding data, got SignalNoise."),
        (
            {"algorithm": fl.algorithms.GrowingThresholds(0.1)},
            "GrowingThresholds needs a SymmetricReLU network",
        ),
        (
            {"algorithm": fl.algorithms.Then(fl.algorithms.GiantStep(eta=1.0), 1, fl.algorithms.Ridge(0.1))},
            "Ridge needs a network such as RandomFeatures or TwoLayer, got TwoLayerCNN.",
        ),
        (
            {"objective": fl.objectives.Denoising(), "network": fl.networks.KernelMachine()},
            "Denoising needs a network such as ",
        ),
    ],
)
def test_a_misfit_is_refused_when_the_experiment_is_made(parts, sentence):
    with pytest.raises(InputError) as refused:
        testing.example_experiment(**parts)
    assert str(refused.value).startswith(sentence)


def test_parts_that_fit_are_taken_under_any_batching():
    fitting = {"network": NEURONS, "probes": [P.feature_purity]}
    testing.example_experiment(data=CODING, **fitting)
    testing.example_experiment(data=fl.data.Minibatches(CODING, 2), **fitting)
    one = testing.example_experiment(data=CODING, **fitting)
    with pytest.raises(InputError, match="feature_purity needs SparseCoding data, got SparseParity"):
        dataclasses.replace(one, data=fl.data.SparseParity(n=6, d=40))


@pytest.mark.parametrize("of", [(int,), ("SparseCoding",), (P.train_loss,), (fl.Experiment,)])
def test_a_need_that_is_no_kind_of_part_is_refused_where_it_is_declared(of):
    with pytest.raises(InputError, match="of= takes kinds of data, networks, objectives and algorithms, got"):
        P.probe(of=of, drift=P.Variable())


def test_kinds_of_ones_own_can_be_needed():
    class Mine(AbstractNetwork):
        pass

    drift = P.probe(of=(Mine,), drift=P.Variable())(lambda view: view.step)
    with pytest.raises(InputError, match="needs a Mine network, got TwoLayerCNN"):
        testing.example_experiment(probes=[drift])


def test_an_example_of_every_need_is_found_by_its_kind():
    found = testing.at_home(P.attention_mass)
    assert list(found) == ["network"] and isinstance(found["network"], AbstractAttention)
    assert testing.at_home(P.coefficients) == {}
    assert set(testing.at_home(P.feature_purity)) == {"data", "network"}
    assert testing.at_home(P.feature_purity, network=NEURONS)["network"] is NEURONS
