r"""A learnt metric beats ridge regression where the tasks' covariance decays, and loses where it does not.

K. Suzuki and T. Suzuki (2024), their experiment: $d = 1000$, $\mu_j(\Sigma_X) = 1/j$ and $\Sigma_\beta =
\mathrm{diag}(j^{-a})$. Compared, by the exact error on fresh inputs for a new task:

* ridge regression on the inputs, with the best penalty on a grid (the best for the very error that is
  compared);
* the learnt metric: descent (Adam on the logarithms) on the criterion of `ProfileRidge` over diagonal $W$ with
  $|\log w_j| \leq 5$, on the labels of many tasks, $\sigma'^2 = 1.2\, \sigma^2 (1 + \sqrt{n/m})^2$, just
  beyond the edge from which on noise is not fitted. The bound is needed: the least criterion is at infinite
  $w_j$;
* the Bayes estimator: $W^\top W = \Sigma_\beta$ and $n\lambda = \sigma^2$, which nothing can beat.

The theorem's bound for the learnt metric, of the order of $\sum_j \min\{\sigma'^2/n, j^{-1-a}\}$, falls with
$a$ towards $\sigma'^2/n$, while ridge regression keeps paying for all directions. Judged: for every $a \geq 2$
the learnt metric has a smaller risk than ridge regression, and one below that sum itself (with constant 1,
since on the training inputs the criterion bounds the risk with constant 1); it is nowhere better than Bayes;
and for $a \leq \frac12$, where the tasks use all directions alike, it is worse than ridge regression: it keeps
the directions that the training labels happened to show. The two change places between 1 and 1.5. The control
trains with $\sigma' = 0$.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from featlab.algorithms import Adam
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import bounded_by, exceeds
from featlab.claims.suzuki2024_metric import Metric
from featlab.data import LinearRegression, power_law
from featlab.experiment import Experiment
from featlab.fields import real
from featlab.networks import TwoLayerLinear
from featlab.objectives import ProfileRidge
from featlab.probes import at_end, geometric, metric_alignment, ridge_risk, train_loss
from featlab.theory import ridge

ALIGNED, FLAT = (2.0, 3.0, 5.0, 10.0), (0.0, 0.5)  # a
BEYOND = 1.2  # sigma'^2 in units of the edge
# Penalties of ridge regression, in units of sigma^2.
GRID = tuple(float(one) for one in 10.0 ** np.arange(-3, 1.75, 0.25))


class Alignment(Claim):
    """The claim of this file."""

    title = "a metric learnt with degrees of freedom beats tuned ridge regression for tasks of decaying covariance"
    statement = (
        r"\mu_j(\Sigma_X) = j^{-1}, \quad \Sigma_\beta = \mathrm{diag}(j^{-a}): \qquad "
        r"\bar R(\hat W) < \min_\lambda \bar R(I) \text{ for } a \geq 2"
    )
    refuted_if = (
        "the learnt metric has more risk than ridge regression or than its bound for an a of at least 2, less "
        "than ridge regression for an a of at most 1/2, or less than Bayes"
    )
    reference = Metric.reference
    sizes = {
        "tiny": Size(seeds=3, n=(10,), d=(30,), steps=(5,)),
        "smoke": Size(seeds=6, n=(30,), d=(200,), steps=(40,)),
        "laptop": Size(seeds=12, n=(100,), d=(1000,), steps=(60,)),
        "full": Size(seeds=24, n=(200,), d=(1000,), steps=(200,)),
    }
    number_of_checks = 4
    minutes = 2.0
    control_changes = "the criterion has no degrees of freedom: s' = 0"

    noise: float = real(default=1.0, above=0)  # sigma^2
    tasks: float = real(default=5.0, above=0)  # m / n
    learning_rate: float = real(default=0.3, above=0)  # of Adam
    bound: float = real(default=5.0, above=0)  # of |log w_j|

    def typical(self):
        return self._experiment(100, 1000, 2.0, 60)

    def scene(self):
        return self._experiment(30, 100, 2.0, 60, probes=[train_loss, metric_alignment], record=geometric(80))

    def perturbed(self):
        changed = super().perturbed()
        for name, factor in {"bound": 0.8, "tasks": 2}.items():
            value = self.knobs[name] * factor
            changed[f"{name} {self.knobs[name]:g} -> {value:g}"] = dataclasses.replace(self, **{name: value})
        return changed

    def assumptions(self, experiment: Any):
        data, objective = experiment.data, experiment.objective
        edge = data.label_noise**2 * (1 + np.sqrt(data.n / data.tasks)) ** 2
        return [
            Assumption("d / n (interpolation is possible)", data.d / data.n, ">= 1"),
            Assumption("s'^2 / (s^2 (1 + sqrt(n/m))^2) (noise is not fitted)", objective.dof / edge, ">= 1"),
        ]

    def checks(self, lab):
        learnt = {a: self._learnt(lab, a) for a in (*FLAT, *ALIGNED)}
        plain = {a: self._ridge(lab, a) for a in (*FLAT, *ALIGNED)}
        bayes = {a: self._plain(lab, a, a / 2)[:, -1] for a in (*FLAT, *ALIGNED)}
        yield self._better(learnt, {a: risks.min(axis=1) for a, risks in plain.items()})
        yield exceeds(
            "risk of the learnt metric over that of tuned ridge, flat tasks",
            [learnt[a] / plain[a].min(axis=1) for a in FLAT], 0.0, by=1.0, cells=_cells(FLAT),
        )  # fmt: skip
        every = tuple(learnt)
        least = [bayes[a] / learnt[a] for a in every]
        yield bounded_by("risk of Bayes over that of the learnt metric", least, 1.0, cells=_cells(every))
        bounds = [self._bound(lab, a) for a in ALIGNED]
        yield bounded_by(
            "risk of the learnt metric over its bound", [learnt[a] for a in ALIGNED], bounds, cells=_cells(ALIGNED)
        )

    def control(self, lab):
        ends = (ALIGNED[0], ALIGNED[-1])
        learnt = {a: self._learnt(lab, a, beyond=0.0) for a in ends}
        return self._better(learnt, {a: self._ridge(lab, a).min(axis=1) for a in ends})

    def _better(self, learnt, plain):
        decays = [a for a in ALIGNED if a in learnt]
        gains = [plain[a] / learnt[a] for a in decays]
        return exceeds(
            "risk of tuned ridge over that of the learnt metric", gains, 0.0, by=1.0, cells=_cells(decays),
        )  # fmt: skip

    def _learnt(self, lab, a, beyond=BEYOND):
        (n,), (d,), (steps,) = lab.size.n, lab.size.d, lab.size.steps
        experiment = self._experiment(n, d, a, steps, beyond=beyond)
        return lab.endings(experiment, remember=("learnt", a, beyond))["ridge_risk"][:, 0]

    def _ridge(self, lab, a):
        """The risks of ridge regression on the inputs, (seed, penalty)."""
        return self._plain(lab, a, 0.0)

    def _plain(self, lab, a, decay):
        """The risks under W = diag(j^-decay) for all penalties, the last of them that of Bayes."""
        (n,), (d,) = lab.size.n, lab.size.d
        probes = [ridge_risk(penalty=(*self._penalties, self.noise / n))]
        experiment = self._experiment(n, d, a, 0, probes=probes, decay=decay)
        return lab.endings(experiment, remember=(a, decay))["ridge_risk"]

    @property
    def _penalties(self) -> tuple[float, ...]:
        return tuple(self.noise * one for one in GRID)

    def _bound(self, lab, a) -> float:
        (n,), (d,) = lab.size.n, lab.size.d
        objective: Any = self._experiment(n, d, a, 0).objective
        return ridge.optimal_bound(np.arange(1, d + 1) ** (-1.0 - a), n, objective.dof)

    def _experiment(self, n, d, a, steps, *, beyond=BEYOND, decay=None, probes=None, record=at_end):
        tasks, penalty = round(self.tasks * n), self.noise / n
        dof = float(beyond * self.noise * (1 + np.sqrt(n / tasks)) ** 2)
        start: dict[str, Any] = {"bound": self.bound} if decay is None else {"decay": decay}
        return Experiment(
            data=LinearRegression(
                n=n, d=d, spectrum=power_law(1), target=power_law(a), tasks=tasks,
                label_noise=float(np.sqrt(self.noise)),
            ),
            network=TwoLayerLinear(diagonal=True, **start),
            objective=ProfileRidge(penalty=penalty, dof=dof),
            algorithm=Adam(self.learning_rate, beta2=0.999, bias_correction=True),
            probes=probes or [ridge_risk(penalty=(penalty,))],
            steps=steps,
            record=record,
            precision=64,
        )  # fmt: skip


def _cells(decays) -> tuple[str, ...]:
    return tuple(f"a = {a:g}" for a in decays)
