"""Recursive feature machines beside the package xrfm: `python benchmarks/rfm.py [--n N] [--precision 32]`.

The same machine on the same n = 4,000 inputs of d = 20, whose labels are z1 z2: Laplace kernel with L = 10,
lambda = 1e-3 on the kernel's diagonal, metric scaled to have the largest entry 1, five times learnt, six times
solved. xrfm 0.4.5 is run with its default solver, an LU factorisation, and with its Cholesky factorisation. In
float64 metrics and predictions on fresh inputs must agree to 1e-6 of their largest entry; in float32 the distance
from float64 is printed. One run of each in turn, compiled and warm; medians. Operations, for T metrics:

    (T + 1) n^3 / 3                 Cholesky factorisations; twice as many for LU
    (T + 1) 4 n^2 (d + 1)           distances and gradients, one matrix product each, and two triangles
    (T + 1) n^2                     exponentials and roots, one each, counted apart
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import featlab as fl
from featlab.algorithms import RecursiveFeatureMachine, State, largest_entry_one
from featlab.core.space import Ambient
from featlab.objectives import as_objective
from featlab.problem import PlainProblem, draw_run

BANDWIDTH, PENALTY, LEARNT, TEST = 10.0, 1e-3, 5, 1000
TOLERANCE = 1e-6
MACHINE = fl.networks.KernelMachine(BANDWIDTH)
Found = tuple[np.ndarray, np.ndarray]  # the metric, and predictions on fresh inputs


def as_xrfm(metric: jax.Array) -> jax.Array:
    """What xrfm does to a metric before it takes the root: the largest entry 1, and 1e-8 on the diagonal."""
    return largest_entry_one(metric) + 1e-8 * jnp.eye(len(metric), dtype=metric.dtype)


ALGORITHM = RecursiveFeatureMachine(PENALTY, normalise=as_xrfm)


def problem(n: int, d: int) -> tuple[PlainProblem, Any]:
    """A task, and a fresh batch."""
    data = fl.data.MultiIndex(n=n, d=d, link=fl.data.product)
    draw = eqx.filter_jit(draw_run)(data, MACHINE, Ambient(float(d)), n, 0, jax.random.key(7_000_000))
    fresh = data.fresh(draw.test_key, draw.truth, draw.space, TEST)
    return PlainProblem(data, MACHINE, as_objective(fl.objectives.squared, MACHINE), draw), fresh


@eqx.filter_jit
def _step(state: State, task: PlainProblem) -> State:
    return ALGORITHM.step(jax.random.key(0), state, task)[0]


@eqx.filter_jit
def _outputs(state: State, task: PlainProblem, fresh) -> jax.Array:
    return task.outputs(state.params, fresh)


def ours(task: PlainProblem, fresh) -> Found:
    state = ALGORITHM.init(jax.random.key(0), task)
    for _ in range(LEARNT + 1):
        state = _step(state, task)
    return np.asarray(state.params.metric), np.asarray(_outputs(state, task, fresh))


def theirs(task: PlainProblem, fresh, solver: str) -> Found:
    import torch
    from xrfm.rfm_src import RFM

    # What JAX holds is not writable, which torch warns of: a copy, some of the 40 ms that a solution takes.
    inputs, labels, points = (
        torch.from_numpy(np.array(one))
        for one in (task.draw.training.inputs[:, 0], task.draw.training.labels[:, None], fresh.inputs[:, 0])
    )
    machine = RFM(kernel="laplace", bandwidth=BANDWIDTH, iters=LEARNT, device="cpu", solver=solver, verbose=False)
    machine.fit(
        (inputs, labels), (inputs[:10], labels[:10]), reg=PENALTY, verbose=False,
        return_best_params=False, early_stop_rfm=False, total_points_to_sample=len(inputs),
    )  # fmt: skip
    assert machine.M is not None
    return machine.M.numpy(), machine.predict(points).numpy()[:, 0]


def apart(one: np.ndarray, other: np.ndarray) -> float:
    return float(np.max(np.abs(one - other)) / np.max(np.abs(other)))


def peak(size: int) -> float:
    """Floating-point operations a second of one large matrix product in the present precision, the best of ten."""
    a = jnp.ones((size, size))
    product = jax.jit(lambda a: a @ a)
    times = []
    for _ in range(11):
        begun = time.perf_counter()
        jax.block_until_ready(product(a))
        times.append(time.perf_counter() - begun)
    return 2 * size**3 / min(times)


def operations(n: int, d: int, solve: float) -> float:
    return (LEARNT + 1) * (solve * n**3 + 4 * n**2 * (d + 1))


def roads(task: PlainProblem, fresh) -> dict[str, tuple[Callable[[], Found], float]]:
    """How to get there, and the operations of a factorisation over n^3."""
    found: dict[str, tuple[Callable[[], Found], float]] = {"featlab": (lambda: ours(task, fresh), 1 / 3)}
    try:
        import xrfm  # type: ignore  # noqa: F401
    except ImportError:
        print("xrfm is not installed, so there is nothing to compare with: pip install xrfm==0.4.5")
        return found
    found["xrfm, Cholesky"] = (lambda: theirs(task, fresh, "cholesky"), 1 / 3)
    found["xrfm, as it comes (LU)"] = (lambda: theirs(task, fresh, "solve"), 2 / 3)
    return found


def compare(n: int, d: int, repeats: int, precision: int) -> None:
    with jax.enable_x64(precision == 64), jax.default_matmul_precision("highest"):
        task, fresh = problem(n, d)
        fastest = peak(2048)
        load = os.getloadavg()[0]
        print(
            f"n = {n:,}, d = {d}, float{precision}, metric learnt {LEARNT} times, {repeats} repeats; "
            f"{fastest / 1e9:.0f} GFLOP/s in a large product, {os.cpu_count()} cores, load {load:.1f}"
        )
        found = roads(task, fresh)
        answers = {name: call() for name, (call, _) in found.items()}  # compiles, and is compared
        times: dict[str, list[float]] = {name: [] for name in found}
        for _ in range(repeats):
            for name, (call, _) in found.items():
                begun = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - begun)
    metric, predicted = answers["featlab"]
    median = {name: statistics.median(values) for name, values in times.items()}
    for name, (_, solve) in found.items():
        work = operations(n, d, solve)
        share = work / median[name] / fastest
        spread = f"{min(times[name]):.3g} to {max(times[name]):.3g}"
        print(
            f"  {median[name]:.3g} s ({spread}), {median[name] / median['featlab']:.2f} times: {name}; "
            f"{work / 1e9:.0f} GFLOP at {share:.0%} of the machine"
        )
        if name != "featlab":
            gaps = apart(metric, answers[name][0]), apart(predicted, answers[name][1])
            print(f"    metric apart by {gaps[0]:.1e}, predictions by {gaps[1]:.1e}")
            assert precision == 32 or max(gaps) < TOLERANCE, f"{name} differs by more than {TOLERANCE:g}"
    if precision == 32:
        with jax.enable_x64(True), jax.default_matmul_precision("highest"):
            exact = ours(*jax.tree.map(_wide, (task, fresh)))
        gaps = apart(metric, exact[0]), apart(predicted, exact[1])
        print(f"  from featlab in float64: metric {gaps[0]:.1e}, predictions {gaps[1]:.1e}")


def _wide(leaf):
    is_float = eqx.is_array(leaf) and leaf.dtype == jnp.float32
    return leaf.astype(jnp.float64) if is_float else leaf


def main():
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--n", type=int, default=4000)
    parser.add_argument("--d", type=int, default=20)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--precision", type=int, choices=(32, 64), default=64)
    options = parser.parse_args()
    if options.repeats < 1:
        parser.error(f"--repeats must be at least 1, got {options.repeats}.")
    try:
        compare(options.n, options.d, options.repeats, options.precision)
    except fl.InputError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
