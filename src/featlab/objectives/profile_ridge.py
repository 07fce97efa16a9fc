r"""Ridge regression on a network's features, its head solved for: an objective of the features alone."""

from __future__ import annotations

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.linear_algebra import solve_positive
from featlab.core.sees import Sees
from featlab.core.validation import real
from featlab.networks import AbstractNetwork
from featlab.objectives._objective import AbstractObjective

_WRONG = 0.01  # distance of M times its computed inverse from the identity, from which on rounding has spoilt it


class Profile(eqx.Module):
    """The parts of the value: how well the best heads fit, penalty included, and what the features cost."""

    fit: Float[Array, ""]
    freedom: Float[Array, ""]


class ProfileRidge(AbstractObjective):
    r"""The least ridge loss over heads, plus degrees of freedom; a function of the features $\Phi$.

    $$R = \frac1m \sum_{j \leq m} \min_a \Big[ \frac1n \|y^{(j)} - \Phi a\|^2 + \lambda \|a\|^2 \Big] +
    \frac{\sigma'^2}{n} \mathrm{tr}\, K (K + n\lambda I)^{-1}, \qquad K = \Phi\Phi^\top$$

    Features are scaled by $N^{-1/2}$ for two-layer networks of width $N$, so that $K = \frac1N \sum_r
    \sigma(Xw_r) \sigma(Xw_r)^\top$, or by the network's `feature_scale`. With `label_noise` $s$ the heads are
    fitted to labels with fresh noise from $U[-s, s]$, and their loss is that on the labels without it; without a
    key it is the mean over that noise, which is as if $\frac{s^2}{3}$ were added to $\sigma'^2$ (Takakura and
    Suzuki 2024). A small penalty beside strong features needs `precision=64`: a solution that rounding has spoilt
    is NaN, and the run counts as diverged.
    """

    sees: ClassVar[Sees] = Sees.VECTORS

    penalty: float = real(above=0, symbol=r"\lambda", means="ridge penalty")
    dof: float = real(
        default=0.0, at_least=0, symbol=r"\sigma'^2", means="weight of the degrees of freedom", span=(0, 10)
    )
    label_noise: float | None = real(
        default=None, at_least=0, optional=True, symbol="s", means="largest label noise"
    )
    network: AbstractNetwork | None = None

    @classmethod
    def examples(cls):
        return (cls(penalty=0.1), cls(penalty=0.05, dof=0.5), cls(penalty=0.1, label_noise=0.5))

    def __call__(self, params, batch, key):
        features, labels, n = self._regression(params, batch)
        smoother = Smoother.of(features, self.penalty * n)
        fit = smoother.missed(labels) / n
        added = self.dof * smoother.freedom / n
        if self.label_noise is not None and key is None:
            added = added + self.label_noise**2 / 3 * smoother.freedom / n
        elif self.label_noise is not None:
            noise = jnp.where(batch.mask[:, None], self.label_noise * _uniform(key, labels.shape), 0)
            # The loss is quadratic around the best head, so noise adds its own square through the smoother.
            added = added + (jnp.sum(noise**2) / noise.shape[1] - smoother.missed(noise)) / n
        return fit + added, Profile(fit, smoother.freedom)

    def head(self, params: Any, batch: Any) -> Float[Array, "feature task"]:
        """The best heads on the scaled features, without label noise."""
        features, labels, n = self._regression(params, batch)
        return Smoother.of(features, self.penalty * n).head(labels)

    def _regression(self, params, batch):
        assert self.network is not None, "bind() the objective to a network first"
        return regression(self.network, params, batch)


class Smoother(eqx.Module):
    r"""$S = K(K + \mu I)^{-1}$ with $K = \Phi\Phi^\top$, through the inverse of the smaller of $\Phi\Phi^\top +
    \mu I$ and $\Phi^\top\Phi + \mu I$."""

    features: Float[Array, "sample feature"]
    level: Any  # mu = n lambda
    inverse: Float[Array, "row row"]

    @classmethod
    def of(cls, features: Float[Array, "sample feature"], level: Any) -> Smoother:
        rows, columns = features.shape
        small = features.T @ features if columns < rows else features @ features.T
        return cls(features, level, inverse_positive(small + level * jnp.eye(len(small))))

    @property
    def through_features(self) -> bool:
        """Whether the smaller matrix is that of the features, fewer than the samples."""
        return self.features.shape[1] < self.features.shape[0]

    @property
    def freedom(self) -> Float[Array, ""]:
        """tr S."""
        return len(self.inverse) - self.level * jnp.trace(self.inverse)

    def head(self, labels: Float[Array, "sample task"]) -> Float[Array, "feature task"]:
        r"""$\Phi^\top (K + \mu I)^{-1} y$ for each task."""
        if self.through_features:
            return self.inverse @ (self.features.T @ labels)
        return self.features.T @ (self.inverse @ labels)

    def missed(self, labels: Float[Array, "sample task"]) -> Float[Array, ""]:
        r"""$y^\top (I - S) y$, the mean over tasks."""
        tasks = labels.shape[1]
        if self.through_features:
            head = self.head(labels)
            residual = labels - self.features @ head
            return (jnp.sum(residual**2) + self.level * jnp.sum(head**2)) / tasks
        if tasks > len(labels):  # the tasks matter only through their Gram matrix
            return self.level * jnp.sum(self.inverse * (labels @ labels.T)) / tasks
        return self.level * jnp.sum(labels * (self.inverse @ labels)) / tasks


def regression(network: AbstractNetwork, params: Any, batch: Any):
    """Scaled features, labels (one column a task) and number of samples; padding has features and labels 0."""
    features = jax.vmap(network.features, in_axes=(None, 0))(params, batch.inputs)
    features = feature_scale(network) * features.reshape(len(features), -1)
    labels = batch.labels.reshape(len(batch.labels), -1)
    real = batch.mask[:, None]
    return jnp.where(real, features, 0), jnp.where(real, labels, 0), jnp.sum(batch.mask).astype(features.dtype)


def feature_scale(network: AbstractNetwork) -> float:
    """What features are multiplied by: the number the network says, or 1."""
    return getattr(network, "feature_scale", 1.0)


def degrees_of_freedom(kernel: Float[Array, "sample sample"], level: Any) -> Float[Array, ""]:
    r"""$\mathrm{tr}\, K(K + \mu I)^{-1}$; with $\mu = n\lambda$, those of ridge regression. Rows of zeros add
    nothing."""
    return len(kernel) - level * jnp.trace(inverse_positive(kernel + level * jnp.eye(len(kernel))))


@jax.custom_jvp
def inverse_positive(matrix: Float[Array, "row row"]) -> Float[Array, "row row"]:
    """The inverse of a positive definite matrix; NaN where rounding has spoilt it."""
    identity = jnp.eye(len(matrix))
    inverse = solve_positive(matrix, identity)
    wrong = jnp.sqrt(jnp.sum((matrix @ inverse - identity) ** 2))
    return jnp.where(wrong <= _WRONG, inverse, jnp.nan)


# Written down, because factorisations one at a time have no derivative of their own in reverse.
@inverse_positive.defjvp
def _inverse_positive_jvp(primals, tangents):
    inverse = inverse_positive(*primals)
    return inverse, -inverse @ tangents[0] @ inverse


def _uniform(key, shape):
    """From U[-1, 1]; a sample's noise depends on the key and its place alone."""

    def row(i):
        return jax.random.uniform(jax.random.fold_in(key, i), shape[1:], jnp.float32, -1.0, 1.0)

    return jax.vmap(row)(jnp.arange(shape[0])).astype(float)
