"""Singular values of weights and features, their outliers, and what the outliers are made of."""

from __future__ import annotations

from math import factorial, sqrt

import jax.numpy as jnp

from featlab.data import AbstractIndexModel
from featlab.fields import InputError
from featlab.networks import AbstractTwoLayer
from featlab.probes._probe import Variable, View, probe
from featlab.probes.ridge import beta, flat, giant_step, spiked_features, two_layer
from featlab.task import unbatched
from featlab.theory import hermite

OUTSIDE = 1.05  # of the bulk's edge, from which on a singular value counts as an outlier


@probe(
    equivariant=True,
    weight_singular_value=Variable("rank", r"s_i(W)", "singular values of the first layer"),
    weight_edge=Variable("", r"1 + \sqrt{N/d}", "where the bulk of a Gaussian first layer ends"),
    weight_outliers=Variable(
        "", r"\#\{s_i(W) > 1.05\,(1 + \sqrt{N/d})\}", "singular values of weights beyond the bulk"
    ),
)
def weight_spectrum(view: View):
    r"""Singular values of $W$, beside the edge of $W_0$, whose entries are $N(0, s^2/d)$."""
    network, weights = view.task.network, view.first_layer
    scale = getattr(network, "init_scale", 1.0) if isinstance(network, AbstractTwoLayer) else jnp.nan
    edge = scale * (1 + jnp.sqrt(len(weights) / view.task.draw.space.dimension))
    values = jnp.linalg.svd(weights, compute_uv=False)
    return {
        "weight_singular_value": values,
        "weight_edge": edge,
        "weight_outliers": jnp.sum(values > OUTSIDE * edge),
    }


@probe(
    equivariant=True,
    feature_singular_value=Variable("rank", r"s_i(F) / \sqrt n", "singular values of the features of a set"),
    untrained_edge=Variable("", r"s_1(F_0) / \sqrt n", "the largest singular value of the start's features"),
    feature_outliers=Variable(
        "", r"\#\{s_i(F) > 1.05\, s_1(F_0)\}", "singular values of features beyond the start's"
    ),
)
def feature_spectrum(view: View, *, holdout: int = 1):
    r"""Singular values of $F/\sqrt n$ on an independent set, beside the largest one before training.

    The limit of that largest one is `theory.random_features.edge`.
    """
    chosen = view.training if holdout == 0 else view.task.holdout(holdout - 1)
    n = jnp.sum(chosen.mask)

    def values(params):
        features = jnp.where(chosen.mask[:, None], view.task.features(params, chosen.inputs), 0)
        return jnp.sqrt(jnp.maximum(jnp.linalg.eigvalsh(_smaller_gram(features))[::-1], 0) / n)

    now, edge = values(view.params), values(view.task.draw.start)[0]
    return {
        "feature_singular_value": now,
        "untrained_edge": edge,
        "feature_outliers": jnp.sum(now > OUTSIDE * edge),
    }


@probe(
    equivariant=True,
    spike_overlap=Variable(
        "spike",
        r"\frac{1}{\sqrt n} u_k^\top (F - F_0) v_k",
        "spike k: H_k of the learnt direction against a to the k",
    ),
    singular_overlap=Variable(
        "spike",
        r"\max_i |\langle u_k, \hat u_i \rangle|",
        "largest cosine of H_k with one of the first singular vectors",
    ),
)
def spike_overlaps(view: View, *, spike: tuple[int, ...] = (1, 2, 3)):
    r"""How much of spike $k$ there is in the features of an independent set, and whether it stands alone.

    $u_k$ is $H_k(\tilde X \beta / \|\beta\|)$ and $v_k$ is $a^{\circ k}$, each of length one; $\hat u_i$ are
    the left singular vectors of $F$.
    """
    network, start, chosen = two_layer(view), view.task.draw.start, view.task.holdout(0)
    features = view.task.features(view.params, chosen.inputs)
    change = jnp.where(chosen.mask[:, None], features - view.task.features(start, chosen.inputs), 0)
    direction = beta(view)
    seen = flat(chosen) @ (direction / jnp.linalg.norm(direction))
    left = jnp.where(chosen.mask[:, None], hermite.polynomials(seen, max(spike))[:, list(spike)], 0)
    head = network.head(start)
    right = jnp.stack([head**k for k in spike], axis=1)
    left, right = left / jnp.linalg.norm(left, axis=0), right / jnp.linalg.norm(right, axis=0)
    overlap = jnp.einsum("ik,ir,rk->k", left, change, right) / jnp.sqrt(jnp.sum(chosen.mask))
    first = _left_singular_vectors(jnp.where(chosen.mask[:, None], features, 0), 2 * max(spike))
    return {"spike_overlap": overlap, "singular_overlap": jnp.max(jnp.abs(left.T @ first), axis=1)}


@probe(
    equivariant=True,
    spiked_gap=Variable(
        "spikes",
        r"\|F - F_\ell\|_{op} / \sqrt n",
        "what the features have beyond those of the start and so many spikes",
    ),
)
def spiked_gaps(view: View, *, spikes: tuple[int, ...] = (0, 1, 2)):
    r"""The distance of the features from the theory's $F_\ell$, on an independent set."""
    chosen = view.task.holdout(0)
    features, n = view.task.features(view.params, chosen.inputs), jnp.sum(chosen.mask)

    def gap(order):
        difference = jnp.where(chosen.mask[:, None], features - spiked_features(view, chosen, order), 0)
        return jnp.sqrt(_largest_eigenvalue(_smaller_gram(difference)) / n)

    return jnp.stack([gap(order) for order in spikes])


@probe(
    equivariant=True,
    rank_one_gap=Variable(
        "",
        r"\|G - c_1 a \beta^\top\|_{op} / \|G\|_{op}",
        "what the first step is beyond one direction for all neurons",
    ),
    step_alignment=Variable(
        "direction", r"\cos(\hat v_1(W - W_0), v_j)", "cosine of what was learnt with each teacher direction"
    ),
)
def step_direction(view: View):
    r"""The step $W - W_0 = \eta G$: how near to $\eta c_1 a \beta^\top$ it is, and where it points.

    $\hat v_1$ is its first right singular vector. NaN before the first step.
    """
    network = two_layer(view)
    moved = view.first_layer - network.first_layer(view.task.draw.start)
    c = hermite.fixed_coefficients(network.activation, 1)
    eta = giant_step(view.algorithm).size(jnp.sum(view.training.mask).astype(float))
    rank_one = eta * c[1] * jnp.outer(network.head(view.task.draw.start), beta(view))
    size = jnp.sqrt(_largest_eigenvalue(_smaller_gram(moved)))
    apart = jnp.sqrt(_largest_eigenvalue(_smaller_gram(moved - rank_one)))
    happened = size > 0
    top = _left_singular_vectors(moved.T, 1)[:, 0]
    cosines = jnp.abs(teacher_directions(view) @ top)
    return {
        "rank_one_gap": jnp.where(happened, apart / jnp.where(happened, size, 1), jnp.nan),
        "step_alignment": jnp.where(happened, cosines, jnp.nan),
    }


@probe(
    equivariant=True,
    hermite_content=Variable(
        "direction degree",
        r"E[f(x) H_k(\langle v_j, x \rangle)] / \sqrt{k!}",
        "what was learnt of each degree along each direction",
    ),
)
def hermite_content(view: View, *, degrees: int = 4, count: int = 10_000):
    r"""The output's Hermite coefficients along the teacher's directions, times $\sqrt{k!}$, for $k = 0, ...$

    Their squares are shares of $E f^2$; a teacher of one direction has $\sqrt{k!}\, c_{\star k}$.
    """
    draw = view.task.draw
    batch = view.task.data.fresh(draw.test_key, draw.truth, draw.space, count)
    seen = flat(batch) @ teacher_directions(view).T
    scales = jnp.array([sqrt(factorial(k)) for k in range(degrees + 1)])
    basis = hermite.polynomials(seen, degrees) / scales
    return jnp.einsum("i,ijk->jk", view.task.outputs(view.params, batch), basis) / count


def teacher_directions(view: View):
    """The directions that labels depend on."""
    if not isinstance(unbatched(view.task.data), AbstractIndexModel):
        raise InputError(
            f"{type(view.task.data).__name__} has no teacher directions; use SingleIndex or MultiIndex."
        )
    return view.task.draw.truth.directions


def _smaller_gram(matrix):
    return matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix


def _largest_eigenvalue(gram):
    return jnp.maximum(jnp.linalg.eigvalsh(gram)[-1], 0)


def _left_singular_vectors(matrix, count):
    """The first few, from an eigendecomposition of the smaller Gram matrix."""
    rows, columns = matrix.shape
    vectors = jnp.linalg.eigh(_smaller_gram(matrix))[1][:, ::-1][:, :count]
    if rows <= columns:
        return vectors
    left = matrix @ vectors
    return left / jnp.maximum(jnp.linalg.norm(left, axis=0), jnp.finfo(left.dtype).tiny)
