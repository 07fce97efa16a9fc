r"""The risk of learning in context with linear attention on features.

After a prompt of pairs $(x_i, y_i)$, attention answers the query $x$ by $\frac1n \sum_i y_i h(x_i)^\top \Gamma
h(x)$. Over tasks $y = \langle v, f^\circ(x) \rangle$, $v \sim N(0, I_k)$, and long prompts the mean of half its
squared error is $\frac12 \mathbb{E} \|f^\circ - \Sigma_{\circ\mu} \Gamma h\|^2$, with $\Sigma_{\circ\mu} =
\mathbb{E} f^\circ h^\top$, and the best $\Gamma$ is $\Sigma_{\mu\mu}^{-1}$.
"""

from typing import Any, ClassVar

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from featlab.core.sees import Sees
from featlab.core.validation import InputError, real, whole
from featlab.data import Batch
from featlab.data.prompts import task_vectors
from featlab.networks import AbstractNetwork
from featlab.objectives._objective import AbstractObjective

MODELS = ("attention", "static")


class InContextRisk(AbstractObjective):
    r"""Half the squared error of linear attention on the network's outputs $h$; labels are the features
    $f^\circ(x)$ behind all tasks.

    The model "attention" takes the network's own $\Gamma$: $\mathcal{L}(\mu, \Gamma) = \frac12 \mathbb{E}
    \|f^\circ - \Sigma_{\circ\mu} \Gamma h\|^2$. The model "static" takes the best one,
    $$\mathcal{L}(\mu) = \min_\Gamma \mathcal{L}(\mu, \Gamma) = \tfrac12 [\mathrm{tr}\, \Sigma_{\circ\circ} -
      \mathrm{tr}\, \Sigma_{\circ\mu} \Sigma_{\mu\mu}^{-1} \Sigma_{\mu\circ}],$$
    where $\Sigma_{\mu\mu}$ has $\epsilon\, \mathrm{tr}(\Sigma_{\mu\mu})/k$ added to its diagonal.

    Without `length`, expectations are means over the batch: the limit of long prompts and many tasks. With it the
    batch is cut into prompts of `length` pairs and a query, each with a task $v_t$ of its own drawn from the key,
    and the risk is the mean over queries, $\frac{1}{2T} \sum_t (y_t - \frac1n \sum_i y_{t,i} h(x_{t,i})^\top
    \Gamma h(x_t))^2$.

    Kim and Suzuki (2024).
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    network: AbstractNetwork | None = None
    model: str = "static"
    length: int | None = whole(
        default=None, optional=True, symbol="n", means="pairs of a prompt, none for long ones"
    )
    jitter: float = real(
        default=1e-6, at_least=0, symbol=r"\epsilon", means="share of the trace that is added to the diagonal"
    )

    @classmethod
    def examples(cls):
        return (cls(), cls(length=2))

    def __check_init__(self):
        if self.model not in MODELS:
            raise InputError(f"InContextRisk.model must be 'attention' or 'static', got {self.model!r}.")

    def __call__(self, params, batch, key):
        assert self.network is not None, "bind() the objective to a network first"
        learnt = outputs_of(self.network, params, batch)
        true = batch.labels.reshape(len(batch.mask), -1)
        moments = moments_of(true, learnt, batch.mask)
        gamma = best_attention(moments, self.jitter) if self.model == "static" else self._attention(params)
        if self.length is None:
            return risk(true, learnt, batch.mask, moments.cross @ gamma), gamma
        key = jax.random.key(0) if key is None else key  # a probe asks for the same tasks every time
        return prompt_risk(true, learnt, batch.mask, gamma, self.length, key), gamma

    def _attention(self, params):
        attention = getattr(self.network, "attention", None)
        if attention is None:
            raise InputError(
                f"InContextRisk('attention') needs a network with an attention matrix, and "
                f"{type(self.network).__name__} has none; use MeanFieldFeatures, or the model 'static'."
            )
        return attention(params)


class Moments(eqx.Module):
    r"""$\Sigma_{\circ\circ}$, $\Sigma_{\circ\mu}$ and $\Sigma_{\mu\mu}$: second moments of the true and of the
    learnt features."""

    true: Float[Array, "truth truth"]
    cross: Float[Array, "truth feature"]
    learnt: Float[Array, "feature feature"]


def outputs_of(network: AbstractNetwork, params: Any, batch: Batch) -> Float[Array, "sample feature"]:
    """The network's outputs as features, 0 on padding."""
    values = jax.vmap(network, in_axes=(None, 0))(params, batch.inputs)
    return jnp.where(batch.mask[:, None], values.reshape(len(batch.mask), -1), 0)


def moments_of(true, learnt, mask: Bool[Array, " sample"]) -> Moments:
    """Means over the samples that count."""
    true, learnt = (jnp.where(mask[:, None], one, 0) for one in (true, learnt))
    count = jnp.maximum(jnp.sum(mask), 1)
    return Moments(true.T @ true / count, true.T @ learnt / count, learnt.T @ learnt / count)


def best_attention(moments: Moments, jitter) -> Float[Array, "feature feature"]:
    r"""$\Gamma^* = (\Sigma_{\mu\mu} + \epsilon\, \mathrm{tr}(\Sigma_{\mu\mu})/k)^{-1}$."""
    size = len(moments.learnt)
    return inverse(moments.learnt + jitter * jnp.trace(moments.learnt) / size * jnp.eye(size))


def risk(true, learnt, mask, readout: Float[Array, "truth feature"]) -> Float[Array, ""]:
    r"""$\frac12 \mathbb{E} \|f^\circ - B h\|^2$ for a given $B$."""
    # As a residual, not as a difference of traces: small losses keep their digits.
    return jnp.sum(jnp.where(mask[:, None], true - learnt @ readout.T, 0) ** 2) / 2 / jnp.maximum(jnp.sum(mask), 1)


def prompt_risk(true, learnt, mask, gamma, length: int, key) -> Float[Array, ""]:
    """The mean over prompts that are whole; rows that fill no prompt are left out."""
    tasks = len(mask) // (length + 1)
    if tasks == 0:
        raise InputError(
            f"InContextRisk.length is {length}, and a prompt with its query needs {length + 1} inputs; "
            f"the batch has {len(mask)}."
        )
    cut = [one[: tasks * (length + 1)].reshape(tasks, length + 1, -1) for one in (true, learnt)]
    whole = jnp.all(mask[: tasks * (length + 1)].reshape(tasks, length + 1), axis=1)
    labels = jnp.einsum("tik,tk->ti", cut[0], task_vectors(key, tasks, true.shape[1]))
    seen = jnp.einsum("ti,tij->tj", labels[:, :-1], cut[1][:, :-1]) / length
    answers = jnp.einsum("tj,jl,tl->t", seen, gamma, cut[1][:, -1])
    errors = jnp.where(whole, labels[:, -1] - answers, 0)
    return jnp.sum(errors**2) / 2 / jnp.maximum(jnp.sum(whole), 1)


def inverse(matrix: Float[Array, "row row"]) -> Float[Array, "row row"]:
    """The inverse of a small positive definite matrix, by elimination.

    Row operations alone: many at once are as fast as one, and derivatives of any order exist.
    """
    size = len(matrix)

    def eliminate(both, i):
        pivot = both[i] / both[i, i]
        others = both - jnp.outer(both[:, i], pivot)
        return jnp.where((jnp.arange(size) == i)[:, None], pivot[None], others), None

    start = jnp.concatenate([matrix, jnp.eye(size, dtype=matrix.dtype)], axis=1)
    return jax.lax.scan(eliminate, start, jnp.arange(size))[0][:, size:]
