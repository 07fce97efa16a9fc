r"""The average gradient outer product, and how to compare one positive matrix with another.

$$\mathrm{AGOP}(f) = \frac1n \sum_i \nabla f(x_i) \nabla f(x_i)^\top$$

It says along which directions of the input a function changes. The neural feature ansatz is that a trained first
layer has $W^\top W \propto \mathrm{AGOP}^s$. Radhakrishnan, Beaglehole, Pandit and Belkin (2022). All functions
take plain arrays, in whatever precision these have.
"""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from featlab.core.linear_algebra import eigh, eigvalsh

Matrix = Float[Array | np.ndarray, "column other"]
POWERS = np.arange(0.05, 2.005, 0.01)  # among which the best one is looked for


def agop(
    gradients: Float[Array | np.ndarray, "sample column"], count: float | Array | None = None
) -> Float[Array, "column other"]:
    """The mean of the outer products; of `count` samples, where rows beyond them are 0."""
    gradients = jnp.asarray(gradients)
    return gradients.T @ gradients / (len(gradients) if count is None else count)


def power(matrix: Matrix, exponent: float) -> Float[Array, "column other"]:
    """A power above 0 of a positive semi-definite matrix; eigenvalues within rounding of 0 count as 0."""
    values, vectors = eigh(matrix)
    real = values > len(values) * jnp.finfo(values.dtype).eps * values[-1]
    return (vectors * jnp.where(real, values, 0)[None] ** exponent) @ vectors.T


def cosine(one: Matrix, other: Matrix) -> Float[Array, ""]:
    r"""$\langle A, B \rangle / \|A\| \|B\|$: 1 where they are proportional, whichever way both are turned."""
    size = jnp.linalg.norm(one) * jnp.linalg.norm(other)
    return jnp.sum(one * other) / jnp.where(size > 0, size, 1)


def correlation(one: Matrix, other: Matrix) -> Float[Array, ""]:
    """Pearson's correlation of the entries, as in the paper: the cosine once their means are taken away."""
    return cosine(one - jnp.mean(one), other - jnp.mean(other))


def shape_cosine(one: Matrix, other: Matrix, dimension: float | Array | None = None) -> Float[Array, ""]:
    r"""The cosine of $A - \frac{\mathrm{tr} A}{d} I$ with $B - \frac{\mathrm{tr} B}{d} I$.

    Any two positive matrices share a part along $I$, for which cosine and correlation give credit. An untrained
    layer has both of about 0.8 with its function's AGOP, and a shape cosine of about 0. `dimension` is d where the
    matrices hold fewer columns, being 0 in all others.
    """
    d = len(one) if dimension is None else dimension

    def inner(a, b):  # of what is left without the traces
        return jnp.sum(a * b) - jnp.trace(a) * jnp.trace(b) / d

    size = jnp.sqrt(jnp.maximum(inner(one, one) * inner(other, other), 0))
    return inner(one, other) / jnp.where(size > 0, size, 1)


def best_power(one: Matrix, other: Matrix, dimension: float | Array | None = None) -> Float[Array, ""]:
    r"""The power s, 0.05 to 2 in steps of 0.01, with the largest shape cosine of $A$ with $B^s$.

    Of a matrix whose eigenvalues are equal or 0 all powers are alike, and this says nothing.
    """
    d = len(one) if dimension is None else dimension
    values, vectors = eigh(other)
    real = values > len(values) * jnp.finfo(values.dtype).eps * values[-1]
    # B^s has B's eigenvectors, so all that is needed of `one` are its forms along them.
    forms = jnp.sum(vectors * (one @ vectors), axis=0) - jnp.trace(one) / d
    powers = jnp.where(real, values / values[-1], 0)[None] ** POWERS[:, None]
    lengths = jnp.sqrt(jnp.sum(powers**2, axis=1) - jnp.sum(powers, axis=1) ** 2 / d)
    return jnp.asarray(POWERS)[jnp.argmax(powers @ forms / lengths)]


def effective_rank(matrix: Matrix) -> Float[Array, ""]:
    r"""$\exp(-\sum_j p_j \log p_j)$ with $p_j = \mu_j / \sum_k \mu_k$: r for r equal eigenvalues beside zeros.

    Roy and Vetterli (2007).
    """
    values = jnp.maximum(eigvalsh(matrix), 0)
    total = jnp.sum(values)
    shares = values / jnp.where(total > 0, total, 1)
    return jnp.exp(-jnp.sum(shares * jnp.log(jnp.where(shares > 0, shares, 1))))


def subspace_mass(matrix: Matrix, directions: Float[Array | np.ndarray, "direction column"]) -> Float[Array, ""]:
    r"""$\mathrm{tr}(U M U^\top) / \mathrm{tr}\, M$: the share of the trace within orthonormal directions."""
    total = jnp.trace(matrix)
    return jnp.sum((directions @ matrix) * directions) / jnp.where(total > 0, total, 1)


def subspace_overlap(
    matrix: Matrix, directions: Float[Array | np.ndarray, "direction column"]
) -> Float[Array, ""]:
    r"""$\frac1r \|U V_r\|^2$: how much of the r top eigenvectors lies within r orthonormal directions."""
    top = eigh(matrix)[1][:, -len(directions) :]
    return jnp.sum((directions @ top) ** 2) / len(directions)
