r"""A giant step with as many samples as dimensions learns one direction; a second one climbs from there.

Dandi, Krzakala, Loureiro, Pesce and Stephan (2023). With $n \asymp d$ fresh samples a step,
the first giant step learns the direction of the teacher's linear part and nothing else. A second step learns
directions that are linear once the first is known: those of $z_1 z_2$ beside $z_1$ (a staircase). Directions
that only enter through $z_2 z_3$ stay hidden from both, until a term $z_1 z_2$ shows one of them: the control.
With $n \asymp d^2$ the first step also learns directions of degree two, if there is no linear one.

The share of the neurons' movement along a direction stays of order one if the direction is learnt. If it is
not, its square is of order $1/d$, the mean over all directions: at most four times that, which is twice the
length. One or two steps are all the theorem takes: there is nothing that could be trained too little.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp

from featlab.algorithms import GiantStep
from featlab.claims import Assumption, Claim, Size, at_most, not_judged, scales_as
from featlab.core.validation import real
from featlab.data import MultiIndex, Stream
from featlab.experiment import Experiment
from featlab.networks import TwoLayer, centred, relu
from featlab.objectives import squared
from featlab.probes import at_end, step_direction


def staircase(z):
    r"""$z_1 + z_1 z_2$: the second direction is linear once the first is known."""
    return z[0] + z[0] * z[1]


def apart(z):
    r"""$z_1 + z_2 z_3$: the others never are."""
    return z[0] + z[1] * z[2]


def joined(z):
    r"""$z_1 + z_2 z_3 + z_1 z_2$: the second is linear once the first is known."""
    return z[0] + z[1] * z[2] + z[0] * z[1]


def square(z):
    r"""$(z_1^2 - 1)/\sqrt 2$: nothing is linear."""
    return (z[0] ** 2 - 1) / jnp.sqrt(2.0)


APART = "a direction apart after two steps"
HIDDEN = 4.0  # the most that d times a squared share may be: it is 1 for a random direction


class Directions(Claim):
    """The claim of this file."""

    title = "one giant step learns one direction, a second one those that are linear given the first"
    statement = (
        r"n \asymp d: \quad V_1 = \mathrm{span}(C_1), \qquad V_2 = V_1 \cup "
        r"\{v : \mathbb{E}[y\, \langle v, x \rangle \mid P_{V_1} x] \neq 0\}"
    )
    refuted_if = "the first step learns more than the linear direction, or the second one not that of a staircase"
    reference = """@article{dandi2023learning,
  title   = {How Two-Layer Neural Networks Learn, One (Giant) Step at a Time},
  author  = {Dandi, Yatin and Krzakala, Florent and Loureiro, Bruno and Pesce, Luca and Stephan, Ludovic},
  journal = {arXiv preprint arXiv:2305.18270},
  year    = {2023}
}"""
    sizes = {
        "tiny": Size(seeds=3, d=(30, 60, 90), few=(10, 15, 20)),
        "smoke": Size(seeds=6, d=(100, 160, 250), few=(20, 40, 80)),
        "laptop": Size(seeds=24, d=(200, 400, 800), few=(40, 80, 160)),
        "full": Size(seeds=32, d=(500, 1000, 2000), few=(50, 100, 200, 400)),
    }
    minutes = 2.0
    control_changes = "the teacher is z_1 + z_2 z_3 + z_1 z_2 instead of z_1 + z_2 z_3"

    clauses = {
        "the first step learns the direction of the linear part": "*the linear direction after one step",
        "and no other": "squared share of the staircase's direction after one step*",
        "the second learns what is linear given the first": "*the staircase's direction after two steps",
        "directions that never are stay hidden": "squared share of a direction apart*",
        "directions of degree two need d^2 samples a step": "*a direction of degree two*",
        "directions of degree k > 2 need d^k samples a step": not_judged(
            "ReLU has c_3 = 0: one step sees no degree three"
        ),
        "what the learnt directions are worth in test error": not_judged("directions are read, no head is fitted"),
    }

    samples: float = real(default=8.0, above=0)  # n / d, each step
    neurons: float = real(default=1.0, above=0)  # N / d
    constant: float = real(default=1.0, above=0)  # eta / N: a neuron moves by about its own length

    def typical(self):
        return self.experiment(200, staircase, 2, 2)

    def assumptions(self, experiment: Any):
        n, d = experiment.data.n, experiment.data.d
        if experiment.data.data.link is square and n >= d**2:
            return [Assumption("n / d^2: as many samples a step as pairs of dimensions", n / d**2, ">= 1")]
        return [
            Assumption("n / d: as many samples a step as dimensions, or more", n / d, ">= 1"),
            Assumption("n / d^2: too few samples for quadratic directions", n / d**2, "<< 1"),
        ]

    def checks(self, lab):
        first, second = (self._shares(lab, staircase, 2, steps) for steps in (1, 2))
        yield self._learnt("the linear direction after one step", first.sel(direction=0), "v_1")
        yield self._hidden("the staircase's direction after one step", first.sel(direction=1))
        yield self._learnt("the staircase's direction after two steps", second.sel(direction=1), "v_2")
        yield self._hidden(APART, self._shares(lab, apart, 3, 2).sel(direction=1))
        many = lab.run(self.squares, d=lab.size.few, power=2).step_share.sel(direction=0)
        yield self._learnt("a direction of degree two, n = d^2", many, "v")
        few = lab.run(self.squares, d=lab.size.d, power=1).step_share.sel(direction=0)
        symbols = ("d", r"\|\Delta W v\| / \|\Delta W\|")
        name = "exponent of the share of a direction of degree two, n = 8 d"
        yield scales_as(name, few, "d", at_most=0.0, symbols=symbols)

    def control(self, lab):
        return self._hidden(APART, self._shares(lab, joined, 3, 2).sel(direction=1))

    def _learnt(self, which, shares, direction):
        symbols = ("d", rf"\|\Delta W {direction}\| / \|\Delta W\|")
        return scales_as(f"exponent of the share of {which}", shares, "d", 0.0, rivals=(-0.5,), symbols=symbols)

    def _hidden(self, which, shares):
        return at_most(f"squared share of {which}, times d", shares.d * shares**2, HIDDEN)

    def _shares(self, lab, link, rank, steps):
        """Shares of the neurons' movement along each direction of the teacher."""
        return lab.run(self.experiment, d=lab.size.d, link=link, rank=rank, steps=steps).step_share

    def squares(self, d, power):
        """One step on d^2 samples, or on as many as elsewhere, of a teacher without a linear part."""
        return self.experiment(d, square, 1, 1, d * d if power == 2 else None)

    def experiment(self, d, link, rank, steps, n=None):
        """Giant steps, each on fresh samples."""
        n, width = n or round(self.samples * d), round(self.neurons * d)
        return Experiment(
            data=Stream(data=MultiIndex(n=n, d=d, link=link, rank=rank), size=n),
            network=TwoLayer(width=width, activation=centred(relu), power=1.0, centred=True),
            algorithm=GiantStep(eta=self.constant * width),
            objective=squared,
            probes=[step_direction.on(at_end)],
            steps=steps,
        )
