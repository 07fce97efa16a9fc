r"""The test error of random features peaks where there are as many features as samples, and falls again beyond.

Mei and Montanari (2022): as samples, dimension and width grow in proportion, the test error of ridge regression
on random features tends to a known function of $N/n$, $d/n$ and $\lambda$, which for small $\lambda$ has a peak
at $N = n$; here in the form of `featlab.theory.random_features`. The measured error is compared with that
function away from the peak and at it, and the peak with its place. A linear activation has another curve: the
control. Errors are those of a closed form: nothing is trained.
"""

from __future__ import annotations

from typing import Any

import xarray as xr

from featlab.algorithms import GiantStep
from featlab.claims import Claim, Size, at_least, equals, not_judged
from featlab.claims.settings import one_step as shared
from featlab.core.validation import real
from featlab.networks import identity
from featlab.probes import ridge_errors

TEACHER = "y = H1 + noise"
BESIDE = (0.1, 0.3, 0.6, 0.9, 1.1, 1.5, 3.0, 10.0)  # N / n


class DoubleDescent(Claim):
    """The claim of this file."""

    title = "the test error of random features peaks at as many features as samples, along the theory's curve"
    statement = (
        r"\mathcal{L}_{te} \to -\partial_\lambda Q_0 \left(\frac{\phi}{\psi m_1}\right)^2, \qquad "
        r"Q_0 = \tfrac\psi\phi [c_{\star 1}^2 m_2 + (c_\star^2 - c_{\star 1}^2 + \sigma_\varepsilon^2) m_1]"
    )
    refuted_if = "the test error differs from the curve by more than 5 %, or the peak is elsewhere"
    reference = """@article{mei2022generalization,
  title   = {The Generalization Error of Random Features Regression: Precise Asymptotics and the Double Descent Curve},
  author  = {Mei, Song and Montanari, Andrea},
  journal = {Communications on Pure and Applied Mathematics},
  volume  = {75},
  number  = {4},
  year    = {2022}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, n=120, ratio=(0.9, 1.1)),
        "smoke": Size(seeds=8, n=400, ratio=(0.3, 0.9, 1.1, 3.0)),
        "laptop": Size(seeds=40, n=800, ratio=BESIDE),
        "full": Size(seeds=50, n=1600, ratio=BESIDE),
    }
    minutes = 3.0  # a program for every width
    control_changes = "the activation is linear"

    clauses = {
        "the test error tends to a known function of N/n, d/n and lambda": "test error over the curve*",
        "for small lambda it has a peak at N = n": "test error at N = n, less*",
        "at the peak its height is the curve's": "test error at N = n, over the curve",
        "the peak grows without bound as lambda falls to 0": not_judged(
            "n is infinite first: at a finite n the peak stops where lambda is below the least eigenvalue; its "
            "height is judged at two penalties"
        ),
        "bias and variance, one by one": not_judged("only their sum, the test error, is measured"),
    }

    penalty: float = real(default=0.01, above=0)  # lambda
    small_penalty: float = real(default=0.001, above=0)
    dimensions: float = real(default=shared.DIMENSIONS, above=0)  # d / n

    def typical(self):
        return self.experiment(500, 1.0)

    def assumptions(self, experiment):
        return [shared.in_proportion(experiment), shared.centred_activation(experiment)]

    def checks(self, lab):
        n = lab.size.n
        errors = self._errors(lab, n, ratio=lab.size.ratio)
        for penalty in self._penalties:
            yield self._follows(n, penalty, errors)
        peak = self._errors(lab, n, ratio=1.0).sel(penalty=self.small_penalty)
        beside = errors.sel(penalty=self.small_penalty, ratio=[0.9, 1.1])
        yield at_least("test error at N = n, less that at N/n = 0.9 and 1.1", peak - beside, 0)
        heights = self._errors(lab, n, ratio=1.0)
        curve = xr.apply_ufunc(lambda penalty: self._law(n, 1.0, penalty), heights.penalty, vectorize=True)
        yield equals("test error at N = n, over the curve", heights / curve, 1)

    def control(self, lab):
        errors = self._errors(lab, lab.size.n, ratio=[0.6, 1.5], activation=identity)
        return self._follows(lab.size.n, self.small_penalty, errors)

    @property
    def _penalties(self):
        return self.small_penalty, self.penalty

    def _follows(self, n, penalty, errors):
        curve = xr.apply_ufunc(lambda ratio: self._law(n, ratio, penalty), errors.ratio, vectorize=True)
        return equals(f"test error over the curve, lambda = {penalty:g}", errors.sel(penalty=penalty) / curve, 1)

    def _errors(self, lab, n, **cells):
        runs = lab.run(self.experiment, n=n, **cells)
        return (shared.with_symbols(runs, ratio="N/n") if "ratio" in runs.dims else runs).ridge_test_error

    def _law(self, n, ratio, penalty):
        return shared.limits(self.experiment(n, ratio), TEACHER, penalty)[1]

    def experiment(self, n, ratio, activation=shared.STUDENT):
        """Ridge regression on random features, N/n being the ratio."""
        probe = ridge_errors(penalty=self._penalties, count=4000)
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": ratio}
        step = GiantStep(eta=0.0)
        return shared.stated(n, shared.SETTINGS[TEACHER], step, [probe], steps=0, activation=activation, **sizes)
