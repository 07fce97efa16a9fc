r"""Contrastive learning: each view is to be found among candidates by its similarity.

Of an anchor $x_i$ with the positive $x_i^+$ and negatives $x_j^-$, $j \in N_i$, the loss is minus the
log-probability of the positive in a softmax of similarities over the temperature (van den Oord, Li and Vinyals
2018).
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from featlab.core.sees import Sees
from featlab.core.validation import InputError, flag, real
from featlab.data import Batch
from featlab.networks import AbstractNetwork
from featlab.objectives._objective import AbstractObjective

NEGATIVES = ("opposite", "all")


class InfoNCE(AbstractObjective):
    r"""The contrastive loss of two views, embedded patch by patch.

    $$L = \frac1n \sum_i -\log \frac{e^{\mathrm{Sim}(x_i, x_i^+)/\tau}}{e^{\mathrm{Sim}(x_i, x_i^+)/\tau} +
      \sum_{j \in N_i} e^{\mathrm{Sim}(x_i, x_j^-)/\tau}}, \qquad
      \mathrm{Sim}(x, x') = \frac1m \sum_r \sum_p h_r(x^{(p)})\, \mathrm{sg}(h_r(x'^{(p)}))$$

    The candidates, $x'$, are held fixed when the gradient is taken (`stop_gradient`). Negatives are the samples of
    the other label, or with "all" every other sample. Where both views have one encoder, view 1 is the anchor, its
    own view 2 the positive, and view 1 of other samples are the negatives: single-modal learning, with view 2 an
    augmentation. Where each has its own, view 1 is compared with view 2 of all samples, and the loss of the other
    direction, view 2 with view 1, is added: multi-modal learning.

    Without any negative a sample's loss is 0. The aux are the embeddings, with the sample as last axis.

    Huang, Han, Chen, Cao, Xu and Suzuki (2024).
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    network: AbstractNetwork | None = None
    temperature: float = real(default=0.5, above=0, symbol=r"\tau", means="temperature")
    negatives: str = "opposite"
    stop_gradient: bool = flag(default=True, means="no gradient through the candidates")

    @classmethod
    def examples(cls):
        return (cls(), cls(temperature=1.0, negatives="all", stop_gradient=False))

    def __check_init__(self):
        if self.negatives not in NEGATIVES:
            raise InputError(f"InfoNCE.negatives must be 'opposite' or 'all', got {self.negatives!r}.")

    def __call__(self, params, batch, key):
        assert self.network is not None, "bind() the objective to a network first"
        embedded = jax.vmap(self.network, in_axes=(None, 0), out_axes=-1)(params, batch.inputs)
        return self.mean_loss(embedded, batch), embedded

    def mean_loss(self, embedded: Float[Array, "view patch neuron sample"], batch: Batch) -> Float[Array, ""]:
        """The loss of embeddings that were computed already, both directions where there are two."""
        one, other = self._views(embedded)
        among = self.candidates(batch)
        if self._one_encoder:
            return batch.mean(self._losses(one, other, one, among))
        return batch.mean(self._losses(one, other, other, among)) + batch.mean(
            self._losses(other, one, one, among)
        )

    def candidates(self, batch: Batch) -> Bool[Array, "anchor negative"]:
        """Who is a negative of whom."""
        apart = ~jnp.eye(len(batch.mask), dtype=bool)
        if self.negatives == "opposite":
            apart = batch.labels[:, None] != batch.labels[None]
        return apart & batch.mask[None]

    def indifferent(self, batch: Batch) -> Float[Array, ""]:
        r"""The loss where all similarities are equal, $\log(1 + M)$ for each direction: that of a small start."""
        count = jnp.sum(self.candidates(batch), axis=1)
        return (1 if self._one_encoder else 2) * batch.mean(jnp.log1p(count))

    @property
    def _one_encoder(self) -> bool:
        return bool(getattr(self.network, "shared", False))

    def _views(self, embedded: Any):
        if jnp.ndim(embedded) != 4 or len(embedded) != 2:
            raise InputError(
                f"InfoNCE needs a network that embeds two views patch by patch, such as PatchEncoder; "
                f"{type(self.network).__name__} gives {jnp.shape(embedded)[:-1]} for one sample."
            )
        return embedded

    def _losses(self, anchors, positives, negatives, among):
        """One for each anchor; all are (patch, neuron, sample)."""
        if self.stop_gradient:
            positives, negatives = jax.lax.stop_gradient((positives, negatives))
        scale = anchors.shape[1] * self.temperature  # m tau
        own = jnp.sum(anchors * positives, axis=(0, 1)) / scale
        flat = (-1, anchors.shape[-1])
        others = anchors.reshape(flat).T @ negatives.reshape(flat) / scale
        # Minus the log of the positive's share; never all of minus infinity, the positive being among them.
        excess = jnp.where(among, others - own[:, None], -jnp.inf)
        return jax.nn.logsumexp(jnp.concatenate([jnp.zeros_like(excess[:, :1]), excess], axis=1), axis=1)
