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
F (within 5 %) with at least 10 % fewer degrees of freedom. The control takes the constant of the talk,
$\frac{\lambda s^2}{n}$ for $\frac{s^2}{3n}$.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import WassersteinFlow
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, exceeds, identity
from featlab.data import SingleIndex
from featlab.experiment import Experiment
from featlab.fields import real, whole
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
    reference = """@inproceedings{takakura2024mean,
  title     = {Mean-field Analysis on Two-layer Neural Networks from a Kernel Perspective},
  author    = {Takakura, Shokichi and Suzuki, Taiji},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""
    sizes = {
        "tiny": Size(seeds=3, draws=(200,)),
        "smoke": Size(seeds=4, draws=(2000,)),
        "laptop": Size(seeds=16, draws=(8000,)),
        "full": Size(seeds=64, draws=(20_000,)),
    }
    number_of_checks = 4
    minutes = 0.5
    control_changes = "the constant is the talk's, lambda s^2 / n"

    samples: int = whole(default=60, at_least=2)  # n
    width: int = whole(default=100, at_least=1)  # N
    penalty: float = real(default=0.01, above=0)  # lambda, of the training
    learning_rate: float = real(default=1.0, above=0)  # eta
    label_noise: float = real(default=0.5, above=0)  # s, of the training

    def typical(self):
        return self._experiment(self.label_noise)

    def assumptions(self, experiment):
        data, width = experiment.data, experiment.network.vectors()
        return [
            Assumption("1 / sqrt N: many neurons", width**-0.5, "<< 1"),
            Assumption("n / d: more samples than dimensions", data.n / data.d, ">= 1"),
        ]

    def checks(self, lab):
        (draws,) = lab.size.draws
        quiet, noisy = (self._read(lab, noise, draws) for noise in (0.0, self.label_noise))
        yield self._follows(quiet, np.ones(len(FACTORS)))
        exact = quiet["label_noise_formula"][..., 0] * 3 / HALF_WIDTHS[0] ** 2
        residual = quiet["label_noise_trace"] / exact - 1
        yield identity("the same over unit vectors, less 1", residual.T, 1e-8, cells=self._penalty_cells)
        yield agrees("F after training with noise over F after training without",
                     noisy["objective_value"] / quiet["objective_value"], 1.0)  # fmt: skip
        left = noisy["degrees_of_freedom"] / quiet["degrees_of_freedom"]
        yield exceeds(
            "share of the degrees of freedom that noise saves", 1 - left[:, FACTORS.index(1.0)], 0.0, 0.1
        )

    def control(self, lab):
        (draws,) = lab.size.draws
        return self._follows(self._read(lab, 0.0, draws), 3 * np.array(self._penalties))

    @property
    def _penalties(self):
        return tuple(self.penalty * factor for factor in FACTORS)

    @property
    def _penalty_cells(self):
        return tuple(f"lambda = {one:g}" for one in self._penalties)

    def _follows(self, read, factors):
        ratios = read["label_noise_excess"] / read["label_noise_formula"] / factors[:, None]  # (seed, penalty, s)
        cells = tuple(f"{one}, s = {half:g}" for one in self._penalty_cells for half in HALF_WIDTHS)
        name = "what noise adds to the objective, over the formula"
        return agrees(name, ratios.reshape(len(ratios), -1).T, 1.0, margin=0.01, cells=cells)

    def _read(self, lab, noise, draws):
        return lab.endings(self._experiment(noise, int(draws)), remember=(noise, draws))

    def _experiment(self, noise, draws=1000):
        penalties = self._penalties
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
