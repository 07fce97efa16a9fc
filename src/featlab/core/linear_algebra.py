"""Factorisations of large matrices, one at a time on a CPU.

There a batched factorisation hands its matrices to the very threads that wait for it: with few cores it may never
return, and it is slower than one after the other in any case. On a GPU batches stay batches.
"""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp


def _one_at_a_time(function: Callable) -> Callable:
    alone = jax.custom_batching.sequential_vmap(function)

    @functools.wraps(function)
    def called(*matrices):
        return (alone if jax.default_backend() == "cpu" else function)(*matrices)

    return called


@_one_at_a_time
def eigh(matrix):
    """Eigenvalues, rising, and eigenvectors of a symmetric matrix."""
    return tuple(jnp.linalg.eigh(matrix))


@_one_at_a_time
def eigvalsh(matrix):
    """Eigenvalues of a symmetric matrix, rising."""
    return jnp.linalg.eigvalsh(matrix)


@_one_at_a_time
def solve_positive(matrix, target):
    """The solution of a system with a positive definite matrix."""
    return jax.scipy.linalg.solve(matrix, target, assume_a="pos")


@_one_at_a_time
def qr(matrix):
    """An orthonormal basis of the columns, and the triangle that makes them of it."""
    return tuple(jnp.linalg.qr(matrix))
