"""Everything featlab exports, found by walking its folders, against what it declares."""

import sys
from collections import Counter
from typing import Any

import jax.numpy as jnp
import optax
import pytest

import featlab as fl
from featlab import testing, text
from featlab.algorithms import AbstractAlgorithm, Descent
from featlab.core.parts import gather
from featlab.data import AbstractDataModel, AbstractIndexModel
from featlab.networks import AbstractNetwork
from featlab.objectives import AbstractObjective
from featlab.probes import AbstractRunning, Probe
from featlab.problem import GramProblem

pytestmark = [pytest.mark.gpu, pytest.mark.rounding]

TWO_LAYER = fl.networks.TwoLayer(width=4, activation=jnp.tanh)
INDEX: dict[str, Any] = {
    "data": fl.data.SingleIndex(n=6, d=40, link=jnp.tanh, label_noise=0.2),
    "network": TWO_LAYER,
    "algorithm": fl.algorithms.GiantStep(eta=2.0),
    "objective": fl.objectives.squared,
}
IN_CONTEXT: dict[str, Any] = {
    "data": fl.data.FeatureTasks(n=8, d=40, features=2, width=4),
    "network": fl.networks.MeanFieldFeatures(width=4, outputs=2),
    "objective": fl.objectives.InContextRisk(),
}
REGRESSION: dict[str, Any] = {
    "data": fl.data.LinearRegression(
        n=6, d=40, spectrum=fl.data.power_law(1), target=fl.data.power_law(1), tasks=3, label_noise=0.5
    ),
    "network": fl.networks.TwoLayerLinear(diagonal=True, tasks=3),
    "objective": fl.objectives.ProfileRidge(penalty=0.1, dof=0.5),
}
TRUNCATED: dict[str, Any] = {
    "network": fl.networks.TruncatedReLU(width=6, weights_scale=0.3, biases_scale=0.1, power=1.0)
}
PAIRS: dict[str, Any] = {
    "data": fl.data.Modalities(n=6, d=40, snr=0.5, strength=2.0, balanced=True),
    "network": fl.networks.PatchEncoder(width=3, init_scale=0.3),
    "objective": fl.objectives.InfoNCE(),
}
# What a part needs of an experiment beyond the kinds that it declares: more than a kind, or none has it yet.
NEEDED: dict[str, dict[str, Any]] = {
    "PatchEncoder": PAIRS,
    "InfoNCE": PAIRS,
    "relative_loss": PAIRS,
    "encoder_products": PAIRS,
    "encoder_ratio": PAIRS,
    "downstream_error": PAIRS,
    "RecursiveFeatureMachine": {"data": INDEX["data"], "objective": fl.objectives.squared},
    "agop": INDEX,
    "agop_subspace": INDEX,
    "feature_ansatz": INDEX,
    "deactivation": {"algorithm": fl.algorithms.SAM(0.1, 0.2)},
    "ridge_errors": INDEX,
    "equivalent_errors": INDEX,
    "linear_errors": INDEX,
    "weight_spectrum": INDEX,
    "feature_spectrum": INDEX,
    "spike_overlaps": INDEX,
    "singular_overlaps": INDEX,
    "spiked_gaps": INDEX,
    "step_direction": INDEX,
    "degrees_of_freedom": INDEX,
    "criterion": INDEX,
    "least_criterion": REGRESSION,
    "ridge_risk": REGRESSION,
    "metric_spectrum": REGRESSION,
    "metric_alignment": REGRESSION,
    "LayerwiseDescent": TRUNCATED,
    "head_errors": TRUNCATED,
    "fixed_head_errors": TRUNCATED,
    "held_out_error": {"data": fl.data.SparseParity(n=6, d=40, k=3)},
    "Langevin": {"network": TWO_LAYER},
    "WassersteinFlow": {"network": TWO_LAYER},
    "mean_field_energy": {
        **INDEX,
        "objective": fl.objectives.ProfileRidge(penalty=0.1),
        "algorithm": fl.algorithms.WassersteinFlow(0.1),
    },
    "kernel_target_alignment": INDEX,
    "label_noise_excess": INDEX,
    "BirthDeath": IN_CONTEXT,
    "in_context_loss": IN_CONTEXT,
    "feature_residual": IN_CONTEXT,
    "strict_saddle": IN_CONTEXT,
    "nonlinear_tasks": IN_CONTEXT,
    "smallest_curvature": IN_CONTEXT,
}


def name_of(part):
    return part.name if isinstance(part, Probe) else type(part).__name__


def needed(part):
    return testing.at_home(part, **NEEDED.get(name_of(part), {}))


# Kin of what is checked at once, or followed by another test too.
SLOW = {"GradientFlow", "MultiIndex", "XorSignalNoise", "Mixup", "linear_errors", "equivalent_errors"}
SLOW |= {"nonlinear_tasks", "strict_saddle", "metric_spectrum", "test_loss", "BirthDeath", "SparseSignalNoise"}
SLOW |= {"AugmentedPairs", "Modalities", "PatchEncoder", "encoder_products", "downstream_error", "relative_loss"}
SLOW |= {"singular_overlaps", "spiked_gaps", "step_direction", "weight_spectrum", "hermite_content"}
SLOW |= {"fourier_gap", "held_out_error", "ProgressTimes"}
SLOW |= {"ConceptPrompts", "prompt_errors", "concept_components"}
SLOW |= {"attention_products", "attention_scores", "attention_mass", "SignalTokens"}
SLOW |= {"stages", "StageTimes"}  # followed step by step in tests/probes/test_stages.py
SLOW |= {"TwoLayerTransformer", "RandomFeatures", "in_context_loss", "Denoiser"}  # or kin of quick ones
SLOW |= {"first_step_balance", "denoising_losses", "relative_slope"}
SLOW |= {"DigitPair"}  # its split and its flips are counted in tests/data/test_images.py
SLOW |= {
    "SoftmaxAttention",
    "InfoNCE",
    "MeanFieldFeatures",
    "Minibatches",
    "TwoLayer",
}  # followed by hand in tests of their own
SLOW |= {"smallest_curvature", "feature_residual", "metric_alignment", "criterion", "label_noise_excess"}
SLOW |= {"Linearised"}  # by hand in its own tests
SLOW |= {"pattern_alignment", "pattern_errors", "head_errors", "fixed_head_errors"}
SLOW |= {"agop", "agop_subspace", "feature_ansatz"}  # by hand too
SLOW |= {"neuron_sets", "set_counts", "errors_beside_linear", "feature_purity"}  # followed by hand in tests/probes
# Each is computed by hand in tests of its own.
SLOW |= {"TruncatedReLU", "SymmetricReLU", "SparseCoding", "SparseParity", "PatternDictionary", "FeatureTasks"}
SLOW |= {"Langevin", "WassersteinFlow", "GiantStep", "RecursiveFeatureMachine", "GrowingThresholds"}
SLOW |= {"LayerwiseDescent", "MatrixNormalisedDescent", "InContextRisk", "Denoising", "mean_field_energy"}
SLOW |= {"degrees_of_freedom", "ridge_errors", "ridge_risk", "feature_responses", "encoder_ratio"}


def cases(kind):
    """Every example; the further variants of a class among the slow tests."""
    marked, seen = [], Counter()
    for one in testing.found(kind):
        name = name_of(one)
        marks = [pytest.mark.slow] if name in SLOW or seen[name] else []
        # Counted within a class: what others add does not rename it.
        marked.append(pytest.param(one, id=f"{seen[name]}-{name}", marks=marks))
        seen[name] += 1
    return pytest.mark.parametrize("part", marked)


def probes(function):
    return cases((Probe, AbstractRunning))(function)


def test_the_folders_are_not_empty():
    kinds = (
        AbstractDataModel,
        AbstractNetwork,
        AbstractObjective,
        AbstractAlgorithm,
        (Probe, AbstractRunning),
    )
    assert [len(testing.found(kind)) >= least for kind, least in zip(kinds, (6, 4, 2, 7, 10))] == [True] * 5


NEW = """from featlab.core.validation import Part, real
from featlab.probes import Probe, Variable, probe


class Decay(Part):
    rate: float = real(default=0.5, symbol="l")


class AbstractDecay(Part):
    pass


@probe(loss_twice=Variable())
def loss_twice(view):
    return 2 * view.step
"""


def test_a_new_part_is_one_file(tmp_path, monkeypatch):
    """No list has its name, and yet it is public, can be written down and is read back."""
    (tmp_path / "decaying.py").write_text(NEW)
    monkeypatch.setattr(fl.probes, "__path__", [*fl.probes.__path__, str(tmp_path)])
    names = dict(vars(fl.probes))
    before = set(names)
    gather("featlab.probes", names, Probe, but=fl.probes._INNER)
    monkeypatch.delitem(sys.modules, "featlab.probes.decaying")
    assert set(names) - before == {"Decay", "loss_twice"}
    monkeypatch.setattr(fl.probes, "loss_twice", names["loss_twice"], raising=False)
    assert fl.rebuild("loss_twice") is names["loss_twice"]
    assert text.describe(names["loss_twice"]) == "loss_twice"


@cases(AbstractDataModel)
def test_data_model(part):
    testing.check_data_model(part)
    testing.check_text(part)
    if part.sees < fl.Sees.COORDINATES:
        # An index model has no signal and no noise apart from its inputs; its teacher is in the test labels.
        index = isinstance(part, AbstractIndexModel)
        seen = fl.probes.test_loss(count=50) if index else fl.probes.products
        testing.check_rotation(testing.example_experiment(data=part, probes=(fl.probes.train_loss, seen)))
        testing.check_span(testing.example_experiment(data=part))


@cases(AbstractNetwork)
def test_network(part):
    testing.check_network(part, **needed(part))
    testing.check_text(part)
    if part.sees < fl.Sees.COORDINATES:
        # A centred network begins at 0, and on which side of it is a matter of rounding; its loss is not. Test
        # inputs that are drawn by their products with weights are unique for independent weights alone, and
        # among those of the start and of the moment some are not: whole test inputs, then.
        centred = getattr(part, "centred", False)
        reading = fl.probes.test_loss(count=50) if centred else fl.probes.test_error(count=50)
        reading = fl.probes.train_loss if "objective" in needed(part) else reading  # outputs are no margins
        other = {"data": INDEX["data"]} if centred else {}
        parts = {**needed(part), "network": part}
        testing.check_rotation(testing.example_experiment(**{**parts, **other, "probes": (reading,)}))
        testing.check_span(testing.example_experiment(**parts))


@cases(AbstractObjective)
def test_objective(part):
    testing.check_objective(part, **needed(part))
    testing.check_text(part)
    if part.sees < fl.Sees.COORDINATES:
        testing.check_rotation(testing.example_experiment(**{**needed(part), "objective": part}))


@cases(AbstractAlgorithm)
def test_algorithm(part):
    if type(part).__name__ == "GradientFlow":
        pytest.importorskip("diffrax", reason="gradient flow is solved by diffrax, which is not installed here")
    testing.check_algorithm(part, **needed(part))
    testing.check_text(part)
    experiment = testing.example_experiment(**needed(part), algorithm=part)
    if part.sees < fl.Sees.COORDINATES:
        testing.check_rotation(experiment)
        testing.check_span(experiment)
    else:  # what is not declared is not there: nobody is kept out of a span for nothing
        assert testing.rotation_gap(experiment) > 1e-3


@probes
def test_probe(part):
    testing.check_probe(part, **needed(part))
    testing.check_text(part)
    experiment = testing.example_experiment(**needed(part), probes=(part,))
    if part.sees < fl.Sees.COORDINATES:
        testing.check_rotation(experiment)
    else:
        assert testing.rotation_gap(experiment) > 1e-3


@pytest.mark.slow
@pytest.mark.parametrize("needs", [pytest.param(INDEX, id="index model"), pytest.param({}, id="vector model")])
def test_padding_changes_no_reading(needs):
    """All probes that are at home in one experiment, in one run."""
    parts = [part for part in testing.found((Probe, AbstractRunning)) if needed(part) == needs]
    assert len(parts) > 5
    testing.check_padding(testing.example_experiment(**needs, probes=parts))


@pytest.mark.slow
@probes
@pytest.mark.parametrize("clock", [fl.probes.throughout, fl.probes.first(lambda view: view.step >= 2, "later")])
def test_probe_on_a_running_clock(part, clock):
    if isinstance(part, Probe):
        testing.check_probe(part.on(clock), **needed(part))


def test_the_rotation_check_has_power():
    adam = testing.example_experiment(algorithm=Descent(optax.adam(1e-2), rotates=True))
    assert testing.rotation_gap(adam) > 1e-3
    with pytest.raises(AssertionError, match="turned"):
        testing.check_rotation(adam)


def test_the_span_check_has_power():
    sign = testing.example_experiment(algorithm=Descent(optax.sign_sgd(1e-2), rotates=True))
    with pytest.raises(AssertionError, match="leave the span"):
        testing.check_span(sign)


def test_the_padding_check_has_power():
    @fl.probes.probe(sees=fl.Sees.VECTORS, rows=fl.probes.Variable("", "n", "rows, of which some do not count"))
    def rows(view):
        return jnp.sum(jnp.ones_like(view.training.labels))

    with pytest.raises(AssertionError, match="rows differs by 3 when rows are added"):
        testing.check_padding(testing.example_experiment(probes=(rows,)))


@pytest.mark.slow
def test_the_products_check_takes_a_missing_value_for_a_missing_value_alone():
    """Nothing is perturbed before the first step: NaN, in products too."""
    sam = testing.example_experiment(algorithm=fl.algorithms.SAM(0.1, 0.2), probes=(fl.probes.deactivation,))
    testing.check_products(sam, steps=2)

    @fl.probes.probe(sees=fl.Sees.PRODUCTS, is_there=fl.probes.Variable("", "w", "NaN in products"))
    def is_there(view):
        return jnp.where(isinstance(view.problem, GramProblem), jnp.nan, 1.0)

    with pytest.raises(AssertionError, match="is_there differs by nan"):
        testing.check_products(testing.example_experiment(probes=(is_there,)), steps=2)


def test_a_probe_that_reads_coordinates_is_caught():
    @fl.probes.probe(sees=fl.Sees.VECTORS, first_entry=fl.probes.Variable("", "w_1", "first entry"))
    def first_entry(view):
        return view.weights[0, 0]

    with pytest.raises(AssertionError, match="turned"):
        testing.check_rotation(testing.example_experiment(probes=(first_entry,)))
