"""Descent of a network with thresholds, which grow as its weights do."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp

from featlab.algorithms._algorithm import AbstractAlgorithm, Info, State
from featlab.core.sees import Sees
from featlab.core.validation import flag, real
from featlab.networks import Neurons, SymmetricReLU
from featlab.objectives import AbstractObjective, Supervised

TOP = 0.1  # of the neurons: those whose lengths limit the thresholds
HALF = 0.5  # of the speed of a neuron that is awake: what a neuron at the threshold has


class GrowingThresholds(AbstractAlgorithm):
    r"""Descent in units of the scale that thresholds have grown to; these grow at half the speed of a neuron that
    is awake.

    $$w \leftarrow w - \eta_t \nabla L(w), \quad b_{t+1} = \max(b_t, \min(b_t + \tfrac12 \eta_t v_t,\ \alpha\,
      \overline{\|w\|})), \quad v_t = \|\mathbb{E}[\ell'\, x]\| / \sqrt d, \quad \eta_t = \eta\, b_t / b_0$$

    $\ell'$ is the loss's slope in the output, so that $v_t$ is the speed along an atom $M_j$ of a neuron that is
    awake on every input with this atom, where all atoms vote alike. A neuron with $\langle w, M_j \rangle \geq b$
    is awake on half of these inputs or more, the rest of $\langle w, x \rangle$ being symmetric, and keeps ahead
    of a threshold with half the speed; one that is below falls behind. That is what a threshold is to do: it
    leaves neurons that are above it for one atom where they are, and silences the others. It stops at a share
    $\alpha$ of $\overline{\|w\|}$, the mean length of the longest tenth of the weight vectors: a pure neuron
    $\|w\| M_j$ is then silent on noise and on all other atoms, and awake on its own. $\alpha = 0$ leaves
    thresholds as they are.

    The network says where they begin, `SymmetricReLU(threshold=)`; $\sigma_3 = \sigma_1 b_t / b_0$ is the scale
    that sets of good neurons count in. One factor $b_t / b_0$ for all rates only changes the clock: for small
    $\eta$ this is the path of gradient flow, as it is with a constant step. But a step that is small beside
    weights of the size $\sigma_1$, which decide what a neuron becomes, need not stay so when they have grown
    tenfold. `paced=False` is the constant step. $\|\mathbb{E}[\ell' x]\|^2$ is estimated without bias, by the
    products of different samples' terms.
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    of: ClassVar[tuple[type, ...]] = (SymmetricReLU, Supervised)

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    share: float = real(
        default=0.4, at_least=0, below=1, symbol=r"\alpha", means="largest threshold over the longest weights"
    )
    paced: bool = flag(default=True, means="steps that grow with the thresholds")

    @classmethod
    def examples(cls):
        return (cls(0.1), cls(0.1, share=0.9, paced=False), cls(0.1, share=0))

    def init(self, key, problem):
        start = problem.start
        return State(start, jnp.zeros((), int), (start.thresholds[0], start.scale))

    def step(self, key, state, problem):
        batch_key, objective_key = jax.random.split(key)
        batch = problem.batch(batch_key, state.step)
        before, (first, unit) = state.params, state.memory
        objective = _supervised(problem.objective)
        (value, outputs), gradient = jax.value_and_grad(objective, has_aux=True)(before, batch, objective_key)
        slopes = jax.grad(objective.mean_loss)(outputs, batch)  # l'_i / n; 0 where there is no sample
        threshold = before.thresholds[0]
        rate = self.learning_rate * (_over(threshold, first) if self.paced else jnp.ones(()))
        weights = before.weights - rate * gradient.weights
        speed = _length(slopes[:, None] * jnp.sum(batch.inputs, axis=1), jnp.sum(batch.mask))
        speed = speed / jnp.sqrt(problem.draw.space.dimension)
        grown = jnp.minimum(threshold + HALF * rate * speed, self.share * longest(weights))
        grown = jnp.maximum(threshold, grown)
        params = Neurons(weights, jnp.full_like(before.thresholds, grown), unit * _over(grown, first))
        return State(params, state.step + 1, state.memory), Info(value, rate)


def _supervised(objective: AbstractObjective) -> Supervised:
    assert isinstance(objective, Supervised)
    return objective


def _length(terms, count):
    """How long the vector is whose estimates by single samples these are, each over their count: the sum of the
    products of different ones says its square without bias; 0 where that is below."""
    total, own = jnp.sum(jnp.sum(terms, axis=0) ** 2), jnp.sum(terms**2)
    squared = (total - own) * count / jnp.maximum(count - 1, 1)
    return jnp.sqrt(jnp.where(squared > 0, squared, 0))


def _over(threshold, first):
    """The ratio; without thresholds nothing has grown, and it is 1."""
    return jnp.where(first > 0, threshold / jnp.where(first > 0, first, 1), 1.0)


def longest(weights):
    """The mean length of the longest tenth of the rows, of one row at least."""
    count = max(1, round(TOP * len(weights)))
    return jnp.mean(jax.lax.top_k(jnp.linalg.norm(weights, axis=-1), count)[0])
