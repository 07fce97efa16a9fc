r"""Label noise adds the degrees of freedom to the objective, and training with it lowers them.

Takakura and Suzuki (2024). $F(\mu)$ is the least ridge loss over second layers. Fit the second layer to $y +
\tilde\epsilon$ with $\tilde\epsilon \sim U[-s, s]$ instead, and take loss and penalty on $y$: that is $G(\mu)$.
It is quadratic around the best second layer, so its mean over the noise is $F$ and $\frac{\mathrm{Var}}{n}$
times the degrees of freedom $\mathrm{tr}\, S$, $S = K_\mu (K_\mu + n\lambda I)^{-1}$: the fit adds
$\frac{\mathrm{Var}}{n} \mathrm{tr} \,S^2$, the penalty the rest, and the variance is $\frac{s^2}{3}$.

G is computed as it is defined, for trained features, over penalties and s: its mean over draws must be the
formula within 1 % (an identity: the margin is for the draws), and summed over unit vectors instead of noise,
where there is no chance left, to rounding. The same for several tasks, each with noise of its own, F and G
being means over tasks. Then features trained to lower $F$ are compared with features trained to lower $G$, with
fresh noise in every step, from the same start and for the same time: they must reach the same F (within 5 %)
with at least 10 % fewer degrees of freedom. The formula holds for any features, and the comparison is at a
fixed time of the flow, so nothing more is asked of a run than its steps. In the control the noise, of the same
variance, is drawn once and for all with the labels: then nothing lowers the degrees of freedom.
"""

from __future__ import annotations

import math
from typing import Any

import jax.numpy as jnp

from featlab.algorithms import WassersteinFlow
from featlab.claims import Assumption, Claim, Size, at_least, equals, identity
from featlab.claims.settings.references import TAKAKURA_SUZUKI_2024
from featlab.core.validation import real, whole
from featlab.data import LinearRegression, SingleIndex, power_law
from featlab.experiment import Experiment
from featlab.networks import TwoLayer
from featlab.objectives import ProfileRidge
from featlab.probes import at_end, degrees_of_freedom, label_noise_excess, mean_field_energy

FACTORS = (0.1, 0.3, 1.0)  # times the penalty of the training: those of the identity
TASKS = 4  # m
HALF_WIDTHS = (0.5, 1.0)  # s, of the identity


class LabelNoise(Claim):
    """The claim of this file."""

    title = "label noise adds the degrees of freedom to the objective, and training with it lowers them"
    statement = (
        r"\mathbb{E}_{\tilde\epsilon}[G(\mu)] = F(\mu) + \frac{s^2}{3n} \mathrm{tr}\, K_\mu (K_\mu + n\lambda "
        r"I)^{-1}, \qquad \tilde\epsilon \sim U[-s, s]"
    )
    refuted_if = "the mean of G differs from the formula by more than 1 %, or noise leaves the degrees of freedom"
    reference = TAKAKURA_SUZUKI_2024
    sizes = {
        "tiny": Size(seeds=3, draws=200),
        "smoke": Size(seeds=4, draws=2000),
        "laptop": Size(seeds=24, draws=8000),
        "full": Size(seeds=64, draws=20_000),
    }
    minutes = 1.0
    control_changes = "the noise is drawn once, with the labels"

    clauses = {
        "noise adds its variance over n times the degrees of freedom": (
            "what noise adds to the objective, over the formula",
            "the same over unit*",
        ),
        "so it does in the mean over m tasks": "what noise adds to the objective of * tasks*",
        "training with noise lowers the degrees of freedom": "share of the degrees of freedom*",
        "it does so at an equal fit": "F after training with noise*",
    }

    samples: int = whole(default=60, at_least=2)  # n
    width: int = whole(default=100, at_least=1)  # N
    penalty: float = real(default=0.01, above=0)  # lambda, of the training
    learning_rate: float = real(default=1.0, above=0)  # eta
    label_noise: float = real(default=0.5, above=0)  # s, of the training

    def experiment(self, noise: float, draws: int = 1000, tasks: int = 1, fixed: float = 0.0) -> Experiment:
        """Features trained with this noise in the labels, fresh in every step, or with a fixed one."""
        penalties = tuple(self.penalty * factor for factor in FACTORS)
        probes = [
            label_noise_excess(penalty=penalties, half_width=HALF_WIDTHS, draws=draws),
            degrees_of_freedom(penalty=penalties),
            mean_field_energy,
        ]
        few: dict[str, Any] = {"n": self.samples, "d": 5, "label_noise": math.hypot(0.1, fixed / math.sqrt(3))}
        several = LinearRegression(spectrum=power_law(0), target=power_law(1), tasks=tasks, **few)
        return Experiment(
            data=several if tasks > 1 else SingleIndex(link=jnp.sin, **few),
            network=TwoLayer(width=self.width, activation=jnp.tanh),
            algorithm=WassersteinFlow(self.learning_rate),
            objective=ProfileRidge(penalty=self.penalty, label_noise=noise),
            probes=[probe.on(at_end) for probe in probes],
            steps=50,
            precision=64,
        )

    def typical(self):
        return self.experiment(self.label_noise)

    def assumptions(self, experiment):
        data, width = experiment.data, experiment.network.vectors()
        return [
            Assumption("1 / sqrt N: many neurons", width**-0.5, "<< 1"),
            Assumption("n / d: more samples than dimensions", data.n / data.d, ">= 1"),
        ]

    def checks(self, lab):
        quiet, noisy = (self._read(lab, noise) for noise in (0.0, self.label_noise))
        yield self._follows("what noise adds to the objective, over the formula", quiet)
        several = self._read(lab, 0.0, tasks=TASKS)
        yield self._follows(f"what noise adds to the objective of {TASKS} tasks, over the formula", several)
        of_variance_one = quiet.label_noise_formula.isel(half_width=0, drop=True) * 3 / HALF_WIDTHS[0] ** 2
        yield identity("the same over unit vectors, less 1", quiet.label_noise_trace / of_variance_one - 1, 1e-8)
        fit = noisy.objective_value / quiet.objective_value
        yield equals("F after training with noise over F after training without", fit, 1)
        yield self._saves(quiet, noisy)

    def control(self, lab):
        return self._saves(self._read(lab, 0.0), self._read(lab, 0.0, fixed=self.label_noise))

    def _follows(self, name, read):
        return equals(name, read.label_noise_excess / read.label_noise_formula, 1, margin=0.01)

    def _saves(self, quiet, noisy):
        left = (noisy.degrees_of_freedom / quiet.degrees_of_freedom).isel(penalty=FACTORS.index(1.0), drop=True)
        return at_least("share of the degrees of freedom that noise saves", 1 - left, 0.1)

    def _read(self, lab, noise, **other):
        read = lab.run(self.experiment, noise=noise, draws=lab.size.draws, **other)
        symbols = {"penalty": "lambda", "half_width": "s"}
        return read.assign_coords({dim: (dim, read[dim].data, {"symbol": of}) for dim, of in symbols.items()})
