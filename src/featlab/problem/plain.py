"""A run in whole vectors: its parameters are the network's own."""

from __future__ import annotations

import equinox as eqx
import jax
import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.networks import AbstractProductNetwork
from featlab.problem.base import length
from featlab.problem.draw import basis, vector_model
from featlab.problem.readable import AbstractReadableProblem


class AbstractVectorProblem(AbstractReadableProblem):
    """A problem whose parameters are the network's own, weight vectors included."""

    def drawn_start(self):
        return self.draw.start

    def value_and_grad(self, params, batch, key=None):
        return jax.value_and_grad(self.value)(params, batch, key)

    def norm(self, gradient):
        return length(gradient)

    def weights(self, params):
        assert isinstance(self.network, AbstractProductNetwork)
        return self.network.weights(params)

    def products(self, params):
        weights, noise = self.weights(params), self.draw.training.noise
        assert noise is not None
        return self.draw.truth.vectors @ weights.T, noise @ weights.T

    def learnt(self, params, *, shrinks):
        assert isinstance(self.network, AbstractProductNetwork) and self.draw.dual is not None
        weights, start = self.weights(params), self.network.weights(self.draw.start)
        dual, vectors = self.draw.dual, basis(self.draw.truth, self.draw.training)

        def outside(rows):
            return rows - (rows @ dual) @ vectors

        free = outside(start)
        power = jnp.sum(free**2)
        # Rounding leaves a little of a start that lies within the span; that little must not decide alpha.
        measurable = power > 1e-9 * jnp.sum(start**2)
        alpha = jnp.where(measurable, jnp.sum(free * outside(weights)) / jnp.where(measurable, power, 1), 1.0)
        # Where training adds other vectors too, what it adds along the start is not the start shrinking.
        fixed = self.data.sees < Sees.COORDINATES and not self.draw.holdouts
        alpha = alpha if shrinks and fixed else jnp.ones(())
        learnt = weights - alpha * start
        on_vectors = learnt @ dual
        rest = jnp.linalg.norm(learnt - on_vectors @ vectors, axis=-1)
        size = jnp.linalg.norm(weights, axis=-1)
        return on_vectors, alpha, jnp.max(rest / jnp.where(size > 0, size, 1))

    def noise_geometry(self):
        return self.draw.noise_geometry()

    def beside(self, batch, clean_labels):
        vectors, noise = vector_model(self.data), batch.noise
        if vectors is None or noise is None:
            raise InputError(f"{type(self.data).__name__} has no noise apart from its signal.")
        batch = eqx.tree_at(lambda b: (b.labels, b.clean_labels), batch, (clean_labels, clean_labels))
        inputs = vectors.composed(batch, self.draw.truth.vectors, noise)
        return eqx.tree_at(lambda b: b.inputs, batch, inputs)

    def rest(self, params):
        return params


class PlainProblem(AbstractVectorProblem):
    """Inputs are whole, and what is made of them is for the network and the objective to say."""

    def value(self, params, batch, key=None):
        return self.objective(params, batch, key)[0]

    def outputs(self, params, batch):
        return jax.vmap(self.network, in_axes=(None, 0))(params, batch.inputs)
