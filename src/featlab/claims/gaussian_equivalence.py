r"""Random features learn as well, and as badly, as linear features with independent noise.

El Karoui (2010), Goldt et al. (2022), Hu and Lu (2023): as samples, dimension and width grow in proportion,
training and test errors of ridge regression on $\sigma(W_0 x)$ tend to those on $c_1 W_0 x + c_{>1} z$,
$z \sim N(0, I)$ independent, and to the limits of `featlab.theory.random_features`. After a large gradient
step the features are no longer of this kind: the control.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featlab.algorithms import GiantStep
from featlab.claims import _one_step as shared
from featlab.claims._claim import Claim, Size
from featlab.claims._judge import agrees
from featlab.fields import real
from featlab.probes import equivalent_errors, ridge_errors
from featlab.theory import one_step, random_features

WIDTHS = (0.4, 2.0)  # N / n: fewer and more features than samples


class Equivalence(Claim):
    """The claim of this file."""

    title = "random features have the errors of linear features with independent noise"
    statement = r"\sigma(W_0 x) \simeq c_1 W_0 x + c_{>1} z, \qquad z \sim N(0, I_N)"
    refuted_if = "a training or test error differs from that of the Gaussian features by more than 5 %"
    reference = """@article{hu2023universality,
  title   = {Universality Laws for High-Dimensional Learning with Random Features},
  author  = {Hu, Hong and Lu, Yue M.},
  journal = {IEEE Transactions on Information Theory},
  volume  = {69},
  number  = {3},
  year    = {2023}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(60,), teachers=(1,)),
        "smoke": Size(seeds=8, n=(300,), teachers=(2,)),
        "laptop": Size(seeds=32, n=(1000,), teachers=(3,)),
        "full": Size(seeds=64, n=(4000,), teachers=(3,)),
    }
    number_of_checks = 4
    minutes = 3.0
    control_changes = "the features are those after a step of size n^0.4"

    penalty: float = real(default=0.02, above=0)  # lambda
    dimensions: float = real(default=shared.DIMENSIONS, above=0)  # d / n

    def typical(self):
        return self._experiment(1000, "y = H1 + H2/sqrt 2", 0.4)

    def assumptions(self, experiment):
        return [shared.in_proportion(experiment), shared.centred_activation(experiment)]

    def checks(self, lab):
        (n,), (teachers,) = lab.size.n, lab.size.teachers
        cells = [(name, width) for name in list(shared.SETTINGS)[:teachers] for width in WIDTHS]
        reads = [lab.endings(self._experiment(n, name, width)) for name, width in cells]
        laws = [self._law(n, name, width) for name, width in cells]
        labels = tuple(f"{name}, N/n = {width:g}" for name, width in cells)
        for i, error in enumerate(("train", "test")):
            yield self._alike(error, reads, labels)
            ratios = [read[f"ridge_{error}_error"][:, 0] / law[i] for read, law in zip(reads, laws)]
            yield agrees(f"{error} error of random features, over its limit", np.array(ratios), 1.0, cells=labels)

    def control(self, lab):
        (n,) = lab.size.n
        name, width = next(iter(shared.SETTINGS)), WIDTHS[0]
        return self._alike("test", [lab.endings(self._experiment(n, name, width, steps=1))], (name,))

    def _alike(self, error, reads, labels):
        ratios = [read[f"ridge_{error}_error"] / read[f"equivalent_{error}_error"] for read in reads]
        name = f"{error} error of random features, over that of Gaussian ones"
        return agrees(name, np.array(ratios)[..., 0], 1.0, cells=labels)

    def _law(self, n, name, width):
        proportions = shared.proportions(self._experiment(n, name, width))
        activation, teacher = random_features.Activation.of(shared.STUDENT), shared.SETTINGS[name].teacher
        return one_step.errors_after(*proportions, self.penalty, activation, teacher, 0)

    def _experiment(self, n, name, width, steps=0):
        probes = [ridge_errors(penalty=(self.penalty,)), equivalent_errors(penalty=(self.penalty,))]
        step = GiantStep(alpha=0.4)
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": width}
        return shared.stated(n, shared.SETTINGS[name], step, probes, steps=steps, **sizes)
