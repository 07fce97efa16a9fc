r"""The same task, with every input's products put together from those of the vectors it is made of.

An input of a vector model is linear in signals, which all inputs share, and in its own noise. So the weights meet
the signals once, and not once for each input: half the arithmetic for a signal patch beside a noise patch, and one
large matrix product with the noise.
"""

from __future__ import annotations

import jax.numpy as jnp

from featlab.algorithms import AbstractAlgorithm
from featlab.data import AbstractDataModel, Minibatches, Stream
from featlab.networks import AbstractNetwork, AbstractProductNetwork
from featlab.objectives import AbstractObjective, Supervised
from featlab.task import Task, vector_model


def fits(
    data: AbstractDataModel,
    network: AbstractNetwork,
    objective: AbstractObjective,
    algorithm: AbstractAlgorithm,
) -> bool:
    """Whether nothing but the network's products with signals and noise is asked for in training."""
    products = isinstance(network, AbstractProductNetwork) and network.separable
    mean = isinstance(objective, Supervised)
    plain = type(data).batch in (AbstractDataModel.batch, Minibatches.batch, Stream.batch)
    return vector_model(data) is not None and plain and products and mean and not algorithm.reads_inputs


class VectorTask(Task):
    """The task, for inputs given by their noise and their coins."""

    def value(self, params, batch, key=None):
        assert isinstance(self.objective, Supervised)
        return self.objective.mean_loss(self.outputs(params, batch), batch)

    def outputs(self, params, batch):
        weights = self.weights(params)
        assert batch.noise is not None
        noise = jnp.einsum("rc,ivc->vri", weights, batch.noise)
        return self.put_together(params, batch, self.draw.truth.vectors @ weights.T, noise)
