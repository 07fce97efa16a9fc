r"""What a first layer makes of ridge regression: its risk, degrees of freedom, spectrum and alignment.

With $V = W^\top W$, $K = XVX^\top = U D U^\top$ and $R = (K + n\lambda I)^{-1}$, ridge regression on $Wx$ finds
$\hat\beta = V X^\top R\, y$. All penalties share the one factorisation of $K$.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from featlab.core.linear_algebra import eigh, eigvalsh
from featlab.core.sees import Sees
from featlab.data import LinearRegression
from featlab.networks import TwoLayerLinear
from featlab.objectives.profile_ridge import regression
from featlab.probes._probe import Variable, View, probe
from featlab.problem import unbatched

_WRONG = 0.01  # relative rounding error of a solution, condition times precision, above which it is no solution


@probe(
    of=(LinearRegression, TwoLayerLinear),
    ridge_risk=Variable(
        "penalty", r"E \langle \hat\beta - \beta, x \rangle^2", "error of ridge regression on fresh inputs"
    ),
    ridge_bias=Variable("penalty", "B", "the part of that error that noise has no part in"),
    ridge_variance=Variable("penalty", r"\sigma^2 V", "the part of that error that comes from noise"),
    in_sample_bias=Variable("penalty", r"\frac1n E \|(I - S) X\beta\|^2", "bias on the training inputs"),
    in_sample_variance=Variable(
        "penalty", r"\frac{\sigma^2}{n} \mathrm{tr}\, S^2", "variance on the training inputs"
    ),
)
def ridge_risk(view: View, *, penalty: tuple[float, ...] = (0.01,)):
    r"""Exact bias and variance, given the inputs, of ridge regression on $Wx$ for a new task.

    The expectation is over its coefficients $\beta \sim N(0, \mathrm{diag}(\nu))$, its noise and, out of sample,
    a fresh input. Penalty 0 is least squares of least norm. What rounding has spoilt is NaN: `precision=64`.
    """
    data, network = _linear(view)
    truth, noise = view.problem.draw.truth, data.label_noise**2
    spectrum, target = truth.spectrum[None], truth.target[None]
    inputs = jnp.where(view.training.mask[:, None], jnp.sum(view.training.inputs, axis=1), 0)
    n = jnp.sum(view.training.mask).astype(inputs.dtype)
    features = network.applied(view.params, inputs)
    values, vectors = _kernel(features)
    turned = vectors.T @ inputs  # U'X
    back = vectors.T @ network.applied_back(view.params, features)  # U'XV
    seen = (turned * target) @ turned.T  # U' X Sigma_beta X' U
    along = jnp.sum(turned * spectrum * target * back, axis=1)

    def one(weight):
        level = n * weight
        inverse = _inverse(values, level)
        solved = inverse[:, None] * back
        error = (solved * spectrum) @ solved.T
        bias = jnp.sum(spectrum * target) - 2 * along @ inverse + jnp.sum(error * seen)
        variance = noise * jnp.trace(error)
        missed = jnp.where(inverse == 0, 1.0, level * inverse)
        return {
            "ridge_risk": bias + variance,
            "ridge_bias": bias,
            "ridge_variance": variance,
            "in_sample_bias": jnp.sum(missed**2 * jnp.diagonal(seen)) / n,
            "in_sample_variance": noise * jnp.sum((values * inverse) ** 2) / n,
        }

    return jax.lax.map(one, _penalties(penalty, inputs.dtype))


@probe(
    sees=Sees.VECTORS,
    degrees_of_freedom=Variable(
        "penalty",
        r"\mathrm{tr}\, K (K + n\lambda I)^{-1}",
        "degrees of freedom of ridge regression on the features",
    ),
)
def degrees_of_freedom(view: View, *, penalty: tuple[float, ...] = (0.01,)):
    """Those of any network's features, scaled as `ProfileRidge` scales them."""
    features, _, n = regression(view.problem.network, view.params, view.training)
    values, _ = _kernel(features)
    return jax.lax.map(
        lambda weight: jnp.sum(values * _inverse(values, n * weight)), _penalties(penalty, values.dtype)
    )


@probe(
    sees=Sees.VECTORS,
    criterion=Variable("penalty", "R(W)", "least ridge loss over heads, plus degrees of freedom"),
)
def criterion(view: View, *, penalty: tuple[float, ...] = (0.01,), dof: float = 0.0):
    """The value of `ProfileRidge` for other penalties than that of training; `dof` is its $\\sigma'^2$."""
    features, labels, n = regression(view.problem.network, view.params, view.training)
    values, vectors = _kernel(features)
    energy = jnp.mean((vectors.T @ labels) ** 2, axis=1)

    def one(weight):
        inverse = _inverse(values, n * weight)
        missed = jnp.where(inverse == 0, 1.0, n * weight * inverse)
        return (missed @ energy + dof * jnp.sum(values * inverse)) / n

    return jax.lax.map(one, _penalties(penalty, features.dtype))


@probe(least_criterion=Variable("", r"\frac1n \sum_j \min\{\hat c_j, \sigma'^2\}", "least criterion over all W"))
def least_criterion(view: View, *, dof: float = 1.0):
    r"""What no first layer can go below; $\hat c_j$ are the eigenvalues of $\frac1m YY^\top$ of the labels."""
    labels = jnp.where(view.training.mask[:, None], view.training.labels, 0)
    return jnp.sum(jnp.minimum(eigvalsh(labels @ labels.T) / labels.shape[1], dof)) / jnp.sum(view.training.mask)


@probe(
    of=(LinearRegression, TwoLayerLinear),
    metric_spectrum=Variable(
        "eigenvalue", r"\mu_j(W \Sigma_X W^\top)", "eigenvalues of the features' covariance, falling"
    ),
)
def metric_spectrum(view: View):
    """What the decay of the inputs' spectrum has become."""
    _, network = _linear(view)
    spectrum = view.problem.draw.truth.spectrum
    if network.diagonal:
        return -jnp.sort(-spectrum * network.scales(view.params) ** 2)
    layer = network.layer(view.params)
    return eigvalsh((layer * spectrum[None]) @ layer.T)[::-1]


@probe(
    of=(LinearRegression, TwoLayerLinear),
    metric_alignment=Variable(
        "", r"\cos(W^\top W, \Sigma_\beta)", "cosine of the metric with the covariance of the coefficients"
    ),
)
def metric_alignment(view: View):
    """1 where the metric is proportional to the covariance that the tasks come from."""
    _, network = _linear(view)
    target = view.problem.draw.truth.target
    if network.diagonal:
        metric = network.scales(view.params) ** 2
        product, size = metric @ target, jnp.linalg.norm(metric)
    else:
        layer = network.layer(view.params)
        product, size = jnp.sum(layer**2 @ target), jnp.linalg.norm(layer @ layer.T)
    return product / (size * jnp.linalg.norm(target))


def _linear(view: View) -> tuple[LinearRegression, TwoLayerLinear]:
    """The data model and the network, as those whose risk is known exactly."""
    data, network = unbatched(view.problem.data), view.problem.network
    assert isinstance(data, LinearRegression) and isinstance(network, TwoLayerLinear)
    return data, network


def _kernel(features: Float[Array, "sample feature"]) -> tuple[Array, Array]:
    """Eigenvalues and eigenvectors of the features' Gram matrix."""
    values, vectors = eigh(features @ features.T)
    return jnp.maximum(values, 0), vectors


def _inverse(values: Float[Array, " row"], level) -> Float[Array, " row"]:
    """1 / (values + level), without a level 0 on the null space; NaN where rounding has spoilt it."""
    precision = jnp.finfo(values.dtype).eps
    total = values + level
    real = total > jnp.where(level > 0, 0, len(values) * precision * jnp.max(values))
    inverse = jnp.where(real, 1 / jnp.where(real, total, 1), 0)
    return jnp.where(precision * jnp.max(values) * jnp.max(inverse) <= _WRONG, inverse, jnp.nan)


def _penalties(penalty: tuple[float, ...], dtype) -> Array:
    return jnp.asarray(np.array(penalty, float), dtype)
