r"""What is measured, as functions of arrays: movement, alignment, effective rank, margins.

Arrays are NumPy's, in double precision, so that readings of JAX and of PyTorch are the same arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import jax
import numpy as np

from featlab.theory import agop as theory


def movement(before: Sequence[np.ndarray], after: Sequence[np.ndarray]) -> float:
    r"""$\|\theta - \theta_0\| / \|\theta_0\|$, all arrays taken together; NaN where it began at 0 and left."""
    far = sum(float(np.sum((now - then) ** 2)) for now, then in zip(after, before))
    size = sum(float(np.sum(then**2)) for then in before)
    if size == 0:
        return 0.0 if far == 0 else float("nan")
    return float(np.sqrt(far / size))


def cosine(one: np.ndarray, other: np.ndarray) -> float:
    r"""$\langle A, B \rangle / (\|A\|_F \|B\|_F)$; 0 where one of them is."""
    return float(_exactly(theory.cosine, one, other))


def target_alignment(kernel: np.ndarray, targets: np.ndarray) -> float:
    r"""$\langle K, Y Y^\top \rangle / (\|K\|_F \|Y Y^\top\|_F)$."""
    return cosine(kernel, targets @ targets.T)


def outer_products(gradients: np.ndarray) -> np.ndarray:
    """The mean of the outer products of the rows."""
    return np.asarray(_exactly(theory.agop, gradients))


def root(matrix: np.ndarray) -> np.ndarray:
    """The positive semidefinite square root of such a matrix."""
    return np.asarray(_exactly(lambda one: theory.power(one, 0.5), matrix))


def eigenvalues(matrix: np.ndarray) -> np.ndarray:
    """Those of a positive semidefinite matrix, the largest first, with a sum of 1."""
    values = np.maximum(np.linalg.eigvalsh(matrix)[::-1], 0)
    return values / max(values.sum(), np.finfo(float).tiny)


def effective_rank(matrix: np.ndarray) -> float:
    """Of a positive semidefinite matrix: r equal eigenvalues beside zeros count as r."""
    return float(_exactly(theory.effective_rank, matrix))


def margins(outputs: np.ndarray, labels: np.ndarray) -> np.ndarray:
    r"""$y f(x)$ for one output and labels $\pm 1$; for several, the label's own minus the largest other one."""
    if outputs.shape[1] == 1:
        return labels * outputs[:, 0]
    rows = np.arange(len(labels))
    others = outputs.copy()
    others[rows, labels] = -np.inf
    return outputs[rows, labels] - others.max(axis=1)


def departure(change: np.ndarray, linear: np.ndarray) -> float:
    r"""$\|\Delta f - J_0 \Delta\theta\| / \|\Delta f\|$: how much of the change the linearisation misses.

    Where nothing changed it is 0 if the linearisation says so too, and infinite if it does not.
    """
    size = np.linalg.norm(change)
    if size == 0:
        return float("inf") if np.any(linear) else 0.0
    return float(np.linalg.norm(change - linear) / size)


def _exactly(function: Callable, *matrices: np.ndarray):
    with jax.enable_x64(True):
        return function(*matrices)
