r"""Random features learn as well, and as badly, as linear features with independent noise.

El Karoui (2010), Goldt et al. (2022), Hu and Lu (2023): as samples, dimension and width grow in proportion,
training and test errors of ridge regression on $\sigma(W_0 x)$ tend to those on $c_1 W_0 x + c_{>1} z$,
$z \sim N(0, I)$ independent, and to the limits of `featlab.theory.random_features`. After a large gradient
step the features are no longer of this kind: the control. Errors are those of a closed form: nothing is trained.
"""

from __future__ import annotations

from typing import Any

import xarray as xr

from featlab.algorithms import GiantStep
from featlab.claims import Claim, Size, equals, not_judged
from featlab.claims.settings import one_step as shared
from featlab.core.validation import real
from featlab.probes import equivalent_errors, ridge_errors

TEACHERS = tuple(shared.SETTINGS)
RATIOS = (0.4, 2.0)  # N / n: fewer and more features than samples


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
        "tiny": Size(seeds=3, n=60, teachers=1),
        "smoke": Size(seeds=8, n=300, teachers=2),
        "laptop": Size(seeds=32, n=1000, teachers=3),
        "full": Size(seeds=64, n=4000, teachers=3),
    }
    minutes = 3.0
    control_changes = "the features are those after a step of size n^0.4"

    clauses = {
        "training errors of both kinds of features agree": "train error of random features, over that*",
        "test errors of both kinds agree": "test error of random features, over that*",
        "both errors tend to known limits": "*, over its limit",
        "the same for other convex losses": not_judged("for the squared loss the limits have a formula"),
        "after a step, features are Gaussian ones with spikes": not_judged(
            "features after a step are the control here; the claims moniri2023_* are about spikes"
        ),
    }

    penalty: float = real(default=0.02, above=0)  # lambda
    dimensions: float = real(default=shared.DIMENSIONS, above=0)  # d / n

    def typical(self):
        return self.experiment(1000, "y = H1 + H2/sqrt 2", 0.4)

    def assumptions(self, experiment):
        return [shared.in_proportion(experiment), shared.centred_activation(experiment)]

    def checks(self, lab):
        runs = self._runs(lab, TEACHERS[: lab.size.teachers], RATIOS)
        limits = xr.apply_ufunc(
            lambda teacher, ratio: self._limits(lab.size.n, teacher, ratio),
            runs.teacher,
            runs.ratio,
            vectorize=True,
            output_core_dims=[[], []],
        )
        for error, limit in zip(("train", "test"), limits):
            yield self._alike(error, runs)
            yield equals(
                f"{error} error of random features, over its limit", runs[f"ridge_{error}_error"] / limit, 1
            )

    def control(self, lab):
        return self._alike("test", self._runs(lab, TEACHERS[:1], RATIOS[:1], steps=1))

    def _alike(self, error, runs):
        over = runs[f"ridge_{error}_error"] / runs[f"equivalent_{error}_error"]
        return equals(f"{error} error of random features, over that of Gaussian ones", over, 1)

    def _runs(self, lab, teachers, ratios, steps=0):
        runs = lab.run(self.experiment, n=lab.size.n, teacher=teachers, ratio=ratios, steps=steps)
        return shared.with_symbols(runs.sel(penalty=self.penalty), ratio="N/n")

    def _limits(self, n, teacher, ratio):
        return shared.limits(self.experiment(n, teacher, ratio), teacher, self.penalty)

    def experiment(self, n, teacher, ratio, steps=0):
        """Ridge regression on the features and on Gaussian ones, before a step or after it."""
        probes = [ridge_errors(penalty=(self.penalty,)), equivalent_errors(penalty=(self.penalty,))]
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": ratio}
        return shared.stated(n, shared.SETTINGS[teacher], GiantStep(alpha=0.4), probes, steps=steps, **sizes)
