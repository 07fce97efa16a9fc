"""Ridge regression for 50 penalties: `python benchmarks/ridge_path.py [--large]`.

`ridge_path` factorises once for all penalties, 1e-4 to 1e2, compiled, warm, in float64. Beside it, in the same
run, scikit-learn's `Ridge(solver="cholesky")` fitted anew for each penalty; the same steps with the Gram matrix
computed once; and a path by one Householder tridiagonalisation, without eigenvectors. All give the same numbers to
1e-8. With m = min(n, N) and K penalties they take

    eigenvectors          2 n m^2 + (4/3 + 4/3 + 2) m^3 + 4 m^2 K    Gram; tridiagonal, its eigenvectors, back
    tridiagonalisation    2 n m^2 + 4/3 m^3 + 4 m^2 K
    anew for each         K (2 n m^2 + m^3 / 3)                      Gram and Cholesky
    Gram matrix once      2 n m^2 + K m^3 / 3

operations, and 2 n N K more for N > n; their rate is a share of the machine's in a float64 matrix product. Runs
take turns, medians count. What is fitted anew for each penalty is timed for every fifth of them at the largest
size and for every tenth with `--large`: n = 20,000, N = 8,000, for a GPU. There our own `ridge`, anew for each, is
the fairer rival. (NumPy computes half of a symmetric product, so that its share may exceed 1.)
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.linalg

from featlab.algorithms import ridge, ridge_path

SIZES = [(2000, 1000, 1), (1000, 2000, 1), (4000, 2000, 5)]  # n, N, and every k-th penalty anew
OURS = "ridge_path"
PENALTIES = np.geomspace(1e-4, 1e2, 50)


def problem(n: int, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Centred ReLU features of Gaussian inputs, labels, and the penalties of a sum of squares, lambda n."""
    random = np.random.default_rng(0)
    inputs, weights = random.normal(size=(n, n // 2)), random.normal(size=(n // 2, width)) / np.sqrt(n // 2)
    features = np.maximum(inputs @ weights, 0) - 1 / np.sqrt(2 * np.pi)
    return features, inputs[:, 0] + random.normal(size=n), PENALTIES * n


def tridiagonal_path(features, labels, penalties):
    r"""$Q (T + \mu I)^{-1} Q^\top$ with $Q T Q^\top$ the Gram matrix: $Q$ is never formed."""
    rows, columns = features.shape
    small = features.T @ features if columns <= rows else features @ features.T
    target = features.T @ labels if columns <= rows else labels
    reflectors, diagonal, beside, scales = jax.lax.linalg.tridiagonal(small, lower=True)[:4]

    def turned(vectors, transpose):  # the first row is not touched
        rest = jax.lax.linalg.ormqr(reflectors[1:, :-1], scales, vectors[1:], transpose=transpose)
        return jnp.concatenate([vectors[:1], rest])

    every = (len(penalties), len(small))
    lower, upper = jnp.pad(beside, (1, 0)), jnp.pad(beside, (0, 1))
    bands = (jnp.broadcast_to(lower, every), diagonal + penalties[:, None], jnp.broadcast_to(upper, every))
    right = jnp.broadcast_to(turned(target[:, None], True)[:, 0], every)
    solutions = turned(jax.lax.linalg.tridiagonal_solve(*bands, right[..., None])[..., 0].T, False)
    return solutions if columns <= rows else features.T @ solutions


def anew(features: np.ndarray, labels: np.ndarray, penalty: float) -> np.ndarray:
    """What scikit-learn does for one penalty: the smaller Gram matrix, and a Cholesky solution."""
    rows, columns = features.shape
    if columns <= rows:
        return solved(features.T @ features, penalty, features.T @ labels)
    return features.T @ solved(features @ features.T, penalty, labels)


def solved(gram: np.ndarray, penalty: float, target: np.ndarray) -> np.ndarray:
    shifted = gram.copy()
    shifted.flat[:: len(gram) + 1] += penalty
    return scipy.linalg.solve(shifted, target, assume_a="pos", overwrite_a=True)


def gram_once(features: np.ndarray, labels: np.ndarray, penalties: np.ndarray) -> np.ndarray:
    rows, columns = features.shape
    if columns <= rows:
        gram, target = features.T @ features, features.T @ labels
        return np.stack([solved(gram, penalty, target) for penalty in penalties], axis=1)
    gram = features @ features.T
    return features.T @ np.stack([solved(gram, penalty, labels) for penalty in penalties], axis=1)


def scikit_learn() -> tuple[str, Callable]:
    """Its name and how it solves for one penalty; without it, the same steps in SciPy."""
    try:
        from sklearn.linear_model import Ridge
    except ImportError:
        return "SciPy, as scikit-learn does (it is not installed), anew for each", anew

    def fit(features, labels, penalty):
        return Ridge(alpha=penalty, solver="cholesky", fit_intercept=False).fit(features, labels).coef_

    return "scikit-learn, Ridge(solver='cholesky'), anew for each", fit


class Road(NamedTuple):
    """How to get there: the call that returns the solutions, for every k-th penalty, and its operations."""

    call: Callable[[], np.ndarray]
    operations: float
    every: int = 1


def roads(n: int, width: int, every: int) -> dict[str, Road]:
    features, labels, penalties = problem(n, width)
    m, count = min(n, width), len(penalties)
    gram, back = 2 * n * m**2, 2 * n * width * count if width > n else 0
    on_device = [jnp.asarray(one) for one in (features, labels, penalties)]
    path, tridiagonal, single = jax.jit(ridge_path), jax.jit(tridiagonal_path), jax.jit(ridge)
    name, fit = scikit_learn()

    def fitted():
        return np.stack([fit(features, labels, mu) for mu in penalties[::every]], axis=1)

    def fitted_here():
        return np.stack([np.asarray(single(*on_device[:2], mu)) for mu in on_device[2][::every]], axis=1)

    each = count * (gram + m**3 / 3) + back
    found = {
        OURS: Road(lambda: np.asarray(path(*on_device)), gram + 14 / 3 * m**3 + 4 * m**2 * count + back),
        "one tridiagonalisation": Road(
            lambda: np.asarray(tridiagonal(*on_device)), gram + 4 / 3 * m**3 + 4 * m**2 * count + back
        ),
        name: Road(fitted, each, every),
        "SciPy, Gram matrix once, Cholesky for each": Road(
            lambda: gram_once(features, labels, penalties), gram + count * m**3 / 3 + back
        ),
    }
    if jax.default_backend() != "cpu":
        found["featlab's ridge on the same device, anew for each"] = Road(fitted_here, each, every)
    return found


def machine(size: int) -> float:
    """Floating-point operations a second of one large float64 matrix product, the best of ten."""
    a = jnp.ones((size, size))
    product = jax.jit(lambda a: a @ a)
    times = []
    for _ in range(11):
        begun = time.perf_counter()
        jax.block_until_ready(product(a))
        times.append(time.perf_counter() - begun)
    return 2 * size**3 / min(times)


def compare(n: int, width: int, every: int, repeats: int, peak: float) -> None:
    found = roads(n, width, every)
    solutions = {name: road.call() for name, road in found.items()}  # compiles, and is compared
    truth = solutions[OURS]
    for name, road in found.items():
        apart = np.max(np.abs(solutions[name] - truth[:, :: road.every])) / np.max(np.abs(truth))
        assert apart < 1e-8, f"{name} differs by {apart:.1e}"
    times: dict[str, list[float]] = {name: [] for name in found}
    for _ in range(repeats):
        for name, road in found.items():
            begun = time.perf_counter()
            road.call()
            times[name].append((time.perf_counter() - begun) * road.every)
    ours = statistics.median(times[OURS])
    print(f"n = {n:,}, N = {width:,}, {len(PENALTIES)} penalties, {repeats} repeats; all equal to 1e-8")
    for name, road in found.items():
        median, ends = statistics.median(times[name]), f"{min(times[name]):.3g} to {max(times[name]):.3g}"
        share = road.operations / median / peak
        work = f"{road.operations / 1e9:.3g} GFLOP at {share:.0%} of the machine"
        print(f"  {median:.3g} s ({ends}), {median / ours:.2g} times: {name}; {work}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large", action="store_true", help="n = 20,000, N = 8,000 alone")
    options = parser.parse_args()
    with jax.enable_x64(True), jax.default_matmul_precision("highest"):
        peak = machine(8192 if options.large else 2048)
        load = os.getloadavg()[0]
        print(f"{jax.default_backend()}: {peak / 1e9:.0f} GFLOP/s in a large float64 product; load {load:.1f}")
        for n, width, every in [(20_000, 8_000, 10)] if options.large else SIZES:
            compare(n, width, every, options.repeats, peak)


if __name__ == "__main__":
    main()
