r"""Random features never learn what is not linear; one large gradient step does.

Ba, Erdogdu, Suzuki, Wang, Wu and Yang (2022), with $n \asymp d$. Ridge regression on random features has a
risk of at least $\|P_{>1} f_\star\|^2 = c_\star^2 - c_{\star 1}^2$, the part of the teacher beyond its best
line, whatever its penalty. A step of size $O(1)$ on the first layer
changes the features but stays above that bound, and loses to linear regression on all the data. A step of
order $\sqrt n$ goes below it, once n/d is large enough: it beats every linear predictor and every
such kernel.

The risk is the test error less the noise of the labels (none here). Every method gets its best penalty of a
whole path, chosen on the test error itself.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import GiantStep
from featlab.claims import _one_step as shared
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import exceeds
from featlab.fields import real
from featlab.probes import linear_errors, ridge_errors

PENALTIES = tuple(float(x) for x in np.logspace(-5, 1, 19))


def steep_tanh(z):
    r"""$\tanh(2z)$."""
    return jnp.tanh(2 * z)


TEACHER = shared.Setting(steep_tanh, 0.0)


class KernelGap(Claim):
    """The claim of this file."""

    title = "random features never beat the best linear predictor; one large gradient step does"
    statement = (
        r"\inf_\lambda \mathcal{R}(F_0) \ge \|P_{>1} f_\star\|^2 - o(1), \qquad "
        r"\eta = \Theta(\sqrt n):\ \mathcal{R}(F) < \|P_{>1} f_\star\|^2"
    )
    refuted_if = "random features or a step of order one go below the bound, or a step of order sqrt n does not"
    reference = """@inproceedings{ba2022high,
  title     = {High-dimensional Asymptotics of Feature Learning: How One Gradient Step Improves the Representation},
  author    = {Ba, Jimmy and Erdogdu, Murat A. and Suzuki, Taiji and Wang, Zhichao and Wu, Denny and Yang, Greg},
  booktitle = {Advances in Neural Information Processing Systems},
  year      = {2022}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, d=(20,)),
        "smoke": Size(seeds=6, d=(100,)),
        "laptop": Size(seeds=12, d=(200,)),
        "full": Size(seeds=32, d=(1000,)),
    }
    number_of_checks = 5
    minutes = 2.0
    control_changes = "the step has size 1 instead of sqrt n"

    samples: float = real(default=8.0, above=1)  # n / d: the theorem needs it above a constant
    neurons: float = real(default=0.2, above=0)  # N / n

    def typical(self):
        return self._experiment(200, GiantStep(alpha=0.5))

    def assumptions(self, experiment):
        return [
            shared.in_proportion(experiment),
            shared.centred_activation(experiment),
            Assumption(
                "n / d: enough samples to learn the direction", experiment.data.n / experiment.data.d, ">= 1"
            ),
        ]

    def checks(self, lab):
        (d,) = lab.size.d
        bound = TEACHER.teacher.nonlinear
        linear = self._best(lab, self._experiment(d, GiantStep(eta=1.0)), "linear_test_error")
        features = self._best(lab, self._experiment(d, GiantStep(eta=0.0)))
        small = self._best(lab, self._experiment(d, GiantStep(eta=1.0)))
        yield exceeds("risk of random features over the nonlinear part of the teacher", features / bound, 1.0)
        yield exceeds("risk after a step of size 1 over the nonlinear part of the teacher", small / bound, 1.0)
        yield exceeds("risk after a step of size 1, less that of linear regression on all data", small, linear)
        large = self._best(lab, self._experiment(d, GiantStep(alpha=0.5)))
        yield self._below(large, bound)
        yield exceeds(
            "risk of linear regression on all data, less that after a step of size sqrt n", linear, large
        )

    def control(self, lab):
        (d,) = lab.size.d
        return self._below(self._best(lab, self._experiment(d, GiantStep(eta=1.0))), TEACHER.teacher.nonlinear)

    def _below(self, risk, bound):
        name = "nonlinear part of the teacher over the risk after a step of size sqrt n"
        return exceeds(name, bound / risk, 1.0)

    def _best(self, lab, experiment, variable="ridge_test_error"):
        return lab.endings(experiment, remember=experiment.algorithm.size(experiment.data.n))[variable].min(axis=1)

    def _experiment(self, d, algorithm):
        n = round(self.samples * d)
        probes = [ridge_errors(penalty=PENALTIES), linear_errors(penalty=PENALTIES)]
        return shared.stated(
            n, TEACHER, algorithm, probes, activation=jnp.tanh, dimensions=d / n, neurons=self.neurons
        )
