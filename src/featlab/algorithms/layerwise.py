"""Descent with a learning rate and a weight decay of its own for each layer."""

from __future__ import annotations

from typing import ClassVar

import jax
import jax.numpy as jnp
import optax

from featlab.algorithms.descent import AbstractDescent
from featlab.core.sees import Sees
from featlab.core.validation import InputError, real

_LAYERS = ("weights", "biases", "head")


class LayerwiseDescent(AbstractDescent):
    r"""$w \leftarrow w - \eta_w (\nabla_w L + \lambda_w w)$, and the same for biases $b$ and head $a$, each with
    numbers of its own.

    A layer of rate 0 is frozen. Where $\lambda_w = 1/\eta_w$, the new $w$ is $-\eta_w \nabla_w L$, the gradient
    alone, and the old one is forgotten: the first steps of Shi, Wei and Liang (2022) are
    `Then(LayerwiseDescent(eta_1, ...), 1, LayerwiseDescent(eta_2, ...))`. (There the penalty is $\lambda\|w\|^2$,
    so that their $\lambda_w = 1/2\eta_w$.)

    Layers are told by the names of their arrays, `weights`, `biases` and `head`; what a network keeps of its start
    stays, and a network without one of them has nothing to move there.
    """

    sees: ClassVar[Sees] = Sees.VECTORS
    whole_inputs: ClassVar[bool] = False

    weights_rate: float = real(at_least=0, symbol=r"\eta_w", means="learning rate of the weights")
    biases_rate: float = real(at_least=0, symbol=r"\eta_b", means="learning rate of the biases")
    head_rate: float = real(at_least=0, symbol=r"\eta_a", means="learning rate of the head")
    weights_decay: float = real(default=0.0, at_least=0, symbol=r"\lambda_w", means="decay of the weights")
    biases_decay: float = real(default=0.0, at_least=0, symbol=r"\lambda_b", means="decay of the biases")
    head_decay: float = real(default=0.0, at_least=0, symbol=r"\lambda_a", means="decay of the head")

    @classmethod
    def examples(cls):
        return (cls(0.1, 0.2, 0.05), cls(0.5, 0.0, 0.1, weights_decay=2.0, head_decay=0.1))

    @property
    def transformation(self):
        def init(params):
            named = [_layer(path) for path, _ in jax.tree_util.tree_leaves_with_path(params)]
            if not any(named):
                raise InputError(
                    "LayerwiseDescent moves arrays that are called weights, biases or head, and this network has "
                    "none of them; use GradientDescent."
                )
            return optax.EmptyState()

        def update(updates, state, params=None):
            return jax.tree_util.tree_map_with_path(self._change, updates, params), state

        return optax.GradientTransformation(init, update)

    def _change(self, path, gradient, value):
        layer = _layer(path)
        if layer is None:
            return jnp.zeros_like(gradient)
        return -getattr(self, f"{layer}_rate") * (gradient + getattr(self, f"{layer}_decay") * value)


def _layer(path) -> str | None:
    """The layer an array belongs to; none for what is kept of the start, and for what has another name."""
    names = [getattr(key, "name", None) for key in path]
    return names[-1] if names and names[-1] in _LAYERS and "origin" not in names else None
