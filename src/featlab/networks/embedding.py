"""Encoders for contrastive learning: a layer of neurons that embeds each patch of each view."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.core.validation import InputError, flag, function, real, whole
from featlab.networks._network import AbstractProductNetwork
from featlab.networks.activations import leaky_relu, relu

VIEWS = 2


class Encoders(eqx.Module):
    """What is learnt: one encoder, or one for each view."""

    filters: Float[Array, "encoder neuron column"] | None


class PatchEncoder(AbstractProductNetwork):
    r"""Each patch of each of two views is embedded by one layer of neurons.

    $$h_r(x^{(p)}) = \sigma(\langle w_r, x^{(p)} \rangle), \qquad
      g_r(\tilde x^{(p)}) = \sigma(\langle \tilde w_r, \tilde x^{(p)} \rangle), \qquad
      w_r, \tilde w_r \sim N(0, \sigma_0^2 I), \qquad r = 1, \ldots, m$$

    A sample's patches are those of view 1, then those of view 2. With `shared` both views have one encoder,
    $\tilde W = W$: a view and its augmentation; without, each has its own: two modalities. The output has the dims
    (view, patch, neuron), which `InfoNCE` takes.

    Huang, Han, Chen, Cao, Xu and Suzuki (2024).
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS

    width: int = whole(at_least=1, symbol="m", means="neurons of an encoder", span=(1, 256))
    shared: bool = flag(default=False, means="one encoder for both views")
    init_scale: float = real(default=0.01, at_least=0, symbol=r"\sigma_0", means="scale of the start")
    activation: Callable = function(
        "an activation, such as relu", each=True, default=relu, symbol=r"\sigma", means="activation"
    )

    @classmethod
    def examples(cls):
        return (
            cls(width=3, init_scale=0.3),
            cls(width=3, shared=True, init_scale=0.3),
            cls(width=2, init_scale=0.3, activation=leaky_relu(0.2)),
        )

    @property
    def encoders(self) -> int:
        """How many different encoders there are."""
        return 1 if self.shared else VIEWS

    def rows_of(self, view: int) -> slice:
        """Which of the weight vectors embed a view."""
        first = 0 if self.shared else view * self.width
        return slice(first, first + self.width)

    def vectors(self):
        return self.encoders * self.width

    def init(self, key, space):
        rows, space = space.gaussian(key, self.vectors())
        return Encoders(self.init_scale * rows.reshape(self.encoders, self.width, -1)), space

    def weights(self, params):
        return params.filters.reshape(self.vectors(), -1)

    def without_weights(self, params):
        return Encoders(None)

    def __call__(self, params, inputs):
        # Each view meets its own encoder alone: half the products of all patches with all weights.
        views = inputs.reshape(VIEWS, self._patches(len(inputs)), -1)
        encoders = jnp.broadcast_to(params.filters, (VIEWS, *params.filters.shape[1:]))
        return self.activation(jnp.einsum("vpc,vrc->vpr", views, encoders))

    def respond(self, params, products):
        patches = self._patches(len(products))
        own = [patch[self.rows_of(place // patches)] for place, patch in enumerate(products)]
        return self.activation(jnp.stack([jnp.stack(own[:patches]), jnp.stack(own[patches:])]))

    def features(self, params, inputs):
        """The embedding of each view, summed over its patches: what a linear probe sees."""
        return jnp.sum(self(params, inputs), axis=1)

    def _patches(self, count: int) -> int:
        if count % VIEWS:
            raise InputError(
                f"PatchEncoder needs inputs of two views with as many patches each, got {count} patches; "
                "use AugmentedPairs or Modalities."
            )
        return count // VIEWS
