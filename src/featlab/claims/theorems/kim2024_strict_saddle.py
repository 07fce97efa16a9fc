r"""The landscape of learning in context has no bad minima: below $r^\circ/2$ it slopes towards the teacher, and a
critical point above has negative curvature, along which the flow leaves it.

Kim and Suzuki (2024). $\mathcal{L}(\mu) = \frac12 \mathbb{E} \|f^\circ - \Sigma_{\circ\mu} \Sigma_{\mu\mu}^{-1}
h_\mu\|^2$ is the loss after the best attention, with $\Sigma_{\circ\circ} = r^\circ I_k$ and second layers of
length at most one, and $\bar\mu_s = (1 - s)\mu + s R\sharp\mu^\circ$ a mixture with the teacher, its second layer
turned. How networks and critical points are drawn is in `settings/in_context_landscape.py`; nothing is trained.

Bounds, each as the ratio of the bound to what it bounds, at most 1. The steepest slope over $R \in \mathrm{conv}\,
O(k)$, which is $-\|E P\|_*$ (see `probes.in_context`): the largest ratio among those of 45 networks of each seed
whose loss is below $r^\circ/2$. The fall of the loss under the flow against $R^{-1}$ times the square of that
slope, the first layer being the teacher's, so that the density ratio $R$ is 1. What the two imply after a time $T$
while the second layer flows, $\mathcal{L} = O(1/T)$. The curvature at critical points that miss one, two or all of
three features, and for one saturated feature, where the bound is nearly sharp. (At a critical point the bound
holds even without its $k$, because $\mathrm{tr}\, \Sigma_{\mu\mu} \leq \|\sigma\|_\infty^2$.)

Algebra, to rounding: particles rest at these critical points, and the loss there is $r^\circ/2$ times the number
of features missed. Values, within 5 %: from one that misses one feature, the rate at which the flow of all
particles leaves it over $|\lambda_{\min}(H)|$, with $H = N \nabla^2 \mathcal{L}$ over the particles, and that at
which the loss falls over twice as much.

The control takes the loss without its half, under the same bound on the curvature.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_most, equals, identity, not_judged
from featlab.claims.picture import MOMENTS
from featlab.claims.settings.in_context_landscape import FEATURES, escapes, landscape, saturated
from featlab.claims.settings.references import KIM_SUZUKI_2024
from featlab.core.validation import real, whole
from featlab.data import FeatureTasks
from featlab.experiment import Experiment
from featlab.networks import MeanFieldFeatures
from featlab.objectives import InContextRisk
from featlab.probes import feature_residual, geometric, in_context_loss, train_loss

ROUNDING = 1e-6  # of velocities over the loss, the second layers of white features being some hundreds long


class StrictSaddle(Claim):
    """The claim of this file."""

    title = "the loss of learning in context slopes towards the teacher, or has negative curvature"
    statement = (
        r"0 < \mathcal{L}(\mu) < \tfrac{r^\circ}{2}: \ \min_R \tfrac{d}{ds} \mathcal{L}(\bar\mu_s)|_0 \leq "
        r"-\tfrac{4}{\|\sigma\|_\infty^2} \mathcal{L} \left(\tfrac{r^\circ}{2} - \mathcal{L}\right); \quad "
        r"\text{at a critical point} \ \mathcal{L} \geq \tfrac{r^\circ}{2}, \ "
        r"\tfrac{d^2}{ds^2} \mathcal{L}(\bar\mu_s)|_0 \leq -\tfrac{4}{k \|\sigma\|_\infty^2} \mathcal{L}^2"
    )
    refuted_if = "a slope or a curvature is above its bound, or a saddle is left at another rate than its own"
    reference = KIM_SUZUKI_2024
    sizes = {
        "tiny": Size(seeds=3),
        "smoke": Size(seeds=6),
        "laptop": Size(seeds=24),
        "full": Size(seeds=96),
    }
    minutes = 1.0
    control_changes = "the loss has no factor of one half"

    clauses = {
        "below r/2 the slope towards the teacher is below its negative bound": "the bound on the slope over*",
        "the flow lowers the loss at least as fast as the squared slope, for R = 1": "squared slope over*",
        "below r/2 the loss falls as O(1/T)": "L(T) over*",
        "a critical point other than the minimum has L >= r/2": ("velocity of particles*", "loss at a critical*"),
        "there the curvature towards the teacher is below its negative bound": "the bound on the curvature*",
        "the flow leaves a saddle along its most negative curvature": ("rate of leaving*", "rate at which*"),
        "a density ratio R > 1 between the teacher's neurons and the student's": not_judged(
            "teacher and students share their first layer here, so that R = 1"
        ),
        "the smallest eigenvalue of the Hessian is at most the bound on the curvature over R": not_judged(
            "the eigenvalue is computed for the rate of leaving, and not compared with the bound"
        ),
        "points above r/2 that are not critical": not_judged(
            "the bounds say nothing about a point with a slope there"
        ),
    }

    width: int = whole(default=12, at_least=2 * FEATURES)  # N, neurons of teacher and student
    d: float = real(default=6.0, at_least=2)
    samples: int = whole(default=300, at_least=20)  # inputs
    steepness: float = real(default=2.0, above=0)  # of the neurons: the typical size of <w, x>

    def typical(self):
        return Experiment(
            data=FeatureTasks(
                n=self.samples, d=self.d, features=FEATURES, width=self.width, steepness=self.steepness
            ),
            network=MeanFieldFeatures(width=self.width, outputs=FEATURES, init_scale=self.steepness),
            objective=InContextRisk(),
            algorithm=GradientDescent(0.5 * self.width),
            probes=[in_context_loss(count=2000)],
            steps=500,
            precision=64,
        )

    def scene(self):
        probes = [train_loss, in_context_loss(count=1000), feature_residual(count=1000)]
        return dataclasses.replace(self.typical(), probes=probes, record=geometric(MOMENTS))

    def assumptions(self, experiment):
        data: Any = experiment.data
        return [
            Assumption("M / k: the teacher has a neuron for each feature", data.width / data.features, ">= 1"),
            Assumption(
                "sup |sigma| over 1: the activation is bounded",
                float(1 / jnp.max(jnp.abs(data.activation(jnp.linspace(-1e3, 1e3, 101))))), ">= 1",
            ),  # fmt: skip
        ]  # fmt: skip

    def checks(self, lab):
        knobs = {"width": self.width, "d": int(self.d), "samples": self.samples, "steepness": self.steepness}
        read = lab.measure(landscape, setting=self.typical(), **knobs)
        yield at_most("the bound on the slope over the slope, L < r/2", read.slope_ratio, 1)
        yield at_most("squared slope over the fall of the loss in time, R = 1", read.fall_ratio, 1)
        yield at_most("L(T) over what the slope implies, second layer flowing", read.decay_ratio, 1)
        yield identity("velocity of particles at the critical points", read.velocity, ROUNDING)
        yield identity("loss at a critical point over r/2 times the features missed, less 1", read.level - 1, 1e-9)
        yield at_most("the bound on the curvature over it, at a critical point", read.curvature, 1)
        yield self._saturated(lab, half=0.5)
        left = lab.measure(escapes, setting=self.typical(), **knobs)
        yield equals("rate of leaving a saddle over the curvature", left.growth, 1)
        yield equals("rate at which the loss falls over twice the curvature", left.fall, 1)

    def control(self, lab):
        return self._saturated(lab, half=1.0)

    def _saturated(self, lab, half):
        """The loss is `half` times the squared error."""
        read = lab.measure(saturated, setting=self.typical(), factor=half)
        return at_most("the bound on the curvature over it, one nearly saturated feature", read.ratio, 1)
