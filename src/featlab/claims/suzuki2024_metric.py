r"""A first layer is a metric: what the criterion with degrees of freedom makes of it, and how low it can go.

K. Suzuki and T. Suzuki (2024). Ridge regression on $Wx$ is ridge regression on $x$ with the penalty measured
by $(W^\top W)^{-1}$. For tasks $\beta \sim N(0, \Sigma_\beta)$ with noise $\sigma^2$ and the smoother $H = K(K
+ n\lambda I)^{-1}$, $K = XW^\top W X^\top$, the criterion

$$R(W) = \frac1m \sum_{j \leq m} \min_a \Big[\frac1n \|y^{(j)} - XW^\top a\|^2 + \lambda \|a\|^2\Big] +
  \frac{\sigma'^2}{n} \mathrm{tr} H$$

is $\frac1n \mathrm{tr}\, \hat C (I - H) + \frac{\sigma'^2}{n} \mathrm{tr} H$ with $\hat C = \frac1m \sum_j
y^{(j)} y^{(j)\top}$, so its least value over all $W$ is $\frac1n \sum_j \min\{\hat c_j, \sigma'^2\}$, $\hat
c_j$ being the eigenvalues of $\hat C$. For many tasks $\hat C = X \Sigma_\beta X^\top + \sigma^2 I$ and

$$\min_W R(W) - \sigma^2 = \sum_j \min\{\hat\mu_j, (\sigma'^2 - \sigma^2)/n\}, \qquad
  \hat\mu_j = \mu_j(\Sigma_\beta^{1/2} \tfrac1n X^\top X \Sigma_\beta^{1/2}).$$

Measured: the identity of the two ridge regressions; the criterion of many tasks at the hard threshold ($K$
infinite on the eigenvectors with $\hat\mu_j$ above the level, 0 on the others), which must be that sum; that
other first layers are not below it; that $W^\top W = \Sigma_\beta$ with $n\lambda = \sigma'^2 - \sigma^2$ is
within the factor 2 that follows from $2ab/(a+b) \leq 2\min\{a, b\}$; that descent over all $W$, through the
objective `ProfileRidge` on finitely many tasks, comes down to the least value, within 5 %; and that tasks of
nothing but noise are fitted unless $\sigma'^2 > \sigma^2 (1 + \sqrt{n/m})^2$, the upper edge of the spectrum
of their $\hat C$, within 5 % (at n = 400 the largest eigenvalue lies below it by one or two, as Tracy and
Widom say). The control measures the penalty by $(W W^\top)^{-1}$.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np

from featlab.algorithms import Adam
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by, exceeds, identity
from featlab.data import LinearRegression, power_law
from featlab.experiment import Experiment
from featlab.fields import real
from featlab.linear_algebra import eigvalsh
from featlab.networks import TwoLayerLinear
from featlab.objectives import ProfileRidge
from featlab.probes import Variable, at_end, criterion, geometric, probe, train_loss

DECAYS = (0.5, 2.0)  # a, of Sigma_beta = diag(j^-a); the inputs' spectrum is 1/j
TASKS = (2.0, 0.5)  # m / n, of tasks of nothing but noise
INFINITE = 1e8  # of K on what the hard threshold keeps, in units of n lambda: an error of 1e-8
OTHERS = 1  # first layers drawn at random, beside the identity and Sigma_beta^(1/2)


@probe(least_criterion=Variable("", r"\frac1n \sum_j \min\{\hat c_j, \sigma'^2\}", "least criterion over all W"))
def least_criterion(view, *, dof: float = 1.0):
    """What no first layer can go below, for the labels of the training set."""
    labels = jnp.where(view.training.mask[:, None], view.training.labels, 0)
    return jnp.sum(jnp.minimum(eigvalsh(labels @ labels.T) / labels.shape[1], dof)) / jnp.sum(view.training.mask)


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
    reference = """@inproceedings{suzuki2024optimal,
  title     = {Optimal Criterion for Feature Learning of Two-Layer Linear Neural Network in High Dimensional Interpolation Regime},
  author    = {Suzuki, Keita and Suzuki, Taiji},
  booktitle = {International Conference on Learning Representations},
  year      = {2024}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3, n=(8,), steps=(20,), edge=(20,)),
        "smoke": Size(seeds=8, n=(20,), steps=(400,), edge=(400,)),
        "laptop": Size(seeds=24, n=(30,), steps=(600,), edge=(400,)),
        "full": Size(seeds=32, n=(40,), steps=(1200,), edge=(600,)),
    }
    number_of_checks = 6
    minutes = 1.0
    control_changes = "the penalty is measured by the inverse of W W' instead of W' W"

    penalty: float = real(default=0.1, above=0)  # lambda
    dimensions: float = real(default=3.0, above=1)  # d / n
    noise: float = real(default=0.5, above=0)  # sigma^2
    excess: float = real(default=2.0, above=1)  # sigma'^2 / sigma^2, where tasks are many
    learning_rate: float = real(default=0.05, above=0)  # of Adam

    def typical(self):
        return self._experiment(20, 400)

    def scene(self):
        return self._experiment(20, 400, [train_loss], geometric(80))

    def assumptions(self, experiment: Any):
        data, objective = experiment.data, experiment.objective
        edge = data.label_noise**2 * (1 + np.sqrt(data.n / data.tasks)) ** 2
        return [
            Assumption("d / n (inputs are independent)", data.d / data.n, ">= 1"),
            Assumption("s'^2 / (s^2 (1 + sqrt(n/m))^2) (noise is not fitted)", objective.dof / edge, ">= 1"),
        ]

    def checks(self, lab):
        (n,), (steps,), (edge,) = lab.size.n, lab.size.steps, lab.size.edge
        yield self._same(lab, n, lambda layer: layer.T @ layer)
        settings = [[_Many.drawn(self, n, decay, seed) for seed in lab.seeds] for decay in DECAYS]
        cells = tuple(f"a = {decay:g}" for decay in DECAYS)
        attained = [[one.excess(*one.hard_threshold()) / one.least - 1 for one in row] for row in settings]
        yield identity(
            "criterion at the hard threshold over the sum, less 1", np.array(attained), 1e-6, cells=cells
        )
        above = [[one.lowest_of_others() / one.least for one in row] for row in settings]
        yield exceeds("lowest criterion of other first layers, over the sum", above, 0.0, by=1.0, cells=cells)
        covariance = [[one.excess(*one.covariance()) / one.least for one in row] for row in settings]
        yield bounded_by("criterion at W'W = Sigma_beta, over the sum", covariance, 2.0, cells=cells)
        read = lab.endings(self._experiment(n, steps))
        ratio = read["criterion"][:, 0] / read["least_criterion"]
        yield agrees("criterion after descent over all W, over its least value", ratio, 1.0)
        edges = [[_noise_kept(self, int(edge), tasks, seed) for seed in lab.seeds] for tasks in TASKS]
        cells = tuple(f"m / n = {tasks:g}" for tasks in TASKS)
        yield agrees("s'^2 from which on noise is not fitted, over s^2 (1 + sqrt(n/m))^2", edges, 1.0, cells=cells)

    def control(self, lab):
        return self._same(lab, lab.size.n[0], lambda layer: layer @ layer.T)

    def _same(self, lab, n, metric):
        """The relative difference of the two regressions' predictions of labels."""
        lab.deciding.append(self._experiment(n, 1))
        residuals = [_Many.drawn(self, n, DECAYS[0], seed).difference(metric) for seed in lab.seeds]
        return identity("ridge on Wx less ridge with the inverse metric, relative", residuals, 1e-9)

    def _experiment(self, n, steps, probes=None, record=at_end):
        noise, tasks = self.noise, 4 * n
        dof = float(self.excess * noise * (1 + np.sqrt(n / tasks)) ** 2)
        penalty = self.penalty
        probes = probes or [criterion(penalty=(penalty,), dof=dof), least_criterion(dof=dof)]
        return Experiment(
            data=LinearRegression(
                n=n, d=round(self.dimensions * n), spectrum=power_law(1), target=power_law(DECAYS[0]),
                tasks=tasks, label_noise=float(np.sqrt(noise)),
            ),
            network=TwoLayerLinear(),
            objective=ProfileRidge(penalty=penalty, dof=dof),
            algorithm=Adam(self.learning_rate, beta2=0.999, bias_correction=True),
            probes=probes,
            steps=steps,
            record=record,
            precision=64,
        )  # fmt: skip


class _Many:
    """Inputs, and the criterion of infinitely many tasks on them."""

    def __init__(self, claim: Metric, x: np.ndarray, target: np.ndarray, rng: np.random.Generator):
        self.claim, self.x, self.target, self.rng = claim, x, target, rng
        self.n, self.d = x.shape
        self.seen = (x * target) @ x.T  # X Sigma_beta X'
        self.values, self.vectors = np.linalg.eigh(self.seen / self.n)
        self.level = (claim.excess - 1) * claim.noise / self.n
        self.least = float(np.sum(np.minimum(self.values, self.level)))

    @classmethod
    def drawn(cls, claim, n, decay, seed):
        rng = np.random.default_rng(seed)
        j = np.arange(1, round(claim.dimensions * n) + 1)
        return cls(claim, rng.standard_normal((n, len(j))) * j**-0.5, j**-decay, rng)

    def excess(self, layer: np.ndarray, penalties: Any) -> Any:
        """R(W) - sigma^2, for one penalty or many."""
        noise, features = self.claim.noise, self.x @ layer.T
        values, vectors = np.linalg.eigh(features @ features.T)
        energy = np.sum(vectors * (self.seen @ vectors), axis=0) + noise
        levels = self.n * np.asarray(penalties)[..., None]
        kept = np.maximum(values, 0) / (np.maximum(values, 0) + levels)
        return np.mean((1 - kept) * energy + self.claim.excess * noise * kept, axis=-1) - noise

    def hard_threshold(self) -> tuple[np.ndarray, float]:
        """K is a multiple of the projection on the eigenvectors above the level."""
        kept = self.vectors[:, self.values > self.level]
        size = np.sqrt(INFINITE * self.n * self.claim.penalty)
        return size * kept.T @ np.linalg.solve(self.x @ self.x.T, self.x), self.claim.penalty

    def covariance(self) -> tuple[np.ndarray, float]:
        return np.diag(np.sqrt(self.target)), self.level

    def lowest_of_others(self) -> float:
        """Of the identity, the tasks' covariance and random first layers, each with its best penalty on a grid."""
        layers = [np.eye(self.d), self.covariance()[0]]
        layers += [self.rng.standard_normal((self.d, self.d)) / np.sqrt(self.d) for _ in range(OTHERS)]
        grid = self.level * 10.0 ** np.arange(-3, 4)
        return float(min(np.min(self.excess(layer, grid)) for layer in layers))

    def difference(self, metric) -> float:
        """Between ridge on Wx and ridge on x with the penalty measured by the inverse of `metric(W)`."""
        n, penalty = self.n, self.claim.penalty
        left, right = (np.linalg.qr(self.rng.standard_normal((self.d, self.d)))[0] for _ in range(2))
        layer = left @ np.diag(np.geomspace(1, 0.1, self.d)) @ right
        labels = self.rng.standard_normal(n)
        features = self.x @ layer.T
        head = np.linalg.solve(features.T @ features + n * penalty * np.eye(self.d), features.T @ labels)
        penalised = self.x.T @ self.x + n * penalty * np.linalg.inv(metric(layer))
        direct = np.linalg.solve(penalised, self.x.T @ labels)
        return float(np.max(np.abs(layer.T @ head - direct)) / np.max(np.abs(direct)))


def _noise_kept(claim: Metric, n: int, tasks: float, seed: int) -> float:
    """The largest eigenvalue of the moments of tasks of nothing but noise, in units of the edge."""
    count = round(tasks * n)
    labels = np.sqrt(claim.noise) * np.random.default_rng(seed).standard_normal((n, count))
    moments = labels @ labels.T if n <= count else labels.T @ labels  # the same largest eigenvalue
    return float(np.linalg.eigvalsh(moments)[-1] / count / (claim.noise * (1 + np.sqrt(n / count)) ** 2))
