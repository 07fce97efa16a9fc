"""The two-layer transformer of sign-descent theory: an attention layer under a linear one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.core.validation import real, whole
from featlab.networks._network import AbstractAttention


class QueryKeyValue(eqx.Module):
    """What the transformer learns, one vector of R^d a row."""

    query: Float[Array, "neuron column"]  # W_Q
    key: Float[Array, "neuron column"]  # W_K
    value: Float[Array, "class neuron column"]  # W_V; the classes are +1, then -1


class TwoLayerTransformer(AbstractAttention):
    r"""Softmax attention summed over its queries, under two classes of value neurons.

    $$f(X) = F_{+1}(X) - F_{-1}(X), \qquad
      F_j(X) = \frac1{m_v} \sum_\ell \mathbf 1^\top W_{V,j} X\,
      \mathrm{softmax}(X^\top W_K^\top W_Q x_\ell), \qquad W_Q, W_K, W_{V,j} \sim N(0, \sigma_0^2)$$

    With $v = \frac1{m_v} \sum_r (w_{V,+1,r} - w_{V,-1,r})$, the mean value, $f(X) = \sum_\ell \sum_k
    s_{\ell k} \langle v, x_k \rangle$: which token comes first makes no difference. Sign descent moves all value
    neurons of a class by the same step, so it is sign descent on $v$ with the step $2\eta$.

    Li, Huang, Han, Zhou, Suzuki, Zhu and Chen (2025).
    """

    sees: ClassVar[Sees] = Sees.PRODUCTS

    head: int = whole(default=16, at_least=1, symbol="m_k", means="neurons of queries and keys", span=(1, 256))
    value_neurons: int = whole(
        default=16, at_least=1, symbol="m_v", means="value neurons in each class", span=(1, 256)
    )
    init_scale: float = real(default=0.001, at_least=0, symbol=r"\sigma_0", means="scale of the start")

    @classmethod
    def examples(cls):
        return (cls(head=3, value_neurons=2, init_scale=0.3),)

    @property
    def groups(self) -> Mapping[str, slice]:
        """Which rows of the weights are queries, keys and values."""
        queries, keys = self.head, 2 * self.head
        return {"query": slice(0, queries), "key": slice(queries, keys), "value": slice(keys, self.vectors())}

    def vectors(self):
        return 2 * self.head + 2 * self.value_neurons

    def init(self, key, space):
        rows, space = space.gaussian(key, self.vectors())
        query, keys, value = (self.init_scale * rows[part] for part in self.groups.values())
        return QueryKeyValue(query, keys, value.reshape(2, self.value_neurons, -1)), space

    def weights(self, params):
        return jnp.concatenate([params.query, params.key, params.value.reshape(2 * self.value_neurons, -1)])

    def without_weights(self, params):
        return None

    def respond(self, params, products):
        return jnp.sum(attended(self._scores(products), self.mean_values(products)), axis=0)

    def features(self, params, inputs):
        """What the mean value meets: the tokens attended to, summed over the queries."""
        attention = self.attention(params, inputs @ self.weights(params).T)
        return jnp.sum(attention, axis=0) @ inputs

    def attention(self, params, products) -> Float[Array, "query key *sample"]:
        """How much of each key a query attends to, given every token's products with the weights."""
        return jax.nn.softmax(self._scores(products), axis=1)

    def mean_values(self, products) -> Float[Array, "token ..."]:
        r"""$\langle v, x_k \rangle$ for each token."""
        head = jnp.repeat(jnp.array([1.0, -1.0]) / self.value_neurons, self.value_neurons)
        return jnp.stack([jnp.tensordot(head, token[self.groups["value"]], axes=1) for token in products])

    def _scores(self, products) -> Float[Array, "query key *sample"]:
        queries = jnp.stack([token[self.groups["query"]] for token in products])
        keys = jnp.stack([token[self.groups["key"]] for token in products])
        return jnp.sum(queries[:, None] * keys[None], axis=2)


@jax.custom_jvp
def attended(
    scores: Float[Array, "query key *sample"], values: Float[Array, "key ..."]
) -> Float[Array, "query ..."]:
    r"""$\sum_k s_k u_k$, $s$ being each query's softmax over the keys, with a derivative exact where it is tiny.

    $\partial / \partial z_k = s_k \sum_j s_j (u_k - u_j)$. Written as $s_k (u_k - \sum_j s_j u_j)$, as the
    derivative of a softmax usually is, it is rounded to 0 for a key that has nearly all the attention, and sign
    descent, to which its size means nothing, would lose its way.
    """
    return jnp.sum(jax.nn.softmax(scores, axis=1) * values[None], axis=1)


@attended.defjvp
def _attended_jvp(primals, tangents):
    (scores, values), (scores_dot, values_dot) = primals, tangents
    attention = jax.nn.softmax(scores, axis=1)
    gaps = values[:, None] - values[None]
    slopes = attention * jnp.sum(attention[:, None] * gaps[None], axis=2)
    moved = jnp.sum(attention * values_dot[None], axis=1) + jnp.sum(slopes * scores_dot, axis=1)
    return jnp.sum(attention * values[None], axis=1), moved
