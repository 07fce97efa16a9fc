"""How Gaussian concentration bounds the test error of a network on a signal and fresh noise."""

from __future__ import annotations

import math

import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.data import AbstractVectorModel
from featlab.networks import AbstractProductNetwork
from featlab.probes._probe import Variable, View, probe


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    concentration=Variable("", "B", "exponent of the bound on the error that Gaussian concentration gives"),
)
def concentration(view: View):
    r"""$B$ of the bound $P(y f(x) \le 0) \le P(F_-(\xi) \ge M) \le e^{-B}$, the smaller one of the two classes.

    For ReLU filters that are averaged over each class. With $M$ the signal's margin and $F_-$ the response of the
    other class to noise, a Lipschitz function of it, $B = (M - \mathbb{E} F_-)^2 / (2 \sigma^2 \|W_-\|^2 / m)$; 0
    where the margin is below the mean.
    """
    draw = view.problem.draw
    # Weights as fresh noise meets them: products with it are N(0, |row|^2).
    sigma = view.vectors.noise_length(draw.space) / jnp.sqrt(draw.space.dimension)
    directions = draw.truth.directions
    weights = view.weights
    on_signal = (weights @ draw.truth.vectors[0]).reshape(2, -1)
    rows = sigma * (weights - (weights @ directions.T) @ directions).reshape(2, on_signal.shape[1], -1)
    width = rows.shape[1]
    responses = jnp.stack([jnp.maximum(on_signal, 0).mean(1), jnp.maximum(-on_signal, 0).mean(1)])
    margins = jnp.array([responses[0, 0] - responses[0, 1], responses[1, 1] - responses[1, 0]])
    means = jnp.linalg.norm(rows, axis=-1).mean(-1) / math.sqrt(2 * math.pi)
    spread = jnp.stack([jnp.linalg.norm(one, 2) for one in rows]) ** 2 / width
    room = jnp.maximum(margins - means[::-1], 0)  # the other class misreads
    return jnp.min(room**2 / (2 * spread[::-1]))
