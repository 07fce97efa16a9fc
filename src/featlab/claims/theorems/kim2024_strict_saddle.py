r"""The landscape of learning in context has no bad minima: below $r^\circ/2$ it slopes towards the teacher, and a
critical point above has negative curvature, along which the flow leaves it.

Kim and Suzuki (2024). $\mathcal{L}(\mu) = \frac12 \mathbb{E} \|f^\circ - \Sigma_{\circ\mu} \Sigma_{\mu\mu}^{-1}
h_\mu\|^2$ is the loss after the best attention, with $\Sigma_{\circ\circ} = r^\circ I_k$ and second layers of
length at most one, and $\bar\mu_s = (1 - s)\mu + s R\sharp\mu^\circ$ a mixture with the teacher, its second layer
turned. How networks and critical points are drawn is in `settings/in_context_landscape.py`; nothing is trained.

Each bound is a ratio that is at most 1. It is measured where it is nearly sharp, among nearly saturated neurons
(`settings/saturated_features.py`, with derivations):

* the slope, for one feature;
* the curvature at critical points that miss one feature of k. It is below the bound without its $k$, and not by
  much, so that the theorem's $1/k$ is room;
* the fall of the loss under the flow, at least the squared slope over R, the density ratio of the teacher's law to
  the student's: with one feature (below $r^\circ/2$) and with two (above, at points that are not critical);
* $\lambda_{\min}(H) \leq -\Lambda/R$ with $\Lambda = 4\mathcal{L}^2$ and $H = N \nabla^2 \mathcal{L}$ over the
  particles.

Slope and fall together are $\dot{\mathcal{L}} \leq -16 \mathcal{L}^2 (r^\circ/2 - \mathcal{L})^2 / (R
\|\sigma\|_\infty^4)$, hence $\mathcal{L} = O(R/T)$. The bounds with R are derived here, the paper's text not being
at hand.

In networks at random (`settings/in_context_landscape.py`: sigmoid neurons, k = 3) slope and curvature are hundreds
of times their bounds: asked, and no evidence. The slope is the worst of those of 45 networks of each seed whose
loss is below $r^\circ/2$.

Algebra, to rounding: particles rest at the critical points, and the loss there is $r^\circ/2$ times the number of
features missed. Values, within 5 %: from one that misses one feature, the rate at which the flow of all particles
leaves it over $|\lambda_{\min}(H)|$, and that at which the loss falls over twice as much. In the control the first
layers stay: the flow leaves as well, but at another rate.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_most, equals, identity, not_judged
from featlab.claims.picture import MOMENTS
from featlab.claims.settings.in_context_landscape import FEATURES, escapes, landscape
from featlab.claims.settings.references import KIM_SUZUKI_2024
from featlab.claims.settings.saturated_features import curvatures, eigenvalues, falls, slopes
from featlab.core.validation import real, whole
from featlab.data import FeatureTasks
from featlab.experiment import Experiment
from featlab.networks import MeanFieldFeatures
from featlab.objectives import InContextRisk
from featlab.probes import feature_residual, geometric, in_context_loss, train_loss

ROUNDING = 1e-6  # of velocities over the loss, the second layers of white features being some hundreds long
MANY = (1, 2, 4, 8)  # k, where one feature of k is missed
RATIOS = (2, 4, 8)  # R, where the loss falls
LARGE_RATIOS = (8, 16)  # R, where the student has all neurons but the teacher's: 1 - 1/R of them


class StrictSaddle(Claim):
    """The claim of this file."""

    title = "the loss of learning in context slopes towards the teacher, or has negative curvature"
    statement = (
        r"0 < \mathcal{L}(\mu) < \tfrac{r^\circ}{2}: \ \min_R \tfrac{d}{ds} \mathcal{L}(\bar\mu_s)|_0 \leq "
        r"-\tfrac{4}{\|\sigma\|_\infty^2} \mathcal{L} \left(\tfrac{r^\circ}{2} - \mathcal{L}\right); \quad "
        r"\text{at a critical point} \ \mathcal{L} \geq \tfrac{r^\circ}{2}, \ "
        r"\tfrac{d^2}{ds^2} \mathcal{L}(\bar\mu_s)|_0 \leq -\tfrac{4}{k \|\sigma\|_\infty^2} \mathcal{L}^2, \ "
        r"\lambda_{\min}(H) \leq -\tfrac{\Lambda}{R}"
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
    control_changes = "the first layers stay as they are"

    clauses = {
        "below r/2 the slope towards the teacher is below its negative bound": (
            "4 L (r/2 - L) over the slope*", "the bound on the slope over*",
        ),
        "the flow lowers the loss at least as fast as the squared slope over R": "squared slope over R*",
        "below r/2 the loss falls as O(R / T)": not_judged(
            "it is the two inequalities above, integrated; near the minimum the loss falls exponentially, so that "
            "a check of its own could not fail (the loss was .003 of the bound)"
        ),
        "a critical point other than the minimum has L >= r/2": ("velocity of particles*", "loss at a critical*"),
        "there the curvature towards the teacher is below its negative bound, which holds without its k": (
            "4 L^2 over the curvature*", "the bound on the curvature*",
        ),
        "the smallest eigenvalue of the Hessian is at most the bound on the curvature over R": (
            "4 L^2 / R over the smallest eigenvalue*"
        ),
        "the flow leaves a saddle along its most negative curvature": ("rate of leaving*", "rate at which*"),
        "points above r/2 that are not critical: the loss falls there too": "squared slope over R*",
    }  # fmt: skip

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
        read = lab.measure(landscape, setting=self.typical(), **self._knobs)
        yield at_most("4 L (r/2 - L) over the slope, one feature near the teacher's", lab.measure(slopes).ratio, 1)
        fall = lab.measure(falls, k=(1, 2), one_in=RATIOS).ratio.rename(one_in="R")
        yield at_most("squared slope over R times the fall of the loss, k = 1 below r/2, 2 above", fall, 1)
        missed = lab.measure(curvatures, k=MANY).ratio
        yield at_most("4 L^2 over the curvature, one feature of k missed", missed, 1)
        least = lab.measure(eigenvalues, one_in=LARGE_RATIOS).ratio.rename(one_in="R")
        yield at_most("4 L^2 / R over the smallest eigenvalue at a saddle", least, 1)
        yield at_most("the bound on the slope over the slope, random networks", read.slope_ratio, 1)
        yield at_most("the bound on the curvature over it, random critical points", read.curvature, 1)
        yield identity("velocity of particles at the critical points", read.velocity, ROUNDING)
        yield identity("loss at a critical point over r/2 times the features missed, less 1", read.level - 1, 1e-9)
        left = self._left(lab)
        yield self._leaves(left)
        yield equals("rate at which the loss falls over twice the curvature", left.fall, 1)

    def control(self, lab):
        return self._leaves(self._left(lab, frozen=True))

    def _leaves(self, left):
        return equals("rate of leaving a saddle over the curvature", left.growth, 1)

    def _left(self, lab, frozen=False):
        return lab.measure(escapes, setting=self.typical(), frozen=frozen, **self._knobs)

    @property
    def _knobs(self):
        return {"width": self.width, "d": int(self.d), "samples": self.samples, "steepness": self.steepness}
