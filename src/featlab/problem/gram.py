r"""The same run in inner products: what is learnt as coefficients, what is seen as products.

With $B$ the signals' directions and the training noise, one vector a row, descent on a network that sees inputs
only through inner products keeps $W = W_0 + C B$. Its products with the data are

$$P = W B^\top = P_0 + C G, \qquad G = B B^\top,$$

and since $\nabla_W L = (\partial L / \partial P) B$, a step along the gradient is $C \leftarrow C - \eta\,
\partial L / \partial P$. So the parameters are the order parameters themselves, a step costs one product with
$G$, and at $d = \infty$, where noise vectors are orthonormal, not even that: $O(mn)$ a step.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp

from featlab.core.space import Span
from featlab.data import AbstractVectorModel, Batch
from featlab.networks import AbstractProductNetwork
from featlab.objectives import Supervised
from featlab.problem.base import length
from featlab.problem.draw import Draw, Gram, OnBasis, vector_model
from featlab.problem.readable import AbstractReadableProblem


class Learnt(eqx.Module):
    """Parameters of a run in products: what was added to the weights, and all that is no weight vector."""

    weights: OnBasis
    rest: Any


def in_products(draw: Draw, network: AbstractProductNetwork) -> Draw:
    """The draw as training in products needs it. What is left out is never computed, under `jit`."""
    space, directions, training = draw.space, draw.truth.directions, draw.training
    assert isinstance(space, Span) and training.noise is not None
    weights, signals = network.weights(draw.start), len(directions)
    noise = training.noise.reshape(-1, training.noise.shape[-1])
    if space.infinite:  # the noise vectors are the axes after the signals'
        on_noise, among_noise = weights[:, signals : signals + len(noise)], None
    else:
        on_noise, among_noise = weights @ noise.T, (noise @ noise.T, noise @ directions.T)
    gram = Gram(OnBasis(weights @ directions.T, on_noise), among_noise)
    kept = None if space.infinite else training.noise
    lean = eqx.tree_at(lambda batch: (batch.inputs, batch.noise), training, (training.labels, kept))
    keys = (draw.batch_key, draw.test_key, draw.algorithm_key)
    return Draw(space, draw.truth, lean, (), draw.start, None, *keys, gram)


class GramProblem(AbstractReadableProblem):
    """Weights are the coefficients C of what they learnt, inputs are known by their products."""

    def drawn_start(self):
        nothing = jax.tree.map(jnp.zeros_like, self._gram.start)
        return Learnt(nothing, self._network.without_weights(self.draw.start))

    def value(self, params, batch, key=None):
        return self._value(self._seen(params), batch)

    def value_and_grad(self, params, batch, key=None):
        # The derivative in the products is the gradient's coefficient on the basis; other parameters are
        # as they always are.
        return jax.value_and_grad(self._value)(self._seen(params), batch)

    def norm(self, gradient):
        """The length of what has these coefficients: $\\|C B\\|^2 = \\mathrm{tr}\\, C G C^\\top$."""
        both = jax.tree.map(jnp.multiply, gradient.weights, self._products_of(gradient.weights))
        return jnp.sqrt(jnp.sum(both.signals) + jnp.sum(both.noise) + length(gradient.rest) ** 2)

    def beside(self, batch, clean_labels):
        return eqx.tree_at(lambda b: (b.labels, b.clean_labels), batch, (clean_labels, clean_labels))

    def outputs(self, params, batch):
        return self._outputs(self._seen(params), batch)

    def weights(self, params):
        """The weight vectors in the frame of the space."""
        draw, learnt = self.draw, params.weights
        weights = self._network.weights(draw.start) + learnt.signals @ draw.truth.directions
        if self._gram.noise is None:
            signals = learnt.signals.shape[1]
            return weights.at[:, signals : signals + learnt.noise.shape[1]].add(learnt.noise)
        noise = draw.training.noise
        assert noise is not None
        return weights + learnt.noise @ noise.reshape(-1, noise.shape[-1])

    def products(self, params):
        seen, samples = self._seen(params).weights, len(self.draw.training.mask)
        noise = jnp.moveaxis(seen.noise.reshape(len(seen.noise), samples, -1), 0, -1)
        return self.draw.truth.norms[:, None] * seen.signals.T, noise

    def rest(self, params):
        return params.rest

    def learnt(self, params, *, shrinks):
        """Coefficients on the basis; of the start nothing is lost, and nothing lies outside."""
        both = jnp.concatenate([params.weights.signals, params.weights.noise], axis=1)
        return both, jnp.ones(()), jnp.zeros(())

    def noise_geometry(self):
        if self._gram.noise is not None:
            return self.draw.noise_geometry()
        mask = self.draw.training.mask
        power = jnp.broadcast_to(mask[:, None], (len(mask), self._model.noise_count)).astype(float)
        return power, jnp.zeros((*power.shape, len(self.draw.truth.norms)))

    @property
    def _gram(self) -> Gram:
        assert self.draw.gram is not None
        return self.draw.gram

    @property
    def _network(self) -> AbstractProductNetwork:
        assert isinstance(self.network, AbstractProductNetwork)
        return self.network

    @property
    def _model(self) -> AbstractVectorModel:
        model = vector_model(self.data)
        assert model is not None
        return model

    def _seen(self, params: Learnt) -> Learnt:
        """The parameters with the products P in place of the coefficients C."""
        learnt = self._products_of(params.weights)
        return Learnt(jax.tree.map(jnp.add, self._gram.start, learnt), params.rest)

    def _products_of(self, learnt: OnBasis) -> OnBasis:
        """Their products with the basis, C G."""
        directions = self.draw.truth.directions
        signals, noise = learnt.signals @ (directions @ directions.T), learnt.noise
        if self._gram.noise is not None:
            with_noise, with_signals = self._gram.noise
            signals = signals + learnt.noise @ with_signals
            noise = learnt.noise @ with_noise + learnt.signals @ with_signals.T
        return OnBasis(signals, noise)

    def _outputs(self, seen: Learnt, batch: Batch):
        # The batch has the rows of the training set, perhaps with other labels.
        samples, count = len(batch.mask), self._model.noise_count
        signals = (self.draw.truth.norms[None] * seen.weights.signals).T
        noise = jnp.moveaxis(seen.weights.noise.reshape(-1, samples, count), -1, 0)
        return self.put_together(seen, batch, signals, noise)

    def _value(self, seen: Learnt, batch: Batch):
        assert isinstance(self.objective, Supervised)
        return self.objective.mean_loss(self._outputs(seen, batch), batch)
