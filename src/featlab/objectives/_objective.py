"""What is minimised: `objective(params, batch, key) -> (value, aux)`."""

import abc
from collections.abc import Callable
from typing import Any, ClassVar, Self

import equinox as eqx
import jax
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.core.sees import Sees
from featlab.core.validation import InputError, Part, function
from featlab.data import Batch
from featlab.networks import AbstractNetwork
from featlab.objectives.losses import logistic, squared


class AbstractObjective(Part):
    """A number to make small, of the parameters and a batch.

    It `sees` no coordinates when it meets inputs only through the network. A stochastic objective (fresh noise or
    labels every step) takes its randomness from the key; what probes may want goes into aux.
    """

    sees: ClassVar[Sees] = Sees.COORDINATES
    of: ClassVar[tuple[type, ...]] = ()  # kinds that the network and the data must be of
    network: eqx.AbstractVar[AbstractNetwork | None]

    def bind(self, network: AbstractNetwork) -> Self:
        """The same objective of this network."""
        return (
            self
            if self.network is not None
            else eqx.tree_at(lambda objective: objective.network, self, network, is_leaf=lambda leaf: leaf is None)
        )

    @abc.abstractmethod
    def __call__(self, params: Any, batch: Batch, key: PRNGKeyArray | None) -> tuple[Float[Array, ""], Any]:
        """The value, and what else was computed on the way."""


class Supervised(AbstractObjective):
    r"""The mean loss over the batch: $L = \frac1n \sum_i \ell(f(x_i), y_i)$. The outputs are the aux."""

    sees: ClassVar[Sees] = Sees.PRODUCTS
    network: AbstractNetwork | None = None
    loss: Callable = function("a loss, such as logistic or squared", default=logistic)

    @classmethod
    def examples(cls):
        return (cls(None, logistic), cls(None, squared))

    def __call__(self, params, batch, key):
        assert self.network is not None, "bind() the objective to a network first"
        outputs = jax.vmap(self.network, in_axes=(None, 0))(params, batch.inputs)
        return self.mean_loss(outputs, batch), outputs

    def mean_loss(self, outputs: Array, batch: Batch) -> Float[Array, ""]:
        """The mean loss of outputs that were computed already."""
        _one_for_each_label(self.network, outputs, batch.labels)
        losses = self.loss(outputs, batch.labels)
        _one_for_each_label(self.loss, losses, batch.labels)
        return batch.mean(losses)


def as_objective(objective: AbstractObjective | Callable, network: AbstractNetwork) -> "AbstractObjective":
    """An objective of the network; a plain loss means `Supervised(network, loss)`."""
    if isinstance(objective, AbstractObjective):
        return objective.bind(network)
    return Supervised(network, objective)


def _one_for_each_label(giver: Any, values: Array, labels: Array) -> None:
    shape = getattr(values, "shape", type(values).__name__)
    if shape != labels.shape:
        name = getattr(giver, "__name__", type(giver).__name__)
        raise InputError(f"{name} must give one number for each label: {labels.shape}, got {shape}.")
