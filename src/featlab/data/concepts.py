"""Prompts that share a concept: demonstrations and a query whose label is to be said."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.space import AbstractSpace
from featlab.core.validation import InputError, probability, real, whole
from featlab.data._data import AbstractDataModel, Batch, signed
from featlab.data._fields import dimension, sample_size

_COINS = 40  # of a prompt, at least: the compiler unrolls shorter draws, which takes it three times as long


class Concepts(eqx.Module):
    """The directions behind the prompts, orthonormal in the inputs' half of a token and in the labels' half."""

    input_concepts: Float[Array, "concept column"]  # a_k
    input_semantics: Float[Array, "concept column"]  # b_k
    label_concepts: Float[Array, "concept column"]  # c_k
    label_semantics: Float[Array, "concept column"]  # d_k


class ConceptPrompts(AbstractDataModel):
    r"""Prompts of $L$ pairs and a query, all of one concept $k$ out of $K$, each with a meaning $y = \pm 1$.

    $$H = \begin{pmatrix} x_1 & \cdots & x_L & x_q \\ y_1 & \cdots & y_L & 0 \end{pmatrix}, \qquad
    x_\ell = a_k + y_\ell b_k + \xi_\ell, \quad \mathbf{y}_\ell = c_k + y_\ell d_k + \xi'_\ell$$

    A token is a column of $H$, of $d$ numbers: half of them for the input, half for the label. The query comes
    last, its label's half is zero, and its $y$ is the prompt's label. $a_k, b_k$ are orthonormal, $c_k, d_k$ too,
    noise is $N(0, \sigma^2 I)$. A prompt is *answerable* when a demonstration has the query's label; one in
    $2^L$ is not.

    `positive` is $P(y = 1)$, for demonstrations and query alike. A share `mixed` of the prompts have no concept of
    their own but a positive mixture, $a = \sum_k u_k a_k$ and so on, with $u \geq 0$ uniform on the sphere,
    $|u| = 1$.

    Bu et al. (2024).
    """

    n: int = sample_size()
    d: float = dimension(at_least=4, means="dimension of a token, half input and half label")
    concepts: int = whole(default=3, at_least=1, symbol="K", means="concepts", span=(1, 10))
    length: int = whole(default=10, at_least=1, symbol="L", means="demonstrations in a prompt", span=(1, 50))
    noise_scale: float = real(default=0.1, at_least=0, symbol=r"\sigma", means="noise in each coordinate")
    positive: float = probability(default=0.5, symbol="P(y = 1)", means="probability of a positive label")
    mixed: float = probability(default=0.0, means="prompts that mix concepts")

    @classmethod
    def examples(cls):
        return (
            cls(n=6, d=40, concepts=2, length=3),
            cls(n=5, d=40, concepts=3, length=2, positive=0.2, mixed=0.5),
        )

    def __check_init__(self):
        if not isinstance(self.d, jax.Array) and (self.d % 2 or self.d < 4 * self.concepts):
            raise InputError(
                "ConceptPrompts.d must be even, one half for inputs and one for labels, and at least 4 for each "
                f"of the {self.concepts} concepts, got {self.d:g}."
            )

    def truth(self, key, space):
        axes = jnp.eye(2 * self.concepts, _stored(space) // 2)
        concepts, semantics = axes[0::2], axes[1::2]
        return Concepts(concepts, semantics, concepts, semantics), space

    def draw(self, key, truth, space, rows):
        coin_key, noise_key = jax.random.split(key)
        noise, space = space.gaussian(noise_key, rows * (self.length + 1))
        return self._prompts(coin_key, truth, noise, jnp.arange(rows) < self.n), space

    def fresh(self, key, truth, space, count, *, training=False):
        coin_key, noise_key = jax.random.split(key)
        noise = space.fresh(noise_key, count * (self.length + 1))
        return self._prompts(coin_key, truth, noise, jnp.ones(count, bool))

    def _prompts(self, key, truth, noise, mask):
        """One prompt for each entry of the mask; `task` is its mixture u, `coins` the demonstrations' labels."""
        keys = jax.vmap(lambda i: jax.random.fold_in(key, i))(jnp.arange(len(mask)))
        mixtures, labels = jax.vmap(self._toss)(keys)
        concepts = mixtures @ jnp.concatenate([truth.input_concepts, truth.label_concepts], axis=1)
        semantics = mixtures @ jnp.concatenate([truth.input_semantics, truth.label_semantics], axis=1)
        noise = self.noise_scale * noise.reshape(len(mask), self.length + 1, -1)
        tokens = concepts[:, None] + labels[:, :, None] * semantics[:, None] + noise
        tokens = tokens.at[:, -1, tokens.shape[-1] // 2 :].set(0)  # the answer that is asked for
        query = labels[:, -1]
        return Batch(tokens, query, query, mask, mixtures, labels[:, :-1])

    def _toss(self, key):
        """What one prompt mixes, and all its labels, the query's last."""
        needed = self.concepts + self.length + 2
        draws = jax.random.uniform(key, (max(needed, _COINS),), jnp.float32)[:needed]
        mixed, own, labels = draws[0], draws[1 : self.concepts + 1], draws[self.concepts + 1 :]
        single = jnp.eye(self.concepts)[jnp.floor(self.concepts * own[0]).astype(int)]
        normals = jax.lax.erf_inv(own).astype(float)  # half-normal, but for a factor
        mixture = jnp.where(mixed < self.mixed, normals / jnp.linalg.norm(normals), single)
        return mixture, signed(labels < self.positive)


def answerable(prompts: Batch) -> Array:
    """Which prompts have a demonstration with the query's label."""
    return jnp.any(prompts.coins == prompts.labels[:, None], axis=1)


def _stored(space: AbstractSpace) -> int:
    size = getattr(space, "size", None)
    assert isinstance(size, int), "prompts have halves, which only whole vectors have"
    return size
