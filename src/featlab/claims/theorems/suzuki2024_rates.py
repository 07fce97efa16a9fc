r"""With the right first layer the risk falls with n where ridge regression, however tuned, learns nothing more.

K. Suzuki and T. Suzuki (2024), two examples. Inputs have variances $\lambda_j$ and coefficients variances
$\nu_j$. Ridge regression on $Wx$ with $W^\top W = \Sigma_\beta$ has a risk of order
$\sum_j \min\{\sigma^2/n, \lambda_j \nu_j\}$, ridge regression on $x$ one of order one at every penalty:

* *harmful*: $\lambda_j = \max(1/j, 1/n)$, $\nu_j = j^{-2}$, $d = n^3$; rates $n^{-2/3}$ and $n^0$;
* *misaligned*: $\lambda_j = 1/j$, $\nu_j = 1/j$ but $\nu_n = n$, $d = n^2$; rates $n^{-1/2}$ and $n^0$.

Rates are asymptotic and are measured at n from a thousand to a hundred thousand, where the risk is that of its
deterministic equivalent (`featlab.theory.ridge`), whose relative error falls as 1/n: the exponent over all n,
and the local one at the largest, which must be the theorem's within 3 %. These are one number for all seeds. At
n of some tens the same risks are simulated, exactly given the inputs, and join the equivalent within the margin
for values, 5 %. There $W$ is the theorem's own, with the Bayes-optimal penalty $n\lambda = \sigma^2$; the
penalty of ridge regression is the best that the equivalent finds.

A learnt W, in the harmful example: $W = \mathrm{diag}(j^{-p})$ with p and the penalty at the least criterion of
20n tasks (`settings/learnt_decay.py`). Its risk must be at most twice that with $W^\top W = \Sigma_\beta$ at
every n, 2 being what the criterion of the best member can lose (`suzuki2024_dof_risk`), so that it has the
theorem's rate too. In the control p is not learnt, but 0. The family is needed: with all $d = n^3$ entries of a
diagonal W free the criterion is fitted by what the inputs happened to show, and the risk of the learnt W tends
to that of predicting 0.
"""

from __future__ import annotations

import dataclasses
import functools

import numpy as np
import xarray as xr

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_most, equals, not_judged, scales_as
from featlab.claims.settings.learnt_decay import over_the_best
from featlab.claims.settings.metric import EXAMPLES, REFERENCE
from featlab.core.validation import real
from featlab.data import LinearRegression
from featlab.experiment import Experiment
from featlab.networks import AlignedLinear
from featlab.objectives import squared
from featlab.probes import at_end, ridge_risk
from featlab.theory import ridge

LARGE = (1_000, 3_200, 10_000, 32_000, 100_000)  # n, where rates are read off the spectra
LOST = 2.0  # the factor that the criterion of the best member can lose
AT_THE_LARGEST = 0.03  # how near the theorem's the local exponent must be there
KINDS = LEARNT, PLAIN = "W'W = Sigma_beta", "ridge"


@functools.cache
def best_penalty(example: str, kind: str, n: int, noise: float) -> float:
    """The Bayes estimator's under W'W = Sigma_beta, and the best one of ridge regression on the inputs."""
    if kind == LEARNT:
        return noise / n
    spectrum, target, times = EXAMPLES[example].directions(n)
    return ridge.best_penalty(spectrum, target, n, noise, times)


@functools.cache
def equivalent(example: str, kind: str, n: int, noise: float) -> float:
    """The deterministic equivalent of the risk, with the first layer of this kind and its penalty."""
    spectrum, target, times = EXAMPLES[example].directions(n)
    metric = target if kind == LEARNT else np.ones_like(target)
    penalty = best_penalty(example, kind, n, noise)
    return ridge.metric_risk(spectrum, target, metric, n, penalty, noise, times).total


class Rates(Claim):
    """The claim of this file."""

    title = "with the metric of the tasks the risk falls as n^(-2/3) and n^(-1/2), where that of tuned ridge stays"
    statement = (
        r"W^\top W = \Sigma_\beta: \ R \asymp \sum_j \min\{\tfrac{\sigma^2}{n}, \lambda_j \nu_j\} \asymp "
        r"n^{-2/3},\ n^{-1/2}; \qquad W = I: \ \min_\lambda R = \Omega(1)"
    )
    refuted_if = (
        "an exponent differs from the theorem's by more than its margin, a simulated risk from the equivalent by "
        "more than 5 %, or a learnt W has more than twice the risk of the theorem's"
    )
    reference = REFERENCE
    sizes = {
        "tiny": Size(seeds=3, harmful=(8,), misaligned=(16,), learnt=(4,)),
        "smoke": Size(seeds=16, harmful=(32,), misaligned=(32,), learnt=(8, 16)),
        "laptop": Size(seeds=96, harmful=(48,), misaligned=(64,), learnt=(8, 16, 24)),
        "full": Size(seeds=96, harmful=(48, 64, 96), misaligned=(64, 128, 256), learnt=(8, 16, 24, 32)),
    }
    minutes = 2.0  # d = n^3 is 110592 for the simulated example
    control_changes = "the decay of W is not learnt: W = I, the penalty at the least criterion"
    clauses = {
        "under W'W = Sigma_beta the risk is of order sum_j min{s^2/n, lambda_j nu_j}: n^(-2/3), n^(-1/2)": (
            "risk with W'W = Sigma_beta in n*", "local exponent at the largest n*",
        ),
        "ridge regression has a risk of order one at every penalty": "risk of tuned ridge in n*",
        "the equivalent, off which the rates are read, is the risk": "simulated risk over the equivalent*",
        "a first layer learnt by the criterion has that risk, up to a constant": "risk with a learnt decay*",
        "one that is learnt over all W, or all diagonal W": not_judged(
            "false in these examples: Adam over all diagonal W, 200 steps on 50n tasks, came to risks of 1.05 and "
            "1.01 at n = 8 and 16 (harmful), 1.24 and 1.05 at 16 and 32 (misaligned), where Bayes has .15, .08, "
            ".30 and .19; stopped after 60 steps, on 5n tasks, it had .53, .75, .75 and .53 (3 seeds)"
        ),
    }  # fmt: skip

    label_noise: float = real(default=0.5, above=0)  # sigma

    def experiment(self, example, kind, n):
        problem = EXAMPLES[example]
        metric = problem.target(n) if kind == LEARNT else problem.flat(n)
        penalty = best_penalty(example, kind, n, self.label_noise**2)
        return Experiment(
            data=LinearRegression(
                n=n, d=n**problem.growth, spectrum=problem.spectrum(n), target=problem.target(n),
                label_noise=self.label_noise,
            ),
            network=AlignedLinear(diagonal=True, metric=metric),
            algorithm=GradientDescent(1.0),
            objective=squared,
            probes=[ridge_risk(penalty=(penalty,)).on(at_end)],
            steps=0,
            precision=64,
        )  # fmt: skip

    def typical(self):
        return self.experiment("harmful", LEARNT, 32)

    def assumptions(self, experiment):
        n, d = experiment.data.n, experiment.data.d
        return [
            Assumption("n / d: far more directions than samples", n / d, "<< 1"),
            Assumption("1 / n: the equivalent's relative error is of this order", 1 / n, "<< 1"),
        ]

    def checks(self, lab):
        for example, problem in EXAMPLES.items():
            yield self._rate(example)
            before, last = self._equivalent(example, [LEARNT], LARGE[-2:]).values[0]
            local = xr.DataArray(np.log(last / before) / np.log(LARGE[-1] / LARGE[-2]))
            yield equals(f"local exponent at the largest n, {example}", local, problem.rate, AT_THE_LARGEST)
            plain = self._equivalent(example, [PLAIN], LARGE).squeeze(drop=True)
            name = f"risk of tuned ridge in n, {example}"
            yield scales_as(name, plain, "n", 0.0, (problem.rate,), symbols=("n", "R"))
            yield self._joins(lab, example)

        yield self._learnt(lab)

    def control(self, lab):
        return self._learnt(lab, learnt=False)

    def _learnt(self, lab, learnt=True):
        known = {"example": "harmful", "noise": self.label_noise**2, "learnt": learnt}
        read = lab.measure(over_the_best, n=lab.size.learnt, **known)
        return at_most("risk with a learnt decay over that with W'W = Sigma_beta, harmful", read.ratio, LOST)

    def perturbed(self) -> dict[str, Claim]:
        return {
            f"label_noise, {word}": dataclasses.replace(self, label_noise=factor * self.label_noise)
            for factor, word in {0.5: "half", 2.0: "twice"}.items()
        }

    def _rate(self, example):
        problem = EXAMPLES[example]
        risks = self._equivalent(example, [LEARNT], LARGE).squeeze(drop=True)
        name = f"risk with W'W = Sigma_beta in n, {example}"
        return scales_as(name, risks, "n", problem.rate, problem.rivals, symbols=("n", "R"))

    def _joins(self, lab, example):
        """Simulated risks over the equivalent's, for both first layers; each has a penalty of its own."""
        sizes = getattr(lab.size, example)
        runs = lab.run(self.experiment, example=example, kind=KINDS, n=sizes)
        ratios = runs.ridge_risk.mean("penalty") / self._equivalent(example, KINDS, sizes)
        return equals(f"simulated risk over the equivalent, {example}", ratios, 1)

    def _equivalent(self, example, kinds, sizes):
        """By kind and n: a formula's values, the same for every seed."""
        values = [[equivalent(example, kind, n, self.label_noise**2) for n in sizes] for kind in kinds]
        return xr.DataArray(values, {"kind": list(kinds), "n": list(sizes)}, ("kind", "n"))
