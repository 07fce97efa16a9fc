r"""A first layer is a metric: what the criterion with degrees of freedom makes of it, and how low it can go.

K. Suzuki and T. Suzuki (2024). Ridge regression on $Wx$ is ridge regression on $x$ with the penalty measured by
$(W^\top W)^{-1}$. For tasks $\beta \sim N(0, \Sigma_\beta)$ with noise $\sigma^2$ and the smoother $H = K(K +
n\lambda I)^{-1}$, $K = XW^\top W X^\top$, the criterion

$$R(W) = \frac1m \sum_{j \leq m} \min_a \Big[\frac1n \|y^{(j)} - XW^\top a\|^2 + \lambda \|a\|^2\Big] +
  \frac{\sigma'^2}{n} \mathrm{tr} H$$

is $\frac1n \mathrm{tr}\, \hat C (I - H) + \frac{\sigma'^2}{n} \mathrm{tr} H$ with $\hat C = \frac1m \sum_j
y^{(j)} y^{(j)\top}$, so its least value over all $W$ is $\frac1n \sum_j \min\{\hat c_j, \sigma'^2\}$ with $\hat
c_j$ the eigenvalues of $\hat C$. For many tasks $\hat C = X \Sigma_\beta X^\top + \sigma^2 I$, and $R -
\sigma^2$ is least at a hard threshold: $K$ infinite on the eigenvectors with $\hat\mu_j$ above $(\sigma'^2 -
\sigma^2)/n$, 0 on the others.

Algebra, which must hold for every draw of the inputs and counts for nothing: the two ridge regressions agree; the
hard threshold attains the sum; other first layers are not below it; $W^\top W = \Sigma_\beta$ with $n\lambda =
\sigma'^2 - \sigma^2$ is within the factor 2 of $2ab/(a+b) \leq 2\min\{a, b\}$.

Measured, each within 5 %:

* descent over all W on finitely many tasks, m = 4n, comes down to the least value;
* on m = 64n of them it comes down to the sum for infinitely many, its level $(\sigma'^2 - \sigma^2)/n$ included:
  the spectrum of the noise ends at $1.27 \sigma^2$ there, below $\sigma'^2 = 2 \sigma^2$;
* tasks of nothing but noise are fitted unless $\sigma'^2 > \sigma^2 (1 + \sqrt{n/m})^2$, the upper edge of the
  spectrum of their $\hat C$ (at n = 400 the largest eigenvalue lies below the edge by one or two per cent, as
  Tracy and Widom say).

In the control W has two rows: descent then ends above the least value.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import Adam
from featlab.claims import Assumption, Claim, Size, equals, identity, not_judged
from featlab.claims.settings.metric import REFERENCE, ManyTasks, noise_edge, noise_kept, ridge_difference
from featlab.core.linear_algebra import eigvalsh
from featlab.core.validation import real
from featlab.data import LinearRegression, power_law
from featlab.experiment import Experiment
from featlab.networks import TwoLayerLinear
from featlab.objectives import ProfileRidge
from featlab.probes import Variable, View, at_end, criterion, geometric, least_criterion, probe, train_loss

DECAYS = (0.5, 2.0)  # a, of Sigma_beta = diag(j^-a); the inputs' spectrum is 1/j
FEW, MANY = 4, 64  # m / n, of tasks that W is trained on
TASKS = (2.0, 0.5)  # m / n, of tasks of nothing but noise


@probe(seen_spectrum=Variable("eigenvalue", r"\hat\mu_j", "eigenvalues of the tasks' covariance on the inputs"))
def seen_spectrum(view: View):
    r"""Of $X \Sigma_\beta X^\top / n$."""
    inputs = view.training.inputs[:, 0] * jnp.sqrt(view.problem.draw.truth.target)
    return eigvalsh(inputs @ inputs.T) / len(inputs)


class Metric(Claim):
    """The claim of this file."""

    title = "a first layer is a metric, and its criterion is least at a hard threshold of the tasks' spectrum"
    statement = (
        r"\min_a \tfrac1n \|y - XW^\top a\|^2 + \lambda \|a\|^2 = "
        r"\min_{\beta} \tfrac1n \|y - X\beta\|^2 + \lambda \|\beta\|^2_{(W^\top W)^{-1}}, \qquad "
        r"\min_W R(W) - \sigma^2 = \sum_j \min\{\hat\mu_j, (\sigma'^2 - \sigma^2)/n\}"
    )
    refuted_if = (
        "the regressions differ, a first layer is below the sum, the hard threshold or descent does not reach it, "
        "the tasks' covariance is more than a factor 2 above it, or noise is fitted beyond the edge"
    )
    reference = REFERENCE
    sizes = {
        "tiny": Size(seeds=3, n=8, steps=20, edge=20),
        "smoke": Size(seeds=8, n=20, steps=400, edge=400),
        "laptop": Size(seeds=24, n=30, steps=600, edge=400),
        "full": Size(seeds=32, n=40, steps=1200, edge=600),
    }
    minutes = 1.0
    control_changes = "W has two rows"
    clauses = {
        "ridge regression on Wx is ridge regression with the metric (W'W)^-1": "ridge on Wx less*",
        "the least criterion of many tasks is the sum, at a hard threshold": (
            "criterion after descent less s^2*", "criterion at the hard threshold*", "how far other first layers*",
        ),
        "W'W = Sigma_beta is near the least criterion": "criterion at W'W = Sigma_beta*",
        "descent on the criterion finds its least value": "criterion after descent over all W*",
        "s'^2 must be above the noise that finitely many tasks show": "s'^2 from which on*",
        "W'W = Sigma_beta with n lambda = s^2 is the Bayes estimator": not_judged(
            "judged by the erratum metric_transpose, and against ridge regression in suzuki2024_alignment"
        ),
    }  # fmt: skip

    penalty: float = real(default=0.1, above=0)  # lambda
    dimensions: float = real(default=3.0, above=1)  # d / n
    noise: float = real(default=0.5, above=0)  # sigma^2
    excess: float = real(default=2.0, above=1)  # sigma'^2 / sigma^2, where tasks are many
    learning_rate: float = real(default=0.05, above=0)  # of Adam

    def experiment(self, n, steps, probes=None, record=at_end, many=False, rows=0):
        """Descent over all W. Whether it has come down is what is judged, so no run counts as untrained."""
        tasks = (MANY if many else FEW) * n
        dof = float(self.excess * (self.noise if many else noise_edge(self.noise, n, tasks)))
        read = criterion(penalty=(self.penalty,), dof=dof), least_criterion(dof=dof)
        return Experiment(
            data=LinearRegression(
                n=n, d=round(self.dimensions * n), spectrum=power_law(1), target=power_law(DECAYS[0]),
                tasks=tasks, label_noise=float(np.sqrt(self.noise)),
            ),
            network=TwoLayerLinear(width=rows),
            objective=ProfileRidge(penalty=self.penalty, dof=dof),
            algorithm=Adam(self.learning_rate, beta2=0.999, bias_correction=True),
            probes=probes or [*read, *([seen_spectrum] if many else [])],
            steps=steps,
            record=record,
            precision=64,
        )  # fmt: skip

    def typical(self):
        return self.experiment(20, 400)

    def scene(self):
        return self.experiment(20, 400, [train_loss], geometric(80))

    def assumptions(self, experiment: Any):
        data, objective = experiment.data, experiment.objective
        edge = noise_edge(data.label_noise**2, data.n, data.tasks)
        return [
            Assumption("d / n (inputs are independent)", data.d / data.n, ">= 1"),
            Assumption("s'^2 / (s^2 (1 + sqrt(n/m))^2) (noise is not fitted)", objective.dof / edge, ">= 1"),
        ]

    def checks(self, lab):
        yield self._same(lab, lambda layer: layer.T @ layer)
        many = lab.measure(self._many, n=lab.size.n, a=DECAYS)
        yield identity("criterion at the hard threshold over the sum, less 1", many.threshold - 1, 1e-6)
        below = np.maximum(1 - many.others, 0)
        yield identity("how far other first layers go below the sum, relative", below, 1e-9)
        beyond = np.maximum(many.covariance - 2, 0)
        yield identity("criterion at W'W = Sigma_beta over the sum, beyond 2", beyond, 1e-9)
        yield self._least(lab)
        runs = lab.run(self.experiment, n=lab.size.n, steps=lab.size.steps, many=True)
        level = (self.excess - 1) * self.noise / lab.size.n
        total = np.minimum(runs.seen_spectrum, level).sum("eigenvalue", skipna=False)
        above = (runs.criterion.isel(penalty=0) - self.noise) / total
        yield equals("criterion after descent less s^2, over the sum for infinitely many tasks", above, 1)
        edges = lab.measure(self._edges, n=lab.size.edge, tasks=TASKS).largest.rename(tasks="m / n")
        yield equals("s'^2 from which on noise is not fitted, over s^2 (1 + sqrt(n/m))^2", edges, 1)

    def control(self, lab):
        return self._least(lab, rows=2)

    def _least(self, lab, rows=0):
        runs = lab.run(self.experiment, n=lab.size.n, steps=lab.size.steps, rows=rows)
        ratio = runs.criterion.isel(penalty=0) / runs.least_criterion
        return equals("criterion after descent over all W, over its least value", ratio, 1)

    def _same(self, lab, metric):
        n = lab.size.n
        found = lab.measure(self._difference, setting=self.experiment(n, 1), n=n, metric=metric)
        return identity("ridge on Wx less ridge with the inverse metric, relative", found.difference, 1e-9)

    def _difference(self, seeds, n, metric):
        """Of the two regressions' coefficients, for random first layers and labels."""
        rngs = [np.random.default_rng(seed) for seed in seeds]
        return {"difference": [ridge_difference(self._inputs(rng, n), self.penalty, metric, rng) for rng in rngs]}

    def _many(self, seeds, n, a):
        """The criterion of infinitely many tasks over the sum, at the hard threshold and at other first layers."""
        found = []
        for rng in map(np.random.default_rng, seeds):
            x = self._inputs(rng, n)
            target = np.arange(1, x.shape[1] + 1) ** -a
            many = ManyTasks(x, target, noise=self.noise, excess=self.excess)
            threshold = many.criterion(many.hard_threshold(self.penalty), self.penalty)
            covariance = many.criterion(np.diag(np.sqrt(target)), many.level)
            found.append(np.array([threshold, many.lowest_of_others(rng), covariance]) / many.least)
        return dict(zip(("threshold", "others", "covariance"), np.transpose(found)))

    def _edges(self, seeds, n, tasks):
        count = round(tasks * n)
        return {"largest": [noise_kept(np.random.default_rng(seed), self.noise, n, count) for seed in seeds]}

    def _inputs(self, rng, n):
        """Gaussian, with variances 1/j."""
        j = np.arange(1, round(self.dimensions * n) + 1)
        return rng.standard_normal((n, len(j))) * j**-0.5
