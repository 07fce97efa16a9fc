"""Singular values of weights and features, their outliers, and what the outliers are made of."""

from __future__ import annotations

from math import factorial, sqrt

import jax.numpy as jnp

from featlab.core.linear_algebra import eigh, eigvalsh, qr
from featlab.core.sees import Sees
from featlab.data import AbstractIndexModel
from featlab.networks import AbstractProductNetwork, AbstractTwoLayer
from featlab.probes._probe import Variable, View, probe
from featlab.probes.ridge import beta, flat, giant_step, spiked_features, two_layer
from featlab.theory import hermite

OUTSIDE = 1.05  # of the bulk's edge, from which on a singular value counts as an outlier


@probe(
    of=(AbstractProductNetwork,),
    sees=Sees.VECTORS,
    weight_singular_value=Variable("weight_rank", r"s_i(W)", "singular values of the first layer"),
    weight_edge=Variable("", r"1 + \sqrt{N/d}", "where the bulk of a Gaussian first layer ends"),
    weight_outliers=Variable(
        "", r"\#\{s_i(W) > 1.05\,(1 + \sqrt{N/d})\}", "singular values of weights beyond the bulk"
    ),
)
def weight_spectrum(view: View):
    r"""Singular values of $W$, beside the edge of $W_0$, whose entries are $N(0, s^2/d)$."""
    network, weights = view.problem.network, view.first_layer
    scale = getattr(network, "init_scale", 1.0) if isinstance(network, AbstractTwoLayer) else jnp.nan
    edge = scale * (1 + jnp.sqrt(len(weights) / view.problem.draw.space.dimension))
    values = jnp.sqrt(jnp.maximum(eigvalsh(_smaller_gram(weights))[::-1], 0))
    return {
        "weight_singular_value": values,
        "weight_edge": edge,
        "weight_outliers": jnp.sum(values > OUTSIDE * edge),
    }


@probe(
    sees=Sees.VECTORS,
    feature_singular_value=Variable("feature_rank", r"s_i(F) / \sqrt n", "singular values of features"),
    untrained_edge=Variable("", r"s_1(F_0) / \sqrt n", "the largest singular value of the start's features"),
    feature_outliers=Variable(
        "", r"\#\{s_i(F) > 1.05\, s_1(F_0)\}", "singular values of features beyond the start's"
    ),
)
def feature_spectrum(view: View, *, holdout: int = 1):
    r"""Singular values of $F/\sqrt n$ on an independent set, beside the largest one before training.

    The limit of that largest one is `theory.random_features.edge`.
    """
    chosen = view.problem.samples(holdout)
    n = jnp.sum(chosen.mask)

    def values(params):
        features = jnp.where(chosen.mask[:, None], view.problem.features(params, chosen.inputs), 0)
        return jnp.sqrt(jnp.maximum(eigvalsh(_smaller_gram(features))[::-1], 0) / n)

    now, edge = values(view.params), values(view.problem.draw.start)[0]
    return {
        "feature_singular_value": now,
        "untrained_edge": edge,
        "feature_outliers": jnp.sum(now > OUTSIDE * edge),
    }


@probe(
    of=(AbstractTwoLayer,),
    sees=Sees.VECTORS,
    spike_overlap=Variable(
        "spike",
        r"\frac{u_k^\top (F - F_0)\, a^{\circ k}}{\sqrt n\, \|\beta\|^k \|a^{\circ k}\|^2 N^{(k-1)/2}}",
        "spike k in the features, for a unit of the learnt direction and of the head",
    ),
)
def spike_overlaps(view: View, *, spike: tuple[int, ...] = (1, 2, 3)):
    r"""How much of spike $k$ there is in the features of an independent set.

    $u_k$ is what $(\tilde X \beta)^{\circ k}$ adds to lower powers, in the limit
    $H_k(\tilde X \beta / \|\beta\|)$ at length one, so that lower spikes leave no trace in the overlap,
    however strong they are. Its law is $c_1^k c_k \sqrt{k!}\, \eta^k N^{(1-k)/2}$, of order
    $n^{k(\alpha - 1/2) + 1/2}$; the lengths of $\beta$ and of $a^{\circ k}$, which tend to constants, are
    divided out.
    """
    network, start, chosen = two_layer(view), view.problem.draw.start, view.problem.holdout(0)
    change = view.problem.features(view.params, chosen.inputs) - view.problem.features(start, chosen.inputs)
    head, length = network.head(start), jnp.linalg.norm(beta(view))
    right = jnp.stack([head**k / jnp.sum(head ** (2 * k)) for k in spike], axis=1)
    orders = jnp.array(spike)
    scale = len(head) ** (1 / 2 - orders / 2) / length**orders / jnp.sqrt(jnp.sum(chosen.mask))
    return scale * jnp.einsum("ik,ir,rk->k", _directions_of_spikes(view, spike), change, right)


@probe(
    sees=Sees.VECTORS,
    singular_overlap=Variable(
        "spike",
        r"\max_i |\langle u_k, \hat u_i \rangle|",
        "largest cosine of H_k with one of the first singular vectors",
    ),
)
def singular_overlaps(view: View, *, spike: tuple[int, ...] = (1, 2, 3)):
    r"""Whether spikes stand alone: $\hat u_i$ are the first $2 \max k$ left singular vectors of $F$."""
    chosen = view.problem.holdout(0)
    features = jnp.where(chosen.mask[:, None], view.problem.features(view.params, chosen.inputs), 0)
    first = _left_singular_vectors(features, 2 * max(spike))
    return jnp.max(jnp.abs(_directions_of_spikes(view, spike).T @ first), axis=1)


def _directions_of_spikes(view: View, spike: tuple[int, ...]):
    """What each power of the learnt direction adds to lower ones, on the independent set, at length one."""
    chosen, direction = view.problem.holdout(0), beta(view)
    seen = flat(chosen) @ (direction / jnp.linalg.norm(direction))
    powers = jnp.where(chosen.mask[:, None], hermite.polynomials(seen, max(spike)), 0)
    orthogonal, triangle = qr(powers)
    return (orthogonal * jnp.sign(jnp.diagonal(triangle))[None])[:, list(spike)]


@probe(
    of=(AbstractTwoLayer,),
    sees=Sees.VECTORS,
    spiked_gap=Variable(
        "order",
        r"\|F - F_\ell\|_{op} / \sqrt n",
        "what the features have beyond those of the start and the spikes",
    ),
)
def spiked_gaps(view: View, *, order: tuple[int, ...] = (0, 1, 2)):
    r"""The distance of the features from the theory's $F_\ell$, on an independent set."""
    chosen = view.problem.holdout(0)
    features, n = view.problem.features(view.params, chosen.inputs), jnp.sum(chosen.mask)

    def gap(spikes):
        difference = jnp.where(chosen.mask[:, None], features - spiked_features(view, chosen, spikes), 0)
        return jnp.sqrt(_largest_eigenvalue(_smaller_gram(difference)) / n)

    return jnp.stack([gap(spikes) for spikes in order])


@probe(
    of=(AbstractIndexModel, AbstractTwoLayer),
    sees=Sees.VECTORS,
    rank_one_gap=Variable(
        "",
        r"\|G - c_1 a \beta^\top\|_{op} / \|G\|_{op}",
        "what the first step is beyond one direction for all neurons",
    ),
    step_alignment=Variable(
        "direction",
        r"\|P_r(W - W_0)\, v_j\|",
        "length of each teacher direction within the first right singular vectors of what was learnt",
    ),
    step_share=Variable(
        "direction",
        r"\|(W - W_0)\, v_j\| / \|W - W_0\|_F",
        "share of the neurons' movement along each teacher direction",
    ),
)
def step_direction(view: View):
    r"""The step $W - W_0 = \eta G$: how near to $\eta c_1 a \beta^\top$ it is, and where it points.

    Of as many right singular vectors as the teacher has directions. NaN before the first step.
    """
    network = two_layer(view)
    moved = view.first_layer - network.first_layer(view.problem.draw.start)
    c = hermite.fixed_coefficients(network.activation, 1)
    eta = giant_step(view.algorithm).size(jnp.sum(view.training.mask).astype(float))
    rank_one = eta * c[1] * jnp.outer(network.head(view.problem.draw.start), beta(view))
    size = jnp.sqrt(_largest_eigenvalue(_smaller_gram(moved)))
    apart = jnp.sqrt(_largest_eigenvalue(_smaller_gram(moved - rank_one)))
    happened = size > 0
    directions = teacher_directions(view)
    along = jnp.linalg.norm(moved @ directions.T, axis=0)
    cosines = jnp.linalg.norm(directions @ _left_singular_vectors(moved.T, len(directions)), axis=1)
    return {
        "rank_one_gap": jnp.where(happened, apart / jnp.where(happened, size, 1), jnp.nan),
        "step_alignment": jnp.where(happened, cosines, jnp.nan),
        "step_share": jnp.where(happened, along / jnp.where(happened, jnp.linalg.norm(moved), 1), jnp.nan),
    }


@probe(
    of=(AbstractIndexModel,),
    sees=Sees.VECTORS,
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
    draw = view.problem.draw
    batch = view.problem.data.fresh(draw.test_key, draw.truth, draw.space, count)
    seen = flat(batch) @ teacher_directions(view).T
    scales = jnp.array([sqrt(factorial(k)) for k in range(degrees + 1)])
    basis = hermite.polynomials(seen, degrees) / scales[None, None]
    return jnp.einsum("i,ijk->jk", view.problem.outputs(view.params, batch), basis) / count


def teacher_directions(view: View):
    """The directions that labels depend on."""
    return view.problem.draw.truth.directions


def _smaller_gram(matrix):
    return matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix


def _largest_eigenvalue(gram):
    return jnp.maximum(eigvalsh(gram)[-1], 0)


def _left_singular_vectors(matrix, count):
    """The first few, from an eigendecomposition of the smaller Gram matrix."""
    rows, columns = matrix.shape
    vectors = eigh(_smaller_gram(matrix))[1][:, ::-1][:, :count]
    if rows <= columns:
        return vectors
    left = matrix @ vectors
    return left / jnp.maximum(jnp.linalg.norm(left, axis=0, keepdims=True), jnp.finfo(left.dtype).tiny)
