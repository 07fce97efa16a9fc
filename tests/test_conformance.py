"""Everything featlab exports, found by walking its folders, against what it declares."""

import jax.numpy as jnp
import optax
import pytest

import featlab as fl
from featlab import testing
from featlab.algorithms import AbstractAlgorithm, Descent
from featlab.data import AbstractDataModel
from featlab.networks import AbstractNetwork
from featlab.objectives import AbstractObjective
from featlab.probes import AbstractRunning, Probe
from featlab.products import ProductTask

pytestmark = pytest.mark.gpu


def cases(kind):
    """Every example; the further variants of a class among the slow tests."""
    examples = testing.found(kind)
    marked, seen = [], set()
    for i, one in enumerate(examples):
        name = one.name if isinstance(one, Probe) else type(one).__name__
        marks = [pytest.mark.slow] if name in seen else []
        seen.add(name)
        marked.append(pytest.param(one, id=f"{i}-{name}", marks=marks))
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


@cases(AbstractDataModel)
def test_data_model(part):
    testing.check_data_model(part)
    testing.check_text(part)
    if part.equivariant:
        testing.check_rotation(
            testing.example_experiment(data=part, probes=(fl.probes.train_loss, fl.probes.products))
        )
        testing.check_span(testing.example_experiment(data=part))


@cases(AbstractNetwork)
def test_network(part):
    testing.check_network(part)
    testing.check_text(part)
    if part.equivariant:
        testing.check_rotation(testing.example_experiment(network=part, probes=(fl.probes.test_error(count=50),)))
        testing.check_span(testing.example_experiment(network=part))


@cases(AbstractObjective)
def test_objective(part):
    testing.check_objective(part)
    testing.check_text(part)
    if part.equivariant:
        testing.check_rotation(testing.example_experiment(objective=part))


@cases(AbstractAlgorithm)
def test_algorithm(part):
    if type(part).__name__ == "GradientFlow":
        pytest.importorskip("diffrax", reason="gradient flow is solved by diffrax, which is not installed here")
    testing.check_algorithm(part)
    testing.check_text(part)
    if part.equivariant:
        testing.check_rotation(testing.example_experiment(algorithm=part))
        testing.check_span(testing.example_experiment(algorithm=part))
    else:  # what is not declared is not there: nobody is kept out of a span for nothing
        assert testing.rotation_gap(testing.example_experiment(algorithm=part)) > 1e-3


def needed(part):
    """What a probe needs of an experiment, beyond the example's parts."""
    return {"algorithm": fl.algorithms.SAM(0.1, 0.2)} if part is fl.probes.deactivation else {}


@probes
def test_probe(part):
    testing.check_probe(part, **needed(part))
    testing.check_text(part)
    experiment = testing.example_experiment(probes=(part,), **needed(part))
    if part.equivariant:
        testing.check_rotation(experiment)
    else:
        assert testing.rotation_gap(experiment) > 1e-3


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


def test_the_products_check_takes_a_missing_value_for_a_missing_value_alone():
    """Nothing is perturbed before the first step: NaN, in products too."""
    sam = testing.example_experiment(algorithm=fl.algorithms.SAM(0.1, 0.2), probes=(fl.probes.deactivation,))
    testing.check_products(sam, steps=2)

    @fl.probes.probe(equivariant=True, in_products=True, is_there=fl.probes.Variable("", "w", "NaN in products"))
    def is_there(view):
        return jnp.where(isinstance(view.task, ProductTask), jnp.nan, 1.0)

    with pytest.raises(AssertionError, match="is_there differs by nan"):
        testing.check_products(testing.example_experiment(probes=(is_there,)), steps=2)


def test_a_probe_that_reads_coordinates_is_caught():
    @fl.probes.probe(equivariant=True, first_entry=fl.probes.Variable("", "w_1", "first entry"))
    def first_entry(view):
        return view.weights[0, 0]

    with pytest.raises(AssertionError, match="turned"):
        testing.check_rotation(testing.example_experiment(probes=(first_entry,)))
