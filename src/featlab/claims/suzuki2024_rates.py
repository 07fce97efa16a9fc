r"""With the right first layer the risk falls with n where ridge regression, however tuned, learns nothing more.

K. Suzuki and T. Suzuki (2024), two examples. Inputs have variances $\lambda_j$ and coefficients variances
$\nu_j$. Ridge regression on $Wx$ with $W^\top W = \Sigma_\beta$ has a risk of order
$\sum_j \min\{\sigma^2/n, \lambda_j \nu_j\}$, ridge regression on $x$ one of order one at every penalty:

* *harmful*: $\lambda_j = \max(1/j, 1/n)$, $\nu_j = j^{-2}$, $d = n^3$; rates $n^{-2/3}$ and $n^0$;
* *misaligned*: $\lambda_j = 1/j$, $\nu_j = 1/j$ but $\nu_n = n$, $d = n^2$; rates $n^{-1/2}$ and $n^0$.

Rates are asymptotic and are measured at n from a thousand to a hundred thousand, where the risk is that of its
deterministic equivalent (`featlab.theory.ridge`), whose relative error falls as 1/n: the exponent over all n, and
the local one at the largest, which must be the theorem's within 3 %. These are one number for all seeds. At n of
some tens the same risks are simulated, exactly given the inputs, and join the equivalent within the margin for
values, 5 %. $W$ is the theorem's own, not learnt, with the Bayes-optimal penalty $n\lambda = \sigma^2$; the
penalty of ridge regression is the best that the equivalent finds. The control leaves $W$ at the identity.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, scales_as
from featlab.claims.suzuki2024_metric import Metric
from featlab.data import LinearRegression, power_law, spiked
from featlab.experiment import Experiment
from featlab.fields import function, real
from featlab.networks import TwoLayerLinear
from featlab.networks.linear import LinearLayers
from featlab.objectives import squared
from featlab.probes import at_end, ridge_risk
from featlab.theory import ridge

LARGE = (1_000, 3_200, 10_000, 32_000, 100_000)  # n, where rates are read off the spectra
AT_THE_LARGEST = 0.03  # how near the theorem's the local exponent must be there
KINDS = LEARNT, PLAIN = "W'W = Sigma_beta", "ridge"


class Aligned(TwoLayerLinear):
    r"""A diagonal first layer with $W^\top W = \mathrm{diag}(\nu)$."""

    metric: Callable = function("a function of j = 1, ..., d, such as power_law(2)", default=power_law(0.0))  # nu

    @classmethod
    def examples(cls) -> Any:
        return (cls(diagonal=True, metric=power_law(2.0)),)

    def init(self, key, space):
        params, space = super().init(key, space)
        j = jnp.arange(1, len(params.first) + 1, dtype=float)
        return LinearLayers(params.first + jnp.log(self.metric(j)) / 2, params.head), space


class Example(NamedTuple):
    """A sequence of problems, one for each n."""

    spectrum: Callable  # of n: the law of lambda_j
    target: Callable  # of n: the law of nu_j
    flat: Callable  # of n: 1 for every j, in the same words as the target, so that one program does for both
    growth: int  # d = n^growth
    rate: float  # of the risk with W'W = Sigma_beta
    rivals: tuple[float, ...]  # no gain; the other example's rate

    def directions(self, n: int):
        """Eigenvalues, variances of the coefficients and multiplicities, blocks ending where a law does."""
        j, times = ridge.index_blocks(n**self.growth, width=1e-2, breaks=(n - 1, n))
        return self.spectrum(n)(j), self.target(n)(j), times


EXAMPLES = {
    "harmful": Example(
        spectrum=lambda n: power_law(1.0, floor=1 / n),
        target=lambda n: power_law(2.0),
        flat=lambda n: power_law(0.0),
        growth=3,
        rate=-2 / 3,
        rivals=(0.0, -1 / 2),
    ),
    "misaligned": Example(
        spectrum=lambda n: power_law(1.0),
        target=lambda n: spiked(1.0, at=n, height=n),
        flat=lambda n: spiked(0.0, at=n, height=1.0),
        growth=2,
        rate=-1 / 2,
        rivals=(0.0, -2 / 3),
    ),
}


@functools.cache
def tuned(name: str, n: int, noise: float) -> float:
    """The best penalty of ridge regression on the inputs, for noise of this variance."""
    spectrum, target, times = EXAMPLES[name].directions(n)
    return ridge.best_penalty(spectrum, target, n, noise, times)


@functools.cache
def risk(name: str, kind: str, n: int, noise: float) -> float:
    """The equivalent's risk, with the first layer of this kind and its penalty."""
    spectrum, target, times = EXAMPLES[name].directions(n)
    metric = target if kind == LEARNT else np.ones_like(target)
    penalty = penalties(name, n, noise)[KINDS.index(kind)]
    return ridge.metric_risk(spectrum, target, metric, n, penalty, noise, times).total


def penalties(name: str, n: int, noise: float) -> tuple[float, float]:
    """That of either kind: the Bayes estimator's, and the best one."""
    return noise / n, tuned(name, n, noise)


class Rates(Claim):
    """The claim of this file."""

    title = "with the metric of the tasks the risk falls as n^(-2/3) and n^(-1/2), where that of tuned ridge stays"
    statement = (
        r"W^\top W = \Sigma_\beta: \ R \asymp \sum_j \min\{\tfrac{\sigma^2}{n}, \lambda_j \nu_j\} \asymp "
        r"n^{-2/3},\ n^{-1/2}; \qquad W = I: \ \min_\lambda R = \Omega(1)"
    )
    refuted_if = (
        "an exponent differs from the theorem's by more than its margin, or a simulated risk from the equivalent "
        "by more than 5 %"
    )
    reference = Metric.reference
    sizes = {
        "tiny": Size(seeds=3, harmful=(8,), misaligned=(16,)),
        "smoke": Size(seeds=16, harmful=(32,), misaligned=(32,)),
        "laptop": Size(seeds=96, harmful=(48,), misaligned=(64,)),
        "full": Size(seeds=96, harmful=(48, 64, 96), misaligned=(64, 128, 256)),
    }
    number_of_checks = 8
    minutes = 2.0  # d = n^3 is 110592 for the simulated example
    control_changes = "W = I, at its best penalty"

    label_noise: float = real(default=0.5, above=0)  # sigma

    def typical(self):
        return self._experiment("harmful", LEARNT, 32)

    def assumptions(self, experiment):
        n, d = experiment.data.n, experiment.data.d
        return [
            Assumption("n / d: far more directions than samples", n / d, "<< 1"),
            Assumption("1 / n: the equivalent's relative error is of this order", 1 / n, "<< 1"),
        ]

    def checks(self, lab):
        for name, example in EXAMPLES.items():
            yield self._rate(lab, name, LEARNT)
            risks = np.array([self._risk(name, LEARNT, n) for n in LARGE])
            local = np.diff(np.log(risks))[-1] / np.diff(np.log(LARGE))[-1]
            yield agrees(
                f"local exponent at the largest n, {name}", np.full(len(lab.seeds), local), example.rate,
                AT_THE_LARGEST,
            )  # fmt: skip
            yield self._large(lab, f"risk of tuned ridge in n, {name}", name, PLAIN, 0.0, (example.rate,))
            yield self._joins(lab, name)

    def control(self, lab):
        return self._rate(lab, "harmful", PLAIN)

    def perturbed(self) -> dict[str, Claim]:
        factors = {0.5: "half", 2.0: "twice"}
        return {
            f"label_noise, {word}": dataclasses.replace(self, label_noise=factor * self.label_noise)
            for factor, word in factors.items()
        }

    def _rate(self, lab, name, kind):
        example = EXAMPLES[name]
        return self._large(
            lab, f"risk with W'W = Sigma_beta in n, {name}", name, kind, example.rate, example.rivals
        )

    def _large(self, lab, label, name, kind, exponent, rivals):
        """The exponent over large n; the equivalent is the same number for every seed."""
        risks = np.array([[self._risk(name, kind, n)] * len(lab.seeds) for n in LARGE])
        return scales_as(label, LARGE, risks, exponent, rivals, symbols=("n", "R"))

    def _joins(self, lab, name):
        """Simulated risks over the equivalent's, for both first layers."""
        ratios, cells = [], []
        for n in getattr(lab.size, name):
            for i, kind in enumerate(KINDS):
                read = lab.endings(self._experiment(name, kind, int(n)))
                ratios.append(read["ridge_risk"][:, i] / self._risk(name, kind, int(n)))
                cells.append(f"{kind}, n = {n:g}")
        return agrees(f"simulated risk over the equivalent, {name}", np.array(ratios), 1.0, cells=tuple(cells))

    def _risk(self, name, kind, n):
        return risk(name, kind, n, self.label_noise**2)

    def _experiment(self, name, kind, n):
        example = EXAMPLES[name]
        spectrum, target = example.spectrum(n), example.target(n)
        return Experiment(
            data=LinearRegression(
                n=n, d=n**example.growth, spectrum=spectrum, target=target, label_noise=self.label_noise
            ),
            network=Aligned(diagonal=True, metric=target if kind == LEARNT else example.flat(n)),
            algorithm=GradientDescent(1.0),
            objective=squared,
            probes=[ridge_risk(penalty=penalties(name, n, self.label_noise**2)).on(at_end)],
            steps=0,
            precision=64,
        )
