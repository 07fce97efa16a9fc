r"""The landscape of learning in context, for the claim about it: networks near a teacher, critical points, flows.

A seed draws inputs, whose empirical law is the law of $x$ so that all expectations are sums, a first layer of
sigmoid neurons that teacher and students share, and second layers; the teacher's features are white on the inputs.
The flow of all particles from a critical point moves the first layer too.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special
import xarray as xr

from featlab.objectives.in_context import best_attention, moments_of
from featlab.probes import escape_rate
from featlab.probes.in_context import saddle_bounds

FEATURES = 3  # k
MISSING = (1, 2, 3)  # features that a critical point misses
NETWORKS = 45  # near the teacher, for each seed
NEARNESS = (0.03, 30.0)  # of noise beside the teacher's second layer, drawn evenly in log scale
RECORDS = 240  # readings of an escape
EFOLDS = 15.0  # of the escape: from the push to where it stops being linear
PUSH, LINEAR = 1e-7, 1e-3  # relative to the particles: where the escape begins, and where its rate is still that


def landscape(seeds: Sequence[int], width: int, d: int, samples: int, steepness: float) -> xr.Dataset:
    """Slopes, falls and curvatures of many networks, each over the theorem's bound or value."""
    drawn = [_drawn(seed, width, d, samples, steepness) for seed in seeds]
    with jax.enable_x64(True):
        read = _landscapes(*map(jnp.asarray, map(np.stack, zip(*drawn))))
    by_missing = {"missing": ("missing", list(MISSING), {"symbol": f"features missing of {FEATURES}"})}
    dims = {1: ["seed"], 2: ["seed", "missing"]}
    return xr.Dataset({name: (dims[np.ndim(one)], np.asarray(one)) for name, one in read.items()}, by_missing)


def escapes(
    seeds: Sequence[int], width: int, d: int, samples: int, steepness: float, frozen: bool = False
) -> dict[str, list[float]]:
    """From a critical point that misses one feature: how fast the distance grows and the loss falls.

    Each is over what the smallest curvature over all particles says; `frozen` first layers stay as they are.
    """
    drawn = [_built(np.random.default_rng(seed), width, d, samples, steepness) for seed in seeds]
    push = [np.random.default_rng([seed, 1]).standard_normal(width * (FEATURES + d)) for seed in seeds]
    with jax.enable_x64(True):
        found = _all_escapes(*map(jnp.asarray, map(np.stack, (*zip(*drawn), push))), 0.0 if frozen else 1.0)
    growth, fall = [], []
    for curvature, time, distance, fallen in zip(*map(np.asarray, found)):
        between = (distance > 100 * PUSH) & (distance < LINEAR)
        growth.append(escape_rate(time[between], distance[between], 0.0, np.inf) / -curvature)
        fall.append(escape_rate(time[between], fallen[between], 0.0, np.inf) / (-2 * curvature))
    return {"growth": growth, "fall": fall}


def _built(rng, width, d, samples, steepness):
    """Inputs, first-layer weights, and second layers of 2k functions that are uncorrelated on the inputs.

    The functions lie along the leading principal components of the neurons: the others need second layers so
    long that the flow would be stiff.
    """
    count = 2 * FEATURES
    x = rng.standard_normal((samples, d))
    w = steepness / np.sqrt(d) * rng.standard_normal((width, d))
    _, values, axes = np.linalg.svd(scipy.special.expit(x @ w.T), full_matrices=False)
    turn = np.linalg.qr(rng.standard_normal((count, count)))[0]
    return x, w, width * np.sqrt(samples) * (axes[:count].T / values[:count]) @ turn


def _drawn(seed, width, d, samples, steepness):
    """Teacher and students of one seed: second layers near the teacher's, then those of critical points."""
    rng = np.random.default_rng(seed)
    x, w, heads = _built(rng, width, d, samples, steepness)
    teacher = heads[:, :FEATURES]
    students = []
    for _ in range(NETWORKS):
        share = np.exp(rng.uniform(*np.log(NEARNESS)))
        students.append(teacher @ rng.standard_normal((FEATURES, FEATURES)))
        students[-1] += share * rng.standard_normal(teacher.shape)
    for missing in MISSING:
        students.append(heads[:, missing : missing + FEATURES] @ _mixing(rng))
    return x, w, teacher, np.stack(students)


def _mixing(rng):
    """A random matrix with singular values from 1/2 to 2: a worse one would make rounding look like a velocity."""
    one, other = (np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0] for _ in range(2))
    return one * np.exp(rng.uniform(-np.log(2), np.log(2), FEATURES)) @ other


def _features(heads, w, x):
    return jax.nn.sigmoid(x @ w.T) @ heads / len(w)


def _slopes(true, heads, w, x):
    r"""The loss, and its gradients in both layers.

    The best readout $B$ being stationary, only $h$ varies: $\partial_h \mathcal{L} = -B^\top (f - B h)$.
    """
    seen, count = jax.nn.sigmoid(x @ w.T), len(w)
    learnt = seen @ heads / count
    moments = moments_of(true, learnt, jnp.ones(len(x), bool))
    readout = moments.cross @ best_attention(moments, 0.0)
    left = true - learnt @ readout.T
    back = -left @ readout / len(x)
    in_w = ((back @ heads.T) * seen * (1 - seen)).T @ x / count
    return jnp.sum(left**2) / (2 * len(x)), seen.T @ back / count, in_w


def _hessian(slope, point):
    """The derivative of a gradient, by central differences."""
    shift = 1e-5 * jnp.linalg.norm(point) / jnp.sqrt(point.size)

    def column(direction):
        return (slope(point + shift * direction) - slope(point - shift * direction)) / (2 * shift)

    matrix = jax.vmap(column)(jnp.eye(point.size))
    return (matrix + matrix.T) / 2


def _landscape(x, w, teacher, students):
    """What the theorem says of one teacher: ratios to its bounds, over random networks and critical points.

    The slope's bound is about networks whose loss is below half the variance, about four in five of these; the
    others have no value, and a seed without any has none.
    """
    longest = jnp.max(jnp.linalg.norm(teacher, axis=1))
    variance = longest**-2
    true = _features(teacher / longest, w, x)

    def read(student):
        student = student / jnp.max(jnp.linalg.norm(student, axis=1))
        loss, in_a, in_w = _slopes(true, student, w, x)
        moments = moments_of(true, _features(student, w, x), jnp.ones(len(x), bool))
        squares = len(w) ** 2 * (jnp.sum(in_a**2, axis=1) + jnp.sum(in_w**2, axis=1))
        return loss, squares, saddle_bounds(moments, 1.0, 1.0)

    losses, squares, (slope, slope_bound, curvature, curvature_bound) = jax.vmap(read)(students)
    below = losses[:NETWORKS] < variance / 2
    return {
        "slope_ratio": jnp.nanmax(jnp.where(below, slope_bound[:NETWORKS] / slope[:NETWORKS], jnp.nan)),
        "below": jnp.mean(below),
        # In units of the loss: the teacher's second layers being one long, its features are small.
        "velocity": jnp.sqrt(jnp.max(squares[NETWORKS:])) / variance,
        "level": losses[NETWORKS:] / (jnp.array(MISSING) * variance / 2),
        "curvature": curvature_bound[NETWORKS:] / curvature[NETWORKS:],
    }


_landscapes = jax.jit(jax.vmap(_landscape))


def _escape(x, w, heads, push, moves):
    """The flow from a critical point that misses one feature, pushed a little; with `moves` 0 first layers stay.

    Returns the smallest curvature, and times with the distance gone and how far the loss has fallen.
    """
    true, width = _features(heads[:, :FEATURES], w, x), len(w)
    saddle = jnp.concatenate([heads[:, 1 : 1 + FEATURES].ravel(), w.ravel()])

    def all_slopes(particles):
        a, moved = jnp.split(particles, [width * FEATURES])
        return _slopes(true, a.reshape(width, FEATURES), moved.reshape(w.shape), x)

    def slope(particles):
        return width * jnp.concatenate([one.ravel() for one in all_slopes(particles)[1:]])

    mobile = jnp.append(jnp.ones(width * FEATURES), jnp.full(w.size, moves))
    hessian = _hessian(slope, saddle)
    least = jnp.linalg.eigvalsh(hessian)[0]
    values = jnp.linalg.eigvalsh(hessian * jnp.outer(mobile, mobile))  # of what moves: the time that it takes
    size = jnp.linalg.norm(saddle)
    start = saddle + PUSH * size * mobile * push / jnp.linalg.norm(push)
    between = EFOLDS / -values[0] / RECORDS
    # Runge-Kutta of order four is stable up to 2.7 over the largest curvature, and follows the growth exactly.
    inner = jnp.ceil(between * jnp.maximum(values[-1] / 1.5, -values[0] / 0.1)).astype(int)
    time = between / inner

    def runge_kutta(_, here):
        def stage(sums, share):
            ahead, total = sums
            velocity = -slope(ahead) * mobile
            return (here + share[0] * time * velocity, total + share[1] * time * velocity), None

        shares = jnp.array([[0.5, 1 / 6], [0.5, 1 / 3], [1.0, 1 / 3], [0.0, 1 / 6]])
        return jax.lax.scan(stage, (here, here), shares)[0][1]

    def record(here, _):
        here = jax.lax.fori_loop(0, inner, runge_kutta, here)
        return here, (jnp.linalg.norm(here - saddle) / size, all_slopes(here)[0])

    _, (distance, losses) = jax.lax.scan(record, start, None, RECORDS)
    return least, between * (1 + jnp.arange(RECORDS)), distance, all_slopes(saddle)[0] - losses


_all_escapes = jax.jit(jax.vmap(_escape, in_axes=(0, 0, 0, 0, None)))
