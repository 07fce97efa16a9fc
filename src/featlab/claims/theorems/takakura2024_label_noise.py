r"""Label noise adds the degrees of freedom to the objective, and training with it lowers them.

Takakura and Suzuki (2024). $F(\mu)$ is the least ridge loss over second layers. Fit the second layer to $y +
\tilde\epsilon$ with $\tilde\epsilon \sim U[-s, s]$ instead, and take loss and penalty on $y$: that is $G(\mu)$.
It is quadratic around the best second layer, so its mean over the noise is $F$ and $\frac{\mathrm{Var}}{n}$
times the degrees of freedom $\mathrm{tr}\, S$, $S = K_\mu (K_\mu + n\lambda I)^{-1}$: the fit adds
$\frac{\mathrm{Var}}{n} \mathrm{tr} \,S^2$, the penalty the rest, and the variance is $\frac{s^2}{3}$.

G is computed as it is defined, for trained features, over penalties and s: its mean over draws must be the
formula within 1 % (an identity: the margin is for the draws), and summed over unit vectors instead of noise,
where there is no chance left, to rounding. Then features trained to lower $F$ are compared with features trained
to lower $G$, with fresh noise in every step, from the same start and for the same time: they must reach the same
F (within 5 %) with at least 10 % fewer degrees of freedom. The formula holds for any features, and the comparison
is at a fixed time of the flow, so nothing more is asked of a run than its steps. The control takes the constant of
the talk, $\frac{\lambda s^2}{n}$ for $\frac{s^2}{3n}$.
"""

from __future__ import annotations

import jax.numpy as jnp

from featlab.algorithms import WassersteinFlow
from featlab.claims import Assumption, Claim, Size, at_least, equals, identity
from featlab.claims.settings.references import TAKAKURA_SUZUKI_2024
from featlab.core.validation import real, whole
from featlab.data import SingleIndex
from featlab.experiment import Experiment
from featlab.networks import TwoLayer
from featlab.objectives import ProfileRidge
from featlab.probes import at_end, degrees_of_freedom, label_noise_excess, mean_field_energy

FACTORS = (0.1, 0.3, 1.0)  # times the penalty of the training: those of the identity
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
    minutes = 0.5
    control_changes = "the constant is the talk's, lambda s^2 / n"

    clauses = {
        "noise adds its variance over n times the degrees of freedom": ("what noise adds*", "the same over unit*"),
        "training with noise lowers the degrees of freedom": "share of the degrees of freedom*",
        "it does so at an equal fit": "F after training with noise*",
    }

    samples: int = whole(default=60, at_least=2)  # n
    width: int = whole(default=100, at_least=1)  # N
    penalty: float = real(default=0.01, above=0)  # lambda, of the training
    learning_rate: float = real(default=1.0, above=0)  # eta
    label_noise: float = real(default=0.5, above=0)  # s, of the training

    def experiment(self, noise: float, draws: int = 1000) -> Experiment:
        """Features trained with this noise in the labels."""
        penalties = tuple(self.penalty * factor for factor in FACTORS)
        probes = [
            label_noise_excess(penalty=penalties, half_width=HALF_WIDTHS, draws=draws),
            degrees_of_freedom(penalty=penalties),
            mean_field_energy,
        ]
        return Experiment(
            data=SingleIndex(n=self.samples, d=5, link=jnp.sin, label_noise=0.1),
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
        yield self._follows(quiet, 1.0)
        of_variance_one = quiet.label_noise_formula.isel(half_width=0, drop=True) * 3 / HALF_WIDTHS[0] ** 2
        yield identity("the same over unit vectors, less 1", quiet.label_noise_trace / of_variance_one - 1, 1e-8)
        fit = noisy.objective_value / quiet.objective_value
        yield equals("F after training with noise over F after training without", fit, 1)
        left = (noisy.degrees_of_freedom / quiet.degrees_of_freedom).isel(penalty=FACTORS.index(1.0), drop=True)
        yield at_least("share of the degrees of freedom that noise saves", 1 - left, 0.1)

    def control(self, lab):
        quiet = self._read(lab, 0.0)
        return self._follows(quiet, 3 * quiet.penalty)

    def _follows(self, read, constant):
        ratio = read.label_noise_excess / read.label_noise_formula / constant
        return equals("what noise adds to the objective, over the formula", ratio, 1, margin=0.01)

    def _read(self, lab, noise):
        read = lab.run(self.experiment, noise=noise, draws=lab.size.draws)
        symbols = {"penalty": "lambda", "half_width": "s"}
        return read.assign_coords({dim: (dim, read[dim].data, {"symbol": of}) for dim, of in symbols.items()})
