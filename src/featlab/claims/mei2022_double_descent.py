r"""The test error of random features peaks where there are as many features as samples, and falls again beyond.

Mei and Montanari (2022): as samples, dimension and width grow in proportion, the test error of ridge
regression on random features tends to a known function of $N/n$, $d/n$ and $\lambda$, which for small
$\lambda$ has a peak at $N = n$; here in the form of `featlab.theory.random_features`. The measured error is
compared with that function away from the peak, and the peak with its place. A linear activation has another
curve: the control.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featlab.algorithms import GiantStep
from featlab.claims import _one_step as shared
from featlab.claims._claim import Claim, Size
from featlab.claims._judge import agrees, exceeds
from featlab.fields import real
from featlab.networks import identity
from featlab.probes import ridge_errors
from featlab.theory import one_step, random_features

TEACHER = "y = H1 + noise"
BESIDE = (0.1, 0.3, 0.6, 0.9, 1.1, 1.5, 3.0, 10.0)  # N / n


class DoubleDescent(Claim):
    """The claim of this file."""

    title = "the test error of random features peaks at as many features as samples, along the theory's curve"
    statement = (
        r"\mathcal{L}_{te} \to -\partial_\lambda Q_0 \left(\frac{\phi}{\psi m_1}\right)^2, \qquad "
        r"Q_0 = \tfrac\psi\phi [c_{\star 1}^2 m_2 + (c_\star^2 - c_{\star 1}^2 + \sigma_\varepsilon^2) m_1]"
    )
    refuted_if = (
        "the test error away from the peak differs from the curve by more than 5 %, or the peak is elsewhere"
    )
    reference = """@article{mei2022generalization,
  title   = {The Generalization Error of Random Features Regression: Precise Asymptotics and the Double Descent Curve},
  author  = {Mei, Song and Montanari, Andrea},
  journal = {Communications on Pure and Applied Mathematics},
  volume  = {75},
  number  = {4},
  year    = {2022}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, n=(120,), width=(0.9, 1.1)),
        "smoke": Size(seeds=8, n=(400,), width=(0.3, 0.9, 1.1, 3.0)),
        "laptop": Size(seeds=40, n=(800,), width=BESIDE),
        "full": Size(seeds=50, n=(1600,), width=BESIDE),
    }
    number_of_checks = 3
    minutes = 3.0  # a program for every width
    control_changes = "the activation is linear"

    penalty: float = real(default=0.01, above=0)  # lambda
    small_penalty: float = real(default=0.001, above=0)
    dimensions: float = real(default=shared.DIMENSIONS, above=0)  # d / n

    def typical(self):
        return self._experiment(500, 1.0)

    def assumptions(self, experiment):
        return [shared.in_proportion(experiment), shared.centred_activation(experiment)]

    def checks(self, lab):
        (n,), widths = lab.size.n, lab.size.width
        reads = np.array([self._errors(lab, n, width) for width in widths])  # (width, seed, penalty)
        peak = self._errors(lab, n, 1.0)
        for i, penalty in enumerate(self._penalties):
            yield self._follows(n, penalty, reads[..., i], widths)
        between = np.stack([reads[widths.index(width), :, 0] for width in (0.9, 1.1)])
        yield exceeds(
            "test error at N = n, less that at N/n = 0.9 and 1.1", np.stack([peak[:, 0]] * 2), between,
            cells=("N/n = 0.9", "N/n = 1.1"),
        )  # fmt: skip

    def control(self, lab):
        (n,) = lab.size.n
        reads = [self._errors(lab, n, width, activation=identity)[:, 0] for width in (0.6, 1.5)]
        return self._follows(n, self._penalties[0], np.array(reads), (0.6, 1.5))

    @property
    def _penalties(self):
        return self.small_penalty, self.penalty

    def _follows(self, n, penalty, errors, widths):
        ratios = [one / self._law(n, width, penalty) for one, width in zip(errors, widths)]
        cells = tuple(f"N/n = {width:g}" for width in widths)
        return agrees(f"test error over the curve, lambda = {penalty:g}", np.array(ratios), 1.0, cells=cells)

    def _errors(self, lab, n, width, **changed):
        return lab.endings(self._experiment(n, width, **changed))["ridge_test_error"]

    def _law(self, n, width, penalty):
        proportions = shared.proportions(self._experiment(n, width))
        activation, teacher = random_features.Activation.of(shared.STUDENT), shared.SETTINGS[TEACHER].teacher
        return one_step.errors_after(*proportions, penalty, activation, teacher, 0)[1]

    def _experiment(self, n, width, **changed):
        probe = ridge_errors(penalty=self._penalties, count=4000)
        step = GiantStep(eta=0.0)
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": width}
        return shared.stated(n, shared.SETTINGS[TEACHER], step, [probe], steps=0, **sizes, **changed)
