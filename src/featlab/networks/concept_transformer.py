"""The transformer that answers prompts by their concept: softmax attention on inputs, a ReLU layer on labels."""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import InputError, probability, real, whole
from featlab.networks._network import AbstractNetwork, _stored_dimension


class ConceptWeights(eqx.Module):
    r"""$W_Q^x$ and $W_K^x$, and $U$ with $W_O^y = \sqrt m\, U$."""

    query: Float[Array, "column column"]
    key: Float[Array, "column column"]
    scaled_output: Float[Array, "neuron column"]


class ConceptTransformer(AbstractNetwork):
    r"""Attention to inputs, and a two-layer network of what the labels attended to say.

    $$f(H) = r^\top \mathrm{ReLU}\Bigl(W_O \sum_{\ell \leq L} s_\ell\, \mathbf{y}_\ell\Bigr), \qquad
    s = \mathrm{softmax}_\ell\, (x_\ell^\top W_K^\top W_Q x_q)$$

    A token holds an input in the first half of its columns and a label in the second, the query is the last one:
    the blocks of the paper's $W_Q, W_K, W_V, W_O$ that are not zero. $W_Q, W_K$ and $W_O$ train; half of the
    $r_i$ are $1/m$, half $-1/m$.

    $W_O = \sqrt m\, U$ and $U$ is what trains: descent on $U$ at rate $\eta$ is descent on $W_O$ at rate $m\eta$,
    so that $W_O$, of whose rows each has $1/m$ of the output, keeps pace with $W_Q$ and $W_K$ at any width.

    The start is $W_O \sim N(0, \sigma_1^2)$ and, with $G_Q, G_K$ of $N(0, 1/d_X)$ entries, $W_Q = \sigma_0 (\alpha
    I + \sqrt{1 - \alpha^2}\, G_Q)$, the same for $W_K$: of one size for every alignment $\alpha$; the theorem's is
    $\alpha = 1$.

    Bu et al. (2024).
    """

    width: int = whole(at_least=2, symbol="m", means="neurons", span=(2, 256))
    init_scale: float = real(
        default=0.2, at_least=0, symbol=r"\sigma_0", means="scale of queries and keys at the start"
    )
    output_scale: float = real(
        default=0.1, at_least=0, symbol=r"\sigma_1", means="scale of the output layer at the start"
    )
    alignment: float = probability(
        default=1.0, symbol=r"\alpha", means="alignment of queries with keys at the start"
    )

    @classmethod
    def examples(cls):
        return (cls(width=4), cls(width=6, alignment=0.0))

    def __check_init__(self):
        if self.width % 2:
            raise InputError(
                f"ConceptTransformer.width must be even, half of the neurons for each label, got {self.width}."
            )

    def init(self, key, space):
        size = _stored_dimension(space)
        if size % 2:
            raise InputError(f"ConceptTransformer needs an even d, half for inputs, half for labels, got {size}.")
        half = size // 2
        normals = jax.random.normal(key, (2 * half + self.width, half), jnp.float32).astype(float)

        def start(gaussian):
            other = jnp.sqrt((1 - self.alignment**2) / half) * gaussian
            return self.init_scale * (self.alignment * jnp.eye(half) + other)

        output = self.output_scale / jnp.sqrt(self.width) * normals[2 * half :]
        return ConceptWeights(start(normals[:half]), start(normals[half : 2 * half]), output), space

    def __call__(self, params, inputs):
        labels = inputs[:-1, inputs.shape[1] // 2 :]
        neurons = jax.nn.relu(self.output_weights(params) @ (self.attended(params, inputs) @ labels))
        return jnp.sum(self.signs * neurons) / self.width

    def attended(self, params: ConceptWeights, inputs: Array) -> Float[Array, " demonstration"]:
        """How the query of one prompt spreads its attention over the demonstrations."""
        tokens = inputs[:, : inputs.shape[1] // 2]
        asked = params.key.T @ (params.query @ tokens[-1])
        return jax.nn.softmax(tokens[:-1] @ asked)

    def output_weights(self, params: ConceptWeights) -> Float[Array, "neuron column"]:
        """$W_O^y$."""
        return jnp.sqrt(self.width) * params.scaled_output

    @property
    def signs(self) -> Float[Array, " neuron"]:
        """$m r$: which label each neuron speaks for."""
        return jnp.where(jnp.arange(self.width) < self.width // 2, 1.0, -1.0)
