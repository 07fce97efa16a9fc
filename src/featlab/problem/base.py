"""What an algorithm may use of one run."""

from __future__ import annotations

import abc
from typing import Any, Self

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from featlab.core.validation import InputError
from featlab.data import AbstractDataModel, Batch
from featlab.networks import AbstractNetwork
from featlab.objectives import AbstractObjective
from featlab.problem.draw import Draw


class AbstractProblem(eqx.Module):
    """What an algorithm may use.

    start                            the parameters to begin with
    batch(key, step)                 what this step sees
    value(params, batch)             the objective, and with value_and_grad and gradient its gradient
    norm(gradient)                   the length of a gradient
    outputs(params, batch)           what the network makes of each input
    features(params, inputs)         what its last layer sees
    samples(k), holdout(i)           the training set, and independent ones
    data, network, objective, draw   the parts themselves, for what is particular to them
    """

    data: AbstractDataModel
    network: AbstractNetwork
    objective: AbstractObjective
    draw: Draw
    begun: Any = None  # parameters to begin with, where they are not the draw's

    @property
    def start(self) -> Any:
        """The parameters to begin with."""
        return self.drawn_start() if self.begun is None else self.begun

    @abc.abstractmethod
    def drawn_start(self) -> Any:
        """The network's initial parameters, as they were drawn."""

    def starting_from(self, params: Any) -> Self:
        """The same problem from other parameters."""
        return eqx.tree_at(lambda problem: problem.begun, self, params, is_leaf=lambda leaf: leaf is None)

    def batch(self, key: PRNGKeyArray, step: Array) -> Batch:
        """What this step sees: the whole training set, a mini-batch or fresh inputs, as the data says."""
        return self.data.batch(key, step, self.draw.training, self.draw)

    @abc.abstractmethod
    def value(self, params: Any, batch: Batch, key: PRNGKeyArray | None = None) -> Float[Array, ""]:
        """The objective's value."""

    @abc.abstractmethod
    def value_and_grad(self, params: Any, batch: Batch, key: PRNGKeyArray | None = None) -> tuple[Array, Any]:
        """The objective's value and its gradient in the parameters."""

    def gradient(self, params: Any, batch: Batch, key: PRNGKeyArray | None = None) -> Any:
        """The objective's gradient in the parameters."""
        return self.value_and_grad(params, batch, key)[1]

    @abc.abstractmethod
    def norm(self, gradient: Any) -> Float[Array, ""]:
        """The length of a gradient, all parameters taken together."""

    @abc.abstractmethod
    def outputs(self, params: Any, batch: Batch) -> Array:
        """The network's output for each input."""

    def features(self, params: Any, inputs: Array) -> Array:
        """What the last layer sees of each input."""
        return jax.vmap(self.network.features, in_axes=(None, 0))(params, inputs)

    def samples(self, which: int) -> Batch:
        """The training set for 0, the k-th independent set for k."""
        return self.draw.training if which == 0 else self.holdout(which - 1)

    def holdout(self, i: int) -> Batch:
        """The i-th independent set of the training law; the algorithm says beforehand how many it needs."""
        if i >= len(self.draw.holdouts):
            raise InputError(
                f"holdout({i}) was asked for and {len(self.draw.holdouts)} were drawn: "
                "an algorithm's `holdouts` must say how many it uses."
            )
        return self.draw.holdouts[i]


def length(tree: Any) -> Float[Array, ""]:
    """The length of all numbers taken together."""
    return jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(tree)))
