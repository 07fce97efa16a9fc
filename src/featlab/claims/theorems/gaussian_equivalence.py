r"""Random features learn as well, and as badly, as linear features with independent noise.

El Karoui (2010), Goldt et al. (2022), Hu and Lu (2023): as samples, dimension and width grow in proportion,
training and test errors of ridge regression on $\sigma(W_0 x)$ tend to those on $c_1 W_0 x + c_{>1} z$, $z \sim
N(0, I)$ independent, and to the limits of `featlab.theory.random_features`. After a large gradient step of size
$n^\alpha$ they are Gaussian features with spikes (Moniri et al. 2023): the same $c_1 W_0 x + c_{>1} z$ and
$\sum_{k \leq \ell} c_1^k c_k \eta^k \langle \beta, x\rangle^k a^{\circ k}$. Without the spikes they are not: the
control. Errors are those of a closed form: nothing is trained.
"""

from __future__ import annotations

from typing import Any

import xarray as xr

from featlab.algorithms import GiantStep
from featlab.claims import Claim, Size, equals, not_judged
from featlab.claims.settings import one_step as shared
from featlab.core.validation import real
from featlab.probes import equivalent_errors, ridge_errors
from featlab.theory import one_step

TEACHERS = tuple(shared.SETTINGS)
RATIOS = (0.4, 2.0)  # N / n: fewer and more features than samples
EXPONENTS = (0.15, 0.3)  # of steps: one and two spikes


class Equivalence(Claim):
    """The claim of this file."""

    title = "random features have the errors of linear features with independent noise"
    statement = (
        r"\sigma(W_0 x) \simeq c_1 W_0 x + c_{>1} z, \qquad \sigma(W x) \simeq c_1 W_0 x + c_{>1} z + "
        r"\sum_{k=1}^{\ell} c_1^k c_k \eta^k \langle \beta, x \rangle^k a^{\circ k}, \qquad z \sim N(0, I_N)"
    )
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
        "laptop": Size(seeds=48, n=1000, teachers=3),
        "full": Size(seeds=64, n=4000, teachers=3),
    }
    minutes = 5.0  # the training error scatters by 11 % at N = 2 n: 38 seeds or more are needed
    control_changes = "the Gaussian features have no spikes"

    clauses = {
        "training errors of both kinds of features agree": "train error of random features, over that*",
        "test errors of both kinds agree": "test error of random features, over that*",
        "both errors tend to known limits": "*, over its limit",
        "the same for other convex losses": not_judged("for the squared loss the limits have a formula"),
        "after a step, training errors are those of Gaussian features with spikes": "train error after a step*",
        "after a step, test errors are, too": "test error after a step*",
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
            yield self._alike(f"{error} error of random features, over that of Gaussian ones", error, runs)
            yield equals(
                f"{error} error of random features, over its limit", runs[f"ridge_{error}_error"] / limit, 1
            )

        after = self._after(lab, TEACHERS[: lab.size.teachers], one_step.spikes_at)
        for error in ("train", "test"):
            yield self._with_spikes(error, after)

    def control(self, lab):
        return self._with_spikes("test", self._after(lab, TEACHERS[:1], lambda alpha: 0))

    def _alike(self, name, error, runs):
        return equals(name, runs[f"ridge_{error}_error"] / runs[f"equivalent_{error}_error"], 1)

    def _with_spikes(self, error, runs):
        return self._alike(f"{error} error after a step, over that of Gaussian features with spikes", error, runs)

    def _runs(self, lab, teachers, ratios):
        runs = lab.run(self.experiment, n=lab.size.n, teacher=teachers, ratio=ratios)
        return shared.with_symbols(runs.sel(penalty=self.penalty), ratio="N/n")

    def _after(self, lab, teachers, spikes):
        """Errors after steps, and those of Gaussian features with as many spikes as are said of each."""
        found = lab.run(
            self.experiment, n=lab.size.n, teacher=teachers, ratio=RATIOS[0], alpha=EXPONENTS, spikes=spikes
        )
        return found.sel(penalty=self.penalty)

    def _limits(self, n, teacher, ratio):
        return shared.limits(self.experiment(n, teacher, ratio), teacher, self.penalty)

    def experiment(self, n, teacher, ratio, alpha=None, spikes=0):
        r"""Ridge regression on the features and on Gaussian ones, at the start or after a step $n^\alpha$."""
        kept: dict[str, Any] = {"penalty": (self.penalty,), "count": 4000}
        probes = [ridge_errors(**kept), equivalent_errors(spikes=spikes, **kept)]
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": ratio, "steps": int(alpha is not None)}
        step = GiantStep(eta=0.0) if alpha is None else GiantStep(alpha=alpha)
        return shared.stated(n, shared.SETTINGS[teacher], step, probes, **sizes)
