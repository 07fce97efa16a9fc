r"""The same run, with every input's products put together from those of the vectors it is made of.

An input of a vector model is linear in signals, which all inputs share, and in its own noise. So the weights meet
the signals once, and not once for each input: half the arithmetic for a signal patch beside a noise patch, and one
large matrix product with the noise.
"""

from __future__ import annotations

import jax.numpy as jnp

from featlab.objectives import Supervised
from featlab.problem.plain import AbstractVectorProblem


class LinearProblem(AbstractVectorProblem):
    """Inputs are given by their noise and their coins."""

    def value(self, params, batch, key=None):
        assert isinstance(self.objective, Supervised)
        return self.objective.mean_loss(self.outputs(params, batch), batch)

    def outputs(self, params, batch):
        weights = self.weights(params)
        assert batch.noise is not None
        noise = jnp.einsum("rc,ivc->vri", weights, batch.noise)
        return self.put_together(params, batch, self.draw.truth.vectors @ weights.T, noise)
