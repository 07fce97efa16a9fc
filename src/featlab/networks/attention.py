"""One attention head over a sequence of tokens, with a softmax of bilinear scores."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.core.validation import real, whole
from featlab.networks._network import AbstractAttention


class Head(eqx.Module):
    """What one head learns, one vector of R^d a row."""

    query: Float[Array, "neuron column"]  # the columns of W_Q
    key: Float[Array, "neuron column"]  # of W_K
    value: Float[Array, "one column"]  # W_V w_O / |w_O|


class SoftmaxAttention(AbstractAttention):
    r"""A single head of softmax attention, averaged over its queries, under a fixed output vector.

    $$f(X) = \frac1L \sum_{\ell=1}^{L} \mathrm{softmax}(x_\ell W_Q W_K^\top X^\top)\, X W_V w_O, \qquad
      W_Q, W_K \sim N(0, \sigma_0^2)$$

    Only $W_V w_O$ is seen of the value matrix, and its gradient is a vector times $w_O^\top$: descent on $W_V$ is
    descent on $u = W_V w_O / \|w_O\|$ with $f$ reading $\|w_O\| u$, which is what is trained here. So
    `output_norm` $= \|w_O\|$ says how fast values are learnt beside attention, by its square. The value starts
    at 0, or as $u \sim N(0, \sigma_V^2 I)$, which a Gaussian $W_V$ of that scale makes it.

    Jiang, Huang, Zhang, Suzuki and Nie (2024).
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS

    head: int = whole(default=16, at_least=1, symbol="d_h", means="columns of queries and keys", span=(1, 256))
    init_scale: float = real(default=0.05, at_least=0, symbol=r"\sigma_0", means="scale of the start")
    output_norm: float = real(default=1.0, above=0, symbol=r"\|w_O\|", means="length of the output vector")
    value_scale: float = real(
        default=0.0, at_least=0, symbol=r"\sigma_V", means="scale of the value at the start", span=(0, 1)
    )

    @classmethod
    def examples(cls):
        return cls(head=3, init_scale=0.3), cls(head=2, init_scale=0.2, output_norm=0.5, value_scale=0.4)

    @property
    def groups(self) -> Mapping[str, slice]:
        """Which rows of the weights are queries, keys and the value."""
        return {
            "query": slice(0, self.head),
            "key": slice(self.head, 2 * self.head),
            "value": slice(2 * self.head, 2 * self.head + 1),
        }

    def vectors(self):
        return 2 * self.head + 1

    def init(self, key, space):
        rows, space = space.gaussian(key, self.vectors())
        of = self.groups
        scales = {"query": self.init_scale, "key": self.init_scale, "value": self.value_scale}
        return Head(**{name: scales[name] * rows[of[name]] for name in of}), space

    def weights(self, params):
        return jnp.concatenate([params.query, params.key, params.value])

    def without_weights(self, params):
        return None

    def respond(self, params, products):
        values = [token[self.groups["value"]][0] for token in products]
        weighted = [share * value[None] for share, value in zip(self._shares(products), values)]
        read = functools.reduce(jnp.add, weighted)  # (query, *sample)
        return self.output_norm * functools.reduce(jnp.add, list(read)) / len(values)

    def features(self, params, inputs):
        """What the output vector meets: the average over queries of the tokens attended to."""
        attention = self.attention(params, inputs @ self.weights(params).T)
        return jnp.mean(attention, axis=0) @ inputs

    def attention(self, params, products) -> Float[Array, "query key *sample"]:
        """How much of each key a query attends to, given every token's products with the weights."""
        return jnp.stack(self._shares(products), axis=1)

    def _shares(self, products) -> list[Array]:
        """The softmax, key by key, each (query, *sample).

        A sum over few tokens is elementwise that way, and twice as fast as along an axis.
        """
        queries = jnp.stack([token[self.groups["query"]] for token in products])
        keys = jnp.stack([token[self.groups["key"]] for token in products])
        scores = jnp.einsum("qr...,kr...->qk...", queries, keys)
        by_key = [scores[:, k] for k in range(len(keys))]
        largest = jax.lax.stop_gradient(functools.reduce(jnp.maximum, by_key))
        raised = [jnp.exp(one - largest) for one in by_key]
        total = functools.reduce(jnp.add, raised)
        return [one / total for one in raised]
