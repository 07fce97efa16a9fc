r"""Where vectors live: the only source of random vectors, and the only source of the dimension.

Most theorems here are about $d \gg n$. When the data is Gaussian and training commutes with rotations, the
weights never leave the span of the vectors that were drawn, so a run can be simulated in the coordinates of
that span, exactly in law, for any $d$: `Span`. When it does not, vectors are stored whole: `Ambient`.

In the Gram-Schmidt frame of what was drawn so far (say $s$ vectors), $p$ fresh rows of $N(0, I_d)$ have

* $s$ independent $N(0, 1)$ entries on the frame, then
* the rows of a $p \times p$ Bartlett factor: $N(0, 1)$ below the diagonal and $\chi_{d-s-i}$ on it, then
* zeros.

A space is immutable: a draw returns the rows and the space that has room for them.
"""

import abc
import math
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, PRNGKeyArray

from featlab.core.validation import InputError

# Above this many degrees of freedom chi is normal to three digits of its own spread, itself d^-1/2 of its mean.
_CHI_IS_NORMAL = 1e6


class AbstractSpace(eqx.Module):
    """Gives out rows of coordinates. Inner products of rows are inner products of the vectors they stand for."""

    dimension: eqx.AbstractVar[float]

    @abc.abstractmethod
    def given(
        self, gram: Float[Array | np.ndarray, "row row"]
    ) -> tuple[Float[Array, "row column"], "AbstractSpace"]:
        """Rows with this Gram matrix, on fresh axes: signals and other fixed vectors. To be drawn first."""

    @abc.abstractmethod
    def uniform(self, key: PRNGKeyArray, count: int) -> tuple[Float[Array, "row column"], "AbstractSpace"]:
        """Rows whose d coordinates are i.i.d. uniform on [-1, 1]; to be drawn before any Gaussian row."""

    @abc.abstractmethod
    def gaussian(
        self,
        key: PRNGKeyArray,
        count: int,
        off: Float[Array, "direction column"] | None = None,
        *,
        unit_norm: bool = False,
        real: Bool[Array, " row"] | None = None,
    ) -> tuple[Float[Array, "row column"], "AbstractSpace"]:
        """Rows of $N(0, I_d)$, or $N(0, I_d/d)$ with `unit_norm`, projected off the directions in `off`.

        Rows that `real` marks False are zero and take no dimension: padding changes nothing for the others.
        """

    @abc.abstractmethod
    def fresh(
        self,
        key: PRNGKeyArray,
        count: int,
        off: Float[Array, "direction column"] | None = None,
        *,
        unit_norm: bool = False,
        with_residual: bool = False,
    ) -> Any:
        """Test vectors: their coordinates in the frame, which they never enter.

        With `with_residual` also the length of what sticks out of the frame.
        """

    @abc.abstractmethod
    def fresh_products(
        self,
        key: PRNGKeyArray,
        weights: Float[Array, "row column"],
        count: int,
        off: Float[Array, "direction column"] | None = None,
        *,
        unit_norm: bool = False,
        normals: Float[Array, "count rank"] | None = None,
    ) -> Float[Array, "count row"]:
        r"""Inner products of the weights with fresh test vectors: $Lz$ with $L L^\top$ the weights' Gram matrix.

        `normals` are the $z$, from `product_normals` with the same key, where they are wanted more than once.
        """

    @abc.abstractmethod
    def length(self, scale) -> Float[Array, ""]:
        r"""The length $s\sqrt d$ of a vector with $N(0, s^2)$ coordinates; by convention 1 at $d = \infty$."""

    @abc.abstractmethod
    def norms(self, rows: Float[Array, "row column"]) -> Float[Array, " row"]:
        """Euclidean lengths."""


class Ambient(AbstractSpace):
    """Vectors stored whole, all d coordinates of them."""

    dimension: float
    size: int = eqx.field(static=True)  # d, as the length of an array
    used: int = eqx.field(static=True)  # axes taken by given rows

    def __init__(self, dimension, size: int | None = None, used: int = 0):
        if size is None:
            if not (math.isfinite(dimension) and dimension >= 1 and dimension == int(dimension)):
                raise InputError(
                    f"Ambient stores d-vectors, so d must be a whole number of at least 1, got {dimension:g}; "
                    "Span takes any d, also infinity."
                )
            size = int(dimension)
        self.dimension, self.size, self.used = dimension, size, used

    def given(self, gram):
        rows = _place(_lower(gram), self.used, self.size)
        return rows, Ambient(self.dimension, self.size, self.used + len(gram))

    def uniform(self, key, count):
        return _uniforms(key, count, self.size), self

    def gaussian(self, key, count, off=None, *, unit_norm=False, real=None):
        rows = _off(_normals(key, count, self.size), off)
        rows = rows / jnp.sqrt(self.dimension) if unit_norm else rows
        return rows if real is None else jnp.where(real[:, None], rows, 0), self

    def fresh(self, key, count, off=None, *, unit_norm=False, with_residual=False):
        rows, _ = self.gaussian(key, count, off, unit_norm=unit_norm)
        return (rows, jnp.zeros(count)) if with_residual else rows

    def fresh_products(self, key, weights, count, off=None, *, unit_norm=False, normals=None):
        products = _gaussian_products(key, _off(weights, off), count, normals)
        return products / jnp.sqrt(self.dimension) if unit_norm else products

    def length(self, scale):
        return scale * jnp.sqrt(self.dimension)

    def norms(self, rows):
        return jnp.linalg.norm(rows, axis=-1)


class Span(AbstractSpace):
    r"""The span of the vectors drawn so far: exact in law for any d, at a cost that does not depend on d.

    At $d = \infty$ noise of unit length is drawn as unit vectors of the frame. Weights $N(0, I_d)$ then have
    $N(0, 1)$ products with them and infinite length: their own axes are *unbounded*, a unit on one of them
    stands for $\sqrt d$, and a fresh noise vector has $N(0, 1)$ there and exactly 0 everywhere else.
    """

    dimension: float
    columns: int = eqx.field(static=True)  # room in the frame
    used: int = eqx.field(static=True)  # axes taken
    aligned: bool = eqx.field(static=True)  # the axes taken so far are coordinate axes
    infinite: bool = eqx.field(static=True)
    real: Bool[Array, " column"]  # False on the axes of padding
    unbounded: Bool[Array, " column"]  # axes on which a unit stands for sqrt(d), at d = infinity

    @staticmethod
    def create(dimension, columns: int) -> "Span":
        """An empty frame with room for `columns` vectors."""
        infinite = isinstance(dimension, float) and math.isinf(dimension)
        axes = jnp.zeros(columns, bool)
        return Span(dimension, columns, 0, True, infinite, axes, axes)

    def given(self, gram):
        if not self.aligned:
            raise InputError("Span.given must come before any Gaussian row: given vectors fix the frame.")
        self._make_room(len(gram))
        return self._grown(_place(_lower(gram), self.used, self.columns), len(gram), aligned=True)

    def uniform(self, key, count):
        if not self.aligned or self.infinite:
            raise InputError("Span.uniform needs a finite d and must come before any Gaussian row.")
        self._make_room(count)
        on_frame_key, rest_key = jax.random.split(key)
        on_frame = _uniforms(on_frame_key, count, self.used)
        gram = _uniform_gram(rest_key, count, self.dimension - self.used)
        rows = jnp.concatenate([on_frame, jnp.linalg.cholesky(gram)], axis=1)
        return self._grown(_place(rows, 0, self.columns), count, aligned=False)

    def gaussian(self, key, count, off=None, *, unit_norm=False, real=None):
        self._make_room(count)
        real = jnp.ones(count, bool) if real is None else real
        # One stream a row: even places go to the frame, odd ones to the Bartlett factor, so that either may grow
        # without changing the other.
        normals = _normals(key, count, 2 * max(self.columns, _CHI_NORMALS + count))
        even, odd = normals[:, 0::2], normals[:, 1::2]
        on_frame = self._on_real_axes(even)[:, : self.used]
        if self.infinite:
            own = jnp.eye(count)
            on_frame = jnp.where(self.unbounded[None, : self.used] | unit_norm, 0, on_frame)
        else:
            degrees = _bartlett_degrees(self.dimension, jnp.sum(self.real), count)
            chi = jax.vmap(_chi)(odd[:, :_CHI_NORMALS], degrees)
            own = jnp.tril(odd[:, _CHI_NORMALS:][:, :count], -1) + jnp.diag(chi)
        if off is not None:
            on_frame = _off(on_frame, off[:, : self.used])
        rows = jnp.where(real[:, None], jnp.concatenate([on_frame, own], axis=1), 0)
        if unit_norm and not self.infinite:
            rows = rows / jnp.sqrt(self.dimension)
        unbounded = self.infinite and not unit_norm
        return self._grown(_place(rows, 0, self.columns), count, aligned=False, real=real, unbounded=unbounded)

    def fresh(self, key, count, off=None, *, unit_norm=False, with_residual=False):
        rows_key, residual_key = jax.random.split(key)
        normals = self._on_real_axes(_normals(rows_key, count, self.columns))
        rows = _off(normals * self._spread(unit_norm)[None], off)
        if not with_residual:
            return rows
        if self.infinite:
            return rows, jnp.ones(count)
        normals = _normals(residual_key, count, _CHI_NORMALS)
        residual = jax.vmap(_chi, in_axes=(0, None))(normals, self.dimension - jnp.sum(self.real))
        return rows, residual / jnp.sqrt(self.dimension) if unit_norm else residual

    def fresh_products(self, key, weights, count, off=None, *, unit_norm=False, normals=None):
        return _gaussian_products(key, _off(weights, off) * self._spread(unit_norm)[None], count, normals)

    def length(self, scale):
        return jnp.ones(()) if self.infinite else scale * jnp.sqrt(self.dimension)

    def norms(self, rows):
        if self.infinite:
            raise InputError("The length of a weight vector is infinite at d = inf; give a finite d to read it.")
        return jnp.linalg.norm(rows, axis=-1)

    def _on_real_axes(self, normals):
        """The k-th normal of each row on the k-th axis that is no padding, so that padding changes nothing."""
        place = jnp.clip(jnp.cumsum(self.real) - 1, 0)
        return jnp.where(self.real[None], normals[:, place], 0)

    def _spread(self, unit_norm):
        """Standard deviation of a fresh vector's entry on each axis."""
        if not self.infinite:
            return jnp.where(self.real, 1 / jnp.sqrt(self.dimension) if unit_norm else 1.0, 0.0)
        if not unit_norm:
            raise InputError("A fresh N(0, I_d) vector is infinitely long at d = inf; ask for unit_norm.")
        return jnp.where(self.unbounded, 1.0, 0.0)

    def _make_room(self, count):
        if self.used + count > self.columns:
            raise InputError(
                f"The span has room for {self.columns} vectors and {self.used + count} were drawn: "
                "a data model or network draws more than its vectors() says."
            )

    def _grown(self, rows, count, *, aligned, real=None, unbounded=False):
        axes = slice(self.used, self.used + count)
        real = self.real.at[axes].set(True if real is None else real)
        space = Span(
            self.dimension,
            self.columns,
            self.used + count,
            aligned,
            self.infinite,
            real,
            self.unbounded.at[axes].set(unbounded) & real,
        )
        return rows, space


def _lower(gram):
    """The triangle whose rows have these products; of orthonormal rows, known as such, the identity itself."""
    known = isinstance(gram, np.ndarray) and np.array_equal(gram, np.eye(len(gram)))
    return jnp.asarray(gram, float) if known else jnp.linalg.cholesky(gram)


def orthonormal(directions: Float[Array, "direction column"]) -> Float[Array, "direction column"]:
    """An orthonormal basis of the span of linearly independent rows."""
    return jnp.linalg.qr(directions.T)[0].T


def _off(rows, directions):
    """Rows with their components along the directions removed."""
    if directions is None:
        return rows
    basis = orthonormal(directions)
    return rows - (rows @ basis.T) @ basis


def _bartlett_degrees(dimension, rank, count):
    r"""Degrees of freedom $d - s - i$ of what is left of the i-th row beside the frame and the rows before it."""
    return dimension - rank - jnp.arange(count)


def _place(rows, start, columns):
    return jnp.zeros((len(rows), columns), rows.dtype).at[:, start : start + rows.shape[1]].set(rows)


def product_normals(key, weights_shape: tuple[int, ...], count: int) -> Float[Array, "count rank"]:
    """The normals that `fresh_products` turns into products with weights of this shape."""
    return jax.random.normal(key, (count, min(weights_shape)), jnp.float32).astype(float)


def _gaussian_products(key, weights, count, normals):
    """Products of weights with N(0, I) vectors, from a QR of the weights instead of the vectors themselves."""
    upper = jnp.linalg.qr(weights.T, mode="r")
    # A QR is unique up to signs; fixing them makes equal Gram matrices give equal products.
    upper = upper * jnp.where(jnp.diagonal(upper) < 0, -1.0, 1.0)[:, None]
    normals = product_normals(key, weights.shape, count) if normals is None else normals
    return normals @ upper


# Draws are float32 whatever the precision of the run: float64 then repeats the same experiment, only rounded
# less. Row i depends on (key, i) alone and its entries on their position alone, so padding changes nothing.
def _normals(key, count, length):
    def row(i):
        return jax.random.normal(jax.random.fold_in(key, i), (length,), jnp.float32)

    return jax.vmap(row)(jnp.arange(count)).astype(float)


def _uniforms(key, count, length):
    def row(i):
        return jax.random.uniform(jax.random.fold_in(key, i), (length,), jnp.float32, -1.0, 1.0)

    return jax.vmap(row)(jnp.arange(count)).astype(float)


_TRIES = 12  # each is accepted with probability above 0.95: all fail less than once in 1e15 draws
_CHI_NORMALS = 3 * _TRIES + 2


def _chi(normals, nu):
    r"""A chi variate of nu degrees of freedom, made of a fixed number of normals.

    $\chi_\nu = \sqrt{2 g}$ with $g$ Gamma of shape $a = \nu/2$, by the method of Marsaglia and Tsang (2000) for
    shape $a + 1$ and $g_a = g_{a+1} U^{1/a}$. The first accepted of a fixed number of candidates needs no loop,
    and half the squared length of two normals is $-\log U$.
    """
    minus_log_u = jnp.sum(normals[: 2 * _TRIES + 2].reshape(-1, 2) ** 2, axis=1) / 2
    x = normals[2 * _TRIES + 2 :]
    a = jnp.minimum(nu, _CHI_IS_NORMAL) / 2
    b = a + 1 - 1 / 3
    c = 1 / jnp.sqrt(9 * b)
    excess = c * x * (3 + 3 * c * x + (c * x) ** 2)  # (1 + cx)^3 - 1
    positive = 1 + c * x > 0
    log_cube = jnp.log1p(jnp.where(positive, excess, 0))
    accepted = positive & (-minus_log_u[1:] < x**2 / 2 + b * (log_cube - excess))
    gamma = b * (1 + excess[jnp.argmax(accepted)]) * jnp.exp(-minus_log_u[0] / a)
    limit = jnp.sqrt(jnp.maximum(nu - 0.5, 0)) + x[0] / math.sqrt(2)
    return jnp.where(nu > _CHI_IS_NORMAL, limit, jnp.sqrt(2 * gamma))


_CHUNK = 512  # coordinates summed at a time


def _uniform_gram(key, count, dimension):
    """The Gram matrix of rows of i.i.d. uniform coordinates, without storing the rows.

    The sum itself up to a million coordinates; beyond, its central limit (entries are uncorrelated, with
    variance d/9 off the diagonal and 4d/45 on it), whose error is of order d^-1/2 of its spread.
    """

    def add(chunk, gram):
        rows = _uniforms(jax.random.fold_in(key, chunk), count, _CHUNK)
        inside = chunk * _CHUNK + jnp.arange(_CHUNK) < dimension
        rows = jnp.where(inside[None], rows, 0)
        return gram + rows @ rows.T

    def exact():
        # Under vmap this runs beside the limit, whatever the dimension.
        chunks = jnp.ceil(jnp.minimum(dimension, _CHI_IS_NORMAL) / _CHUNK).astype(int)
        return jax.lax.fori_loop(0, chunks, add, jnp.zeros((count, count)))

    def limit():
        lower = jnp.tril(_normals(key, count, count))
        off_diagonal = jnp.tril(lower, -1) * jnp.sqrt(dimension) / 3
        diagonal = dimension / 3 + jnp.diagonal(lower) * jnp.sqrt(4 * dimension / 45)
        return off_diagonal + off_diagonal.T + jnp.diag(diagonal)

    dimension = jnp.asarray(dimension, float)
    return jax.lax.cond(dimension > _CHI_IS_NORMAL, limit, exact)
