r"""Functions of one Gaussian number as sums of Hermite polynomials.

$$\sigma(z) = \sum_{k \geq 0} c_k H_k(z), \qquad c_k = \frac{1}{k!}\, \mathbb{E}[\sigma(Z) H_k(Z)], \qquad
  \mathbb{E}[\sigma(Z)^2] = \sum_k k!\, c_k^2$$

with the monic polynomials $H_0 = 1$, $H_1 = z$, $H_2 = z^2 - 1$, $H_{k+1} = z H_k - k H_{k-1}$.
"""

from __future__ import annotations

from collections.abc import Callable
from math import factorial, sqrt
from typing import Any

import jax
import numpy as np

from featlab.core.validation import InputError

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)
_TOLERANCE = 1e-14
_HALVINGS = 60  # a kink or a jump is cornered to the last digit
_INTERVALS = 10_000  # at a time; each kink or jump needs one or two


def coefficients(function: Callable, order: int) -> np.ndarray:
    """The coefficients $c_0, ..., c_{order}$ of a function, smooth or with kinks and jumps anywhere."""
    if not isinstance(order, int) or order < 0:
        raise InputError(f"coefficients(order=) must be a whole number of at least 0, got {order!r}.")
    scales = np.array([sqrt(factorial(k)) for k in range(order + 1)])
    values = _gaussian_mean(lambda z: _values(function, z)[:, None] * _normalised(z, order), 8 + 2 * sqrt(order))
    return values / scales


def fixed_coefficients(function: Callable, order: int) -> jax.Array:
    """The same within a compiled run, where the function's own numbers may be unknown: at fixed nodes.

    Exact to rounding for functions that are smooth on either side of 0.
    """
    edges = np.linspace(-16, 16, 65)  # 0 is among them
    half = (edges[1:] - edges[:-1])[:, None] / 2
    z = (edges[:-1, None] + half * (1 + _NODES)).ravel()
    weights = (half * _WEIGHTS).ravel() * np.exp(-(z**2) / 2) / sqrt(2 * np.pi)
    factorials = np.array([float(factorial(k)) for k in range(order + 1)])
    return function(jax.numpy.asarray(z)) @ jax.numpy.asarray(
        weights[:, None] * polynomials(z, order) / factorials
    )


def second_moment(function: Callable) -> float:
    r"""$\mathbb{E}[\sigma(Z)^2]$."""
    return float(_gaussian_mean(lambda z: _values(function, z)[:, None] ** 2, 10.0)[0])


def nonlinear_part(function: Callable) -> float:
    r"""$c_{>1}^2 = \sum_{k \geq 2} k!\, c_k^2$: what a function has beyond its mean and its best line."""
    mean, slope = coefficients(function, 1)
    return max(second_moment(function) - mean**2 - slope**2, 0.0)


def polynomials(z: Any, order: int) -> Any:
    """$H_0(z), ..., H_{order}(z)$ on a new last axis; for NumPy and for JAX arrays."""
    backend = jax.numpy if isinstance(z, jax.Array) else np
    values = [backend.ones_like(z), z]
    for k in range(1, order):
        values.append(z * values[k] - k * values[k - 1])
    return backend.stack(values[: order + 1], axis=-1)


def powers(order: int) -> np.ndarray:
    r"""The matrix $\xi$ with $x^p = \sum_k \xi_{p,k} H_k(x)$, for $p$ and $k$ up to the order.

    $x H_k = H_{k+1} + k H_{k-1}$, so row $p + 1$ follows from row $p$.
    """
    xi = np.zeros((order + 1, order + 1))
    xi[0, 0] = 1
    for p in range(order):
        xi[p + 1, 1:] += xi[p, :-1]
        xi[p + 1, :-1] += np.arange(1, order + 1) * xi[p, 1:]
    return xi


def _normalised(z: np.ndarray, order: int) -> np.ndarray:
    return polynomials(z, order) / np.sqrt([float(factorial(k)) for k in range(order + 1)])


def _values(function: Callable, z: np.ndarray) -> np.ndarray:
    """The function in double precision, whatever the precision of runs is at the moment."""
    with jax.enable_x64(True):
        values = np.asarray(function(z), float)
    if values.shape != z.shape:
        raise InputError(
            f"A function of one number is needed, applied elementwise; {z.shape} gave {values.shape}."
        )
    if not np.all(np.isfinite(values)):
        raise InputError(f"The function is not finite at z = {z[~np.isfinite(values)][0]:.3g}.")
    return values


def _gaussian_mean(integrand: Callable[[np.ndarray], np.ndarray], reach: float) -> np.ndarray:
    """The mean of a vector-valued function of a Gaussian number.

    By Gauss-Legendre on intervals that are halved wherever halving still changes something.
    """

    def integrals(left, right):
        half = (right - left)[:, None] / 2
        z = left[:, None] + half * (1 + _NODES)
        density = np.exp(-(z**2) / 2) / sqrt(2 * np.pi)
        values = integrand(z.ravel()).reshape(*z.shape, -1)
        return np.einsum("iq,iqk->ik", half * _WEIGHTS * density, values)

    edges = np.linspace(-reach - 4, reach + 4, 17)
    left, right = edges[:-1], edges[1:]
    whole, total = integrals(left, right), 0.0
    for _ in range(_HALVINGS):
        middle = (left + right) / 2
        first, second = integrals(left, middle), integrals(middle, right)
        total = total + np.sum((first + second), axis=0)
        changed = np.max(np.abs(first + second - whole), axis=1) > _TOLERANCE
        if not np.any(changed):
            return total
        if np.sum(changed) > _INTERVALS:
            raise InputError(
                "The function is not smooth between finitely many kinks and jumps, or has fewer digits than "
                "float64: its mean over a Gaussian number does not settle."
            )
        # What is not settled yet is taken back, and halved once more.
        total = total - np.sum((first + second)[changed], axis=0)
        left = np.concatenate([left[changed], middle[changed]])
        right = np.concatenate([middle[changed], right[changed]])
        whole = np.concatenate([first[changed], second[changed]])
    return total + np.sum(whole, axis=0)
