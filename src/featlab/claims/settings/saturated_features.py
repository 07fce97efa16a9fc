r"""Nearly saturated neurons, where the bounds on the landscape of learning in context are nearly sharp.

Neurons are $\tanh(c x_j)$ with $c$ drawn for each seed, each on one axis of Gaussian inputs: those of different
axes are uncorrelated, and all second moments are Gauss-Hermite sums. Second layers have length one at most. With
$\|\sigma\|_\infty = 1$ the bounds of Kim and Suzuki (2024) are these, each as a ratio that is at most 1.

* *Curvature.* A critical point misses one feature of k and has put nearly all its mass on an axis of no use,
  whose variance $v = \mathbb{E} \tanh^2$ is nearly 1. There $\mathcal{L} = r^\circ/2$ and the curvature is
  $-r^{\circ 2}/v = -4\mathcal{L}^2/v$ for every k. In general it is $-r^{\circ 2} \sum_{i \leq m} 1/\lambda_i$
  for m features missed and eigenvalues $\lambda_i$ of $\Sigma_{\mu\mu}$, at most $-r^{\circ 2} m^2 /
  \mathrm{tr}\, \Sigma_{\mu\mu} \leq -4 \mathcal{L}^2$: the bound holds without its $1/k$.
* *Slope.* One feature, and a student neuron at an angle to the teacher's: slope and bound are as
  $\sqrt{r^\circ v}$ times their correlation.
* *Fall.* Along $\delta a = \frac{d\mu^\circ}{d\mu} U a^\circ$, with U the teacher's turn, the loss changes as
  along the mixture, since scaling h changes nothing, and $\int |\delta a|^2 d\mu \leq R$ for a density ratio of
  at most R: so the fall under the flow is at least the squared slope over R, and $\lambda_{\min}(H)$ at most the
  curvature over R. The teacher has $N/R$ of the N neurons. Only the second layers move, which implies the same of
  all particles.
"""

from __future__ import annotations

from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np

from featlab.objectives.in_context import Moments, best_attention
from featlab.probes.in_context import saddle_bounds

STEEP = (8.0, 16.0)  # c
LEARNT = 0.05  # mass of the student on the features that it has learnt
ANGLES = (0.2, 0.7)  # between a student's neuron and the teacher's
NEURONS = 32  # N, where teacher and student share their first layer
NODES, MASSES = np.polynomial.hermite_e.hermegauss(256)
MASSES = MASSES / np.sum(MASSES)


def curvatures(seeds: Sequence[int], k: int) -> dict[str, np.ndarray]:
    """At a critical point that misses one feature of k: 4 L^2 over the curvature."""
    drawn = []
    for rng in map(np.random.default_rng, seeds):
        taught, useless = _variances(rng.uniform(*STEEP, 2))
        learnt = np.full(k - 1, LEARNT / max(k - 1, 1))  # masses
        turn = np.linalg.qr(rng.standard_normal((k, k)))[0]
        cross = np.diag(np.append(0.0, learnt * taught / k)) @ turn.T
        own = turn @ np.diag(np.append((1 - LEARNT) ** 2 * useless, learnt**2 * taught)) @ turn.T
        drawn.append((taught / k**2 * np.eye(k), cross, own))
    _, _, curvature, _ = _bounds(drawn)
    return {"ratio": -4 * np.array([true[0, 0] / 2 for true, *_ in drawn]) ** 2 / curvature}


def slopes(seeds: Sequence[int]) -> dict[str, np.ndarray]:
    """One feature, and a student neuron at an angle: the bound on the slope over the slope, the loss below r/2."""
    drawn = []
    for rng in map(np.random.default_rng, seeds):
        steep, angle = rng.uniform(*STEEP, 2), rng.uniform(*ANGLES)
        beside = np.cos(angle) * NODES[:, None] + np.sin(angle) * NODES
        cross = MASSES @ (np.tanh(steep[0] * NODES)[:, None] * np.tanh(steep[1] * beside)) @ MASSES
        true, own = _variances(steep)
        drawn.append(tuple(np.reshape(one, (1, 1)) for one in (true, cross, own)))
    slope, bound, *_ = _bounds(drawn)
    return {"ratio": bound / slope}


def falls(seeds: Sequence[int], k: int, one_in: int, length: float = 1.0) -> dict[str, np.ndarray]:
    """The squared slope over R times the fall of the loss, second layers flowing, from random second layers.

    Every neuron has an axis of its own. The loss is below r/2 for one feature, above for two. The teacher's second
    layers have this length.
    """
    drawn = []
    for rng in map(np.random.default_rng, seeds):
        heads = rng.standard_normal((NEURONS, k))
        heads *= (rng.uniform(size=NEURONS) ** (1 / k) / np.linalg.norm(heads, axis=1))[:, None]
        drawn.append((_variances(rng.uniform(*STEEP, 1)) * np.eye(NEURONS), heads))
    teacher = np.zeros((NEURONS, k))
    count = NEURONS // one_in
    teacher[np.arange(count), np.arange(count) % k] = length * one_in  # its density ratio times its heads
    with jax.enable_x64(True):
        found = _falls(*(jnp.asarray(np.stack(one)) for one in zip(*drawn)), jnp.asarray(teacher))
    return {"ratio": np.asarray(found) / one_in}


def eigenvalues(seeds: Sequence[int], one_in: int) -> dict[str, np.ndarray]:
    """At a critical point that misses the one feature: 4 L^2 / R over the smallest eigenvalue of the Hessian.

    The teacher has N/R neurons on one axis, the student all others on another.
    """
    count = NEURONS // one_in
    taught = np.arange(NEURONS) < count
    grams = []
    for rng in map(np.random.default_rng, seeds):
        seen = np.tanh(rng.uniform(*STEEP, NEURONS)[:, None] * NODES)
        grams.append((seen * MASSES) @ seen.T * (taught[:, None] == taught))
    with jax.enable_x64(True):
        heads, teacher = (~taught)[:, None].astype(float), one_in * taught[:, None].astype(float)
        found = _eigenvalues(jnp.asarray(np.stack(grams)), jnp.asarray(heads), jnp.asarray(teacher))
    return {"ratio": np.asarray(found) / one_in}


def _variances(steep: np.ndarray) -> np.ndarray:
    """E tanh^2(c z)."""
    return np.tanh(steep[:, None] * NODES) ** 2 @ MASSES


def _bounds(moments: Sequence[tuple[np.ndarray, ...]]) -> tuple[np.ndarray, ...]:
    """Slope, its bound, curvature and its bound, for one seed after the other."""
    with jax.enable_x64(True):
        found = _all_bounds(Moments(*(jnp.asarray(np.stack(one)) for one in zip(*moments))))
    return tuple(map(np.asarray, found))


_all_bounds = jax.jit(jax.vmap(lambda moments: saddle_bounds(moments, 1.0, 1.0)))


def _moments(gram, heads, teacher) -> Moments:
    """Of the teacher's and the student's features, means over the neurons, from the neurons' second moments."""
    gram = gram / len(heads) ** 2
    return Moments(teacher.T @ gram @ teacher, teacher.T @ gram @ heads, heads.T @ gram @ heads)


def _loss(gram, heads, teacher):
    moments = _moments(gram, heads, teacher)
    explained = moments.cross @ best_attention(moments, 0.0) @ moments.cross.T
    return (jnp.trace(moments.true) - jnp.trace(explained)) / 2


@jax.jit
def _falls(grams, heads, teacher):
    def one(gram, heads):
        fall = len(heads) * jnp.sum(jax.grad(_loss, argnums=1)(gram, heads, teacher) ** 2)
        return saddle_bounds(_moments(gram, heads, teacher), 1.0, 1.0)[0] ** 2 / fall

    return jax.vmap(one)(grams, heads)


@jax.jit
def _eigenvalues(grams, heads, teacher):
    def one(gram):
        hessian = jax.hessian(_loss, argnums=1)(gram, heads, teacher).reshape(heads.size, heads.size)
        return -4 * _loss(gram, heads, teacher) ** 2 / jnp.linalg.eigvalsh(len(heads) * hessian)[0]

    return jax.vmap(one)(grams)
