"""Descent that scales each coordinate by itself, and so does not commute with rotations: sign descent and Adam."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import optax

from featlab.algorithms.descent import AbstractDescent
from featlab.core.validation import flag, real


class SignDescent(AbstractDescent):
    r"""$w \leftarrow w - \eta\,\mathrm{sign}(\nabla L(w) + \lambda w)$: Adam without memory."""

    whole_inputs: ClassVar[bool] = False

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    weight_decay: float | None = real(
        default=None, at_least=0, optional=True, symbol=r"\lambda", means="weight decay"
    )

    @classmethod
    def examples(cls):
        return (cls(0.01), cls(0.01, weight_decay=0.1))

    @property
    def transformation(self):
        return _with_decay(self.weight_decay, optax.scale_by_sign(), self.learning_rate)


class Adam(AbstractDescent):
    r"""$w \leftarrow w - \eta\, m / (\sqrt v + \epsilon)$ with running means of the gradient and of its square.

    $$g = \nabla L(w) + \lambda w, \qquad m \leftarrow \beta_1 m + (1 - \beta_1) g, \qquad
      v \leftarrow \beta_2 v + (1 - \beta_2) g^2$$

    As in the theorems about it; with `bias_correction`, as Kingma and Ba have it, $m$ and $v$ are divided by
    $1 - \beta_1^t$ and $1 - \beta_2^t$. With $\beta_1 = \beta_2 = \epsilon = 0$ it is sign descent.
    """

    whole_inputs: ClassVar[bool] = False

    learning_rate: float = real(above=0, symbol=r"\eta", means="learning rate")
    beta1: float = real(default=0.9, at_least=0, below=1, symbol=r"\beta_1", means="memory of gradients")
    beta2: float = real(default=0.99, at_least=0, below=1, symbol=r"\beta_2", means="memory of squared gradients")
    epsilon: float = real(default=1e-8, above=0, symbol=r"\epsilon", means="number in the denominator")
    bias_correction: bool = flag(default=False, means="memories without the bias of their start")
    weight_decay: float | None = real(
        default=None, at_least=0, optional=True, symbol=r"\lambda", means="weight decay"
    )

    @classmethod
    def examples(cls):
        return (cls(0.01), cls(0.01, bias_correction=True, weight_decay=0.1))

    @property
    def transformation(self):
        kind = optax.scale_by_adam if self.bias_correction else _scale_by_uncorrected_moments
        return _with_decay(self.weight_decay, kind(self.beta1, self.beta2, self.epsilon), self.learning_rate)


def _with_decay(weight_decay, transformation, learning_rate):
    decay = [optax.add_decayed_weights(weight_decay)] if weight_decay is not None else []
    return optax.chain(*decay, transformation, optax.scale(-learning_rate))


def _scale_by_uncorrected_moments(beta1, beta2, epsilon) -> optax.GradientTransformation:
    def init(params):
        zeros = jax.tree.map(jnp.zeros_like, params)
        return zeros, zeros

    def update(updates, state, params=None):
        mean = jax.tree.map(lambda m, g: beta1 * m + (1 - beta1) * g, state[0], updates)
        square = jax.tree.map(lambda v, g: beta2 * v + (1 - beta2) * g**2, state[1], updates)
        return jax.tree.map(lambda m, v: m / (jnp.sqrt(v) + epsilon), mean, square), (mean, square)

    return optax.GradientTransformation(init, update)
