"""Which space and which problem a run gets, from what its parts declare that they see."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import pytest

import featlab as fl
from featlab.engine.loop import Run, draw_one
from featlab.problem import GramProblem, LinearProblem, PlainProblem

A, P, Sees = fl.algorithms, fl.probes, fl.Sees
SMALL = fl.data.SignalNoise(n=4, d=40, snr=0.5)
BASE = fl.Experiment(
    data=SMALL, network=fl.networks.TwoLayerCNN(width=2), algorithm=A.GradientDescent(0.1), probes=[P.train_loss]
)
DECAY = A.GradientDescent(0.1, weight_decay=0.1)
CASES = {
    "all see products": ({}, Sees.PRODUCTS, LinearProblem),
    "weight decay": ({"algorithm": DECAY}, Sees.VECTORS, LinearProblem),
    "mixup knows no coordinate": ({"algorithm": A.Mixup(0.1)}, Sees.VECTORS, PlainProblem),
    "Adam meets no input": ({"algorithm": A.Adam(0.1)}, Sees.COORDINATES, LinearProblem),
    "one after the other": ({"algorithm": A.Then(A.Adam(0.1), 2, A.Mixup(0.1))}, Sees.COORDINATES, PlainProblem),
    "mini-batches": ({"data": fl.data.Minibatches(SMALL, 2)}, Sees.VECTORS, LinearProblem),
    "a stream": ({"data": fl.data.Stream(SMALL, 2)}, Sees.COORDINATES, LinearProblem),
    "a teacher": ({"data": fl.data.SingleIndex(n=4, d=40, link=jnp.tanh)}, Sees.VECTORS, PlainProblem),
    "a probe of lengths": ({"probes": [P.weight_norms]}, Sees.VECTORS, LinearProblem),
    "a plain function": ({"probes": [lambda view: view.step]}, Sees.COORDINATES, LinearProblem),
    "a level": ({"steps": P.until(P.gradient_norm_1, 0.1)}, Sees.COORDINATES, LinearProblem),
    "few dimensions": ({"data": replace(SMALL, d=8.0)}, Sees.COORDINATES, LinearProblem),
    "as asked": ({"space": fl.Ambient}, Sees.COORDINATES, LinearProblem),
}


@pytest.mark.parametrize("case", CASES)
def test_the_coarsest_representation_serves_the_part_that_looks_most_closely(case):
    changes, representation, kind = CASES[case]
    made = replace(BASE, **changes)
    space = made.empty_space()
    assert made.representation == representation
    assert isinstance(space, fl.Ambient if representation == Sees.COORDINATES else fl.Span)
    assert problem_of(made, products=False) is kind
    if representation == Sees.PRODUCTS:
        assert problem_of(made, products=True) is GramProblem


def problem_of(made, *, products):
    kinds = []

    def drawn(seed):
        draw, _ = draw_one(made, made.empty_space(), seed, made.data.n, products=products)
        kinds.append(type(Run(made, draw, ()).problem))

    jax.eval_shape(drawn, jnp.uint32(0))
    return kinds[0]


class Careless(fl.objectives.AbstractObjective):
    """Says that it sees products alone, and is no mean of losses."""

    network: fl.networks.AbstractNetwork | None = None
    sees = Sees.PRODUCTS

    def __call__(self, params, batch, key):
        return jnp.zeros(()), None


def test_a_declaration_that_cannot_be_is_refused():
    with pytest.raises(fl.InputError, match="Careless declares that it sees inner products alone"):
        replace(BASE, objective=Careless())
    with pytest.raises(fl.InputError, match="write `batch` in an AbstractBatching"):
        type("Jittered", (fl.data.AbstractVectorModel,), {"batch": lambda self, *_: None, "__module__": __name__})
    with pytest.raises(fl.InputError, match="must be a Variable, got True; what it looks at is `sees`"):
        P.probe(**{"equivariant": True})


def test_a_declaration_of_an_older_featlab_is_refused_and_not_passed_over():
    with pytest.raises(fl.InputError, match="Old.equivariant says nothing any more: write `sees ="):

        class Old(fl.data.AbstractDataModel):
            equivariant = True
