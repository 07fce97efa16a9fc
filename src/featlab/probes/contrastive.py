r"""What an encoder has learnt: signal against noise, and how well a linear probe on it classifies.

The encoder of view 1 is read, that of the first modality; another `view` may be named.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.linear_algebra import qr
from featlab.core.sees import Sees
from featlab.data import AbstractPairs
from featlab.networks import PatchEncoder
from featlab.objectives import InfoNCE
from featlab.probes._probe import Variable, View, probe
from featlab.probes.risk import wrong
from featlab.problem import vector_model

PROBE_INPUTS = 2000  # labelled inputs of the linear probe, and as many tests
OTHER_SIGNAL = 0.4  # |nu| / |mu| of the published experiment, 2 and 5
_RIDGE = 1e-6  # of the variance of a feature: beyond rounding, far below what an encoder shows


@probe(
    of=(InfoNCE,),
    sees=Sees.PRODUCTS,
    relative_loss=Variable("", r"L / \log(1 + M)", "contrastive loss over that of equal similarities"),
)
def relative_loss(view: View):
    r"""The contrastive loss over $\log(1 + M)$, its value at a small start; the same level for any $n$."""
    objective = view.problem.objective
    assert isinstance(objective, InfoNCE)
    return view.problem.value(view.params, view.training) / objective.indifferent(view.training)


@probe(
    of=(AbstractPairs, PatchEncoder),
    sees=Sees.PRODUCTS,
    encoder_signal=Variable("filter", r"\langle w_r, \mu \rangle", "product of each neuron with the signal"),
    encoder_noise=Variable(
        "filter sample", r"\langle w_r, \xi_i \rangle", "product of each neuron with each noise patch"
    ),
)
def encoder_products(view: View, *, encoder: int = 0):
    """Products of one view's neurons with that view's signal and with its training noise."""
    signal, noise = _products(view, encoder)
    return {"encoder_signal": signal, "encoder_noise": noise}


@probe(
    of=(AbstractPairs, PatchEncoder),
    sees=Sees.PRODUCTS,
    encoder_ratio=Variable(
        "",
        r"\max_r |\langle w_r, \mu \rangle| \,/\, \frac1n \sum_i \max_r \langle w_r, \xi_i \rangle",
        "signal learnt over noise memorised",
    ),
    log_ratio=Variable("", r"\log(\text{signal} / \text{noise})", "logarithm of that ratio"),
    signal_response=Variable("", r"\max_r |\langle w_r, \mu \rangle|", "largest product with the signal"),
    noise_response=Variable(
        "", r"\frac1n \sum_i \max_r \langle w_r, \xi_i \rangle", "mean over samples of the largest with the noise"
    ),
)
def encoder_ratio(view: View, *, encoder: int = 0):
    """Signal over noise in the encoder of one view. A neuron may show the signal of either class."""
    signal, noise = _products(view, encoder)
    learnt, memorised = jnp.max(jnp.abs(signal)), view.training.mean(jnp.max(noise, axis=0))
    return {
        "encoder_ratio": learnt / memorised,
        "log_ratio": jnp.log(learnt) - jnp.log(memorised),
        "signal_response": learnt,
        "noise_response": memorised,
    }


@probe(
    of=(AbstractPairs, PatchEncoder),
    sees=Sees.PRODUCTS,
    downstream_error=Variable("", r"P(y \hat f(x) \leq 0)", "error of a linear probe on fresh inputs"),
    shifted_error=Variable(
        "", r"P(y \hat f(x) \leq 0),\ \mu \to \nu", "error of the same probe where the signal has another strength"
    ),
)
def downstream_error(view: View, *, encoder: int = 0, count: int = PROBE_INPUTS, shift: float = OTHER_SIGNAL):
    r"""A linear probe by least squares on $\sum_p h(x^{(p)})$, an embedding summed over its patches.

    It is fitted to `count` fresh labelled inputs of the training law, and tested on as many others: of that law,
    and out of distribution, where the signal is $\nu = $ `shift` $\cdot \mu$. On patches side by side a probe
    would be trivial, the signal's being free of noise.
    """
    network, data = _parts(view)
    draw, rows = view.problem.draw, view.problem.weights(view.params)[network.rows_of(encoder)]
    signal = draw.truth.vectors[data.signal_of(encoder)] @ rows.T
    noise_key, label_key = jax.random.split(draw.test_key)
    noise: Any = draw.space.fresh_products(noise_key, rows, 2 * count, draw.truth.directions, unit_norm=True)
    noise = data.noise_length(draw.space) * noise
    labels = jnp.where(jax.random.bernoulli(label_key, 0.5, (2 * count,)), 1.0, -1.0)

    def embedded(which, strength):
        return network.activation(labels[which, None] * (strength * signal)[None]) + network.activation(
            noise[which]
        )

    fitted, tested = slice(0, count), slice(count, None)
    head = linear_probe(embedded(fitted, 1.0), labels[fitted])

    def error(strength):
        return jnp.mean(wrong(labels[tested] * head(embedded(tested, strength))))

    return {"downstream_error": error(1.0), "shifted_error": error(shift)}


def linear_probe(features: Float[Array, "input feature"], labels: Float[Array, " input"]):
    """The affine function of the features that is closest to the labels; a function of other features."""
    middle, spread = jnp.mean(features, axis=0), jnp.std(features, axis=0)
    spread = jnp.where(spread > 0, spread, 1)

    def seen(rows):
        return (rows - middle[None]) / spread[None]

    rows = seen(features)
    # A little ridge, as rows of its own: least squares by QR squares no condition number.
    small = jnp.sqrt(_RIDGE * len(rows)) * jnp.eye(rows.shape[1], dtype=rows.dtype)
    basis, triangle = qr(jnp.concatenate([rows, small]))
    head = jax.scipy.linalg.solve_triangular(triangle, basis[: len(rows)].T @ labels)
    return lambda others: jnp.mean(labels) + seen(others) @ head


def _products(view: View, encoder: int) -> tuple[Float[Array, " filter"], Float[Array, "filter sample"]]:
    """Of the neurons of one view with its signal, and with the noise patch of each training sample."""
    network, data = _parts(view)
    rows = network.rows_of(encoder)
    signals, noise = view.problem.products(view.params)
    patches = data.composed(view.training, signals, noise)  # (sample, patch, row)
    return signals[data.signal_of(encoder), rows], patches[:, 2 * encoder + 1, rows].T


def _parts(view: View) -> tuple[PatchEncoder, AbstractPairs]:
    network, data = view.problem.network, vector_model(view.problem.data)
    assert isinstance(network, PatchEncoder) and isinstance(data, AbstractPairs)
    return network, data
