"""Two-layer linear networks: the first layer is a metric on the inputs."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.validation import InputError, flag, function, real, whole
from featlab.data import power_law
from featlab.networks._network import AbstractNetwork, _stored_dimension


class LinearLayers(eqx.Module):
    """Both layers; a diagonal first layer by one number for each coordinate."""

    first: Float[Array, "neuron column"] | Float[Array, " column"]
    head: Float[Array, " neuron"] | Float[Array, "neuron task"]


class TwoLayerLinear(AbstractNetwork):
    r"""$f(x) = \beta^\top W x$, with as many heads $\beta$ as there are tasks.

    Ridge regression on the features $Wx$ is ridge regression on $x$ with the penalty $\lambda
    \|\tilde\beta\|^2$ measured by $(W^\top W)^{-1}$. $W$ is $d \times d$ and begins as $\mathrm{diag}(s
    j^{-p})$, which for $p = 0$ is $s I$; or it has `width` rows and begins as $w_r \sim N(0, s^2 I/d)$. With
    `diagonal`, $W = \mathrm{diag}(w)$ throughout and the parameters are $\log w_j$; with a `bound` $b$ they
    are $t_j$ in $\log w_j = b \tanh(t_j / b)$, which never leaves $\pm b$. An input of several patches counts
    as their sum.
    """

    width: int = whole(default=0, at_least=0, means="rows of W, 0 standing for d", span=(0, 256))
    diagonal: bool = flag(default=False, means="a diagonal first layer")
    tasks: int = whole(default=1, at_least=1, symbol="m", means="tasks", span=(1, 100))
    init_scale: float = real(default=1.0, above=0, symbol="s", means="scale of the start")
    decay: float = real(default=0.0, symbol="p", means="exponent of the start's decay", span=(-2, 2))
    bound: float | None = real(
        default=None, above=0, optional=True, symbol="b", means="bound on the logarithms of W"
    )

    @classmethod
    def examples(cls):
        return (
            cls(),
            cls(width=3, init_scale=2.0),
            cls(diagonal=True, decay=0.5),
            cls(diagonal=True, init_scale=0.5, bound=2.0),
        )

    def __check_init__(self):
        begun = isinstance(self.init_scale, float) and isinstance(self.decay, float)
        if self.diagonal and self.width:
            raise InputError("TwoLayerLinear.width must be left out where W is diagonal, d x d.")
        if self.width and begun and self.decay != 0:
            raise InputError("TwoLayerLinear.decay is that of a d x d start; leave it or width out.")
        if self.bound is not None and not self.diagonal:
            raise InputError("TwoLayerLinear.bound is that of a diagonal W; add diagonal=true.")
        if isinstance(self.bound, float) and begun and self.decay != 0:
            raise InputError("TwoLayerLinear.decay may leave the bound at the start; leave one of them out.")
        if isinstance(self.bound, float) and begun and abs(math.log(self.init_scale)) >= self.bound:
            raise InputError(
                f"TwoLayerLinear.init_scale must lie between e^-b and e^b, with bound b = {self.bound:g}, "
                f"got {self.init_scale:g}."
            )

    def vectors(self):
        return self.width

    def init(self, key, space):
        weights_key, head_key = jax.random.split(key)
        size = _stored_dimension(space)
        if self.width:
            rows, space = space.gaussian(weights_key, self.width)
            first = self.init_scale / jnp.sqrt(space.dimension) * rows
        else:
            logarithms = jnp.log(self.init_scale) - self.decay * jnp.log(jnp.arange(1, size + 1, dtype=float))
            first = self._unbounded(logarithms) if self.diagonal else jnp.diag(jnp.exp(logarithms))
        shape = (len(first),) if self.tasks == 1 else (len(first), self.tasks)
        head = jax.random.normal(head_key, shape, jnp.float32).astype(float) / math.sqrt(len(first))
        return LinearLayers(first, head), space

    def scales(self, params: LinearLayers) -> Float[Array, " column"]:
        """The diagonal of a diagonal W."""
        assert self.diagonal
        first = params.first
        return jnp.exp(first if self.bound is None else self.bound * jnp.tanh(first / self.bound))

    def layer(self, params: LinearLayers) -> Float[Array, "neuron column"]:
        """W, written out."""
        return jnp.diag(self.scales(params)) if self.diagonal else params.first

    def applied(self, params: LinearLayers, rows: Float[Array, "row column"]) -> Float[Array, "row neuron"]:
        """W times each row."""
        return rows * self.scales(params)[None] if self.diagonal else rows @ params.first.T

    def applied_back(self, params: LinearLayers, rows: Float[Array, "row neuron"]) -> Float[Array, "row column"]:
        r"""$W^\top$ times each row."""
        return rows * self.scales(params)[None] if self.diagonal else rows @ params.first

    def with_head(self, params: LinearLayers, head: Array) -> LinearLayers:
        """The same features under other heads, (neuron,) or (neuron, task)."""
        return LinearLayers(params.first, head.reshape(params.head.shape))

    def features(self, params, inputs):
        return self.applied(params, jnp.sum(inputs, axis=0)[None])[0]

    def __call__(self, params, inputs):
        return self.features(params, inputs) @ params.head

    def _unbounded(self, logarithms):
        """The parameters that stand for these logarithms."""
        return logarithms if self.bound is None else self.bound * jnp.arctanh(logarithms / self.bound)


class AlignedLinear(TwoLayerLinear):
    r"""A first layer that begins diagonal with $W^\top W = \mathrm{diag}(s^2 j^{-2p} \nu_j)$, for any law $\nu$.

    With $\nu_j$ the variances of the coefficients of the tasks, ridge regression on $Wx$ is the Bayes estimator.
    """

    metric: Callable = function(
        "a function of j = 1, ..., d, such as power_law(2)",
        default=power_law(0.0),
        symbol=r"\nu_j",
        means="law that the start is aligned with",
    )

    @classmethod
    def examples(cls) -> Any:
        return (cls(diagonal=True, metric=power_law(2.0)),)

    def __check_init__(self):
        if not self.diagonal or self.bound is not None:
            raise InputError("AlignedLinear needs diagonal=true and no bound: its start is given by logarithms.")

    def init(self, key, space):
        params, space = super().init(key, space)
        j = jnp.arange(1, len(params.first) + 1, dtype=float)
        return LinearLayers(params.first + jnp.log(self.metric(j)) / 2, params.head), space
