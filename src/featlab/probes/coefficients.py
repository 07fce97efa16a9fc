r"""Signal learnt and noise memorised: the order parameters of benign-overfitting theory.

Training only ever adds the data's vectors to the weights (and, with weight decay, shrinks the start), so

$$w_{j,r} = \alpha\, w_{j,r}^{(0)} + j\,\gamma_{j,r} \frac{\mu}{\|\mu\|^2}
  + \sum_i \rho_{j,r,i} \frac{\xi_i}{\|\xi_i\|^2}$$

with coefficients that are unique while the vectors are linearly independent. Two roads lead to them: solving for
them in the weights of the moment (`coefficients`), and following their own recursion from 0 (`recursion.py`).
"""

from __future__ import annotations

import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.data import AbstractVectorModel
from featlab.networks import AbstractProductNetwork
from featlab.probes._probe import Variable, View, probe

GAMMA = Variable("class filter signal", r"\gamma_{j,r}", "signal learnt")
RHO = Variable("class filter sample vector", r"\rho_{j,r,i}", "noise memorised")
ALPHA = Variable("", r"\alpha", "what is left of the start")


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    gamma=GAMMA,
    rho=RHO,
    alpha=ALPHA,
    residual=Variable("", r"\|w - \ldots\| / \|w\|", "relative length of what the decomposition leaves"),
)
def coefficients(view: View):
    """Gamma, rho and alpha of the weights of the moment, and how much of the weights they leave unexplained.

    For an algorithm that leaves the span (sign descent, Adam) they are the projection, and the residual says so.
    """
    count = view.vectors.signal_count
    shrinks = view.algorithm.sees < Sees.COORDINATES
    on_vectors, alpha, residual = view.problem.learnt(view.params, shrinks=shrinks)
    named = order_parameters(view, on_vectors[:, :count], on_vectors[:, count:])
    return {**named, "alpha": alpha, "residual": residual}


def order_parameters(view: View, on_directions, on_noise):
    """Gamma and rho from the coefficients on the signals' directions and on the noise vectors."""
    model, truth = view.vectors, view.problem.draw.truth
    # The coefficient on mu is the one on its direction over |mu|, and gamma that times |mu|^2. Without a signal
    # there is nothing to have learnt, and gamma is what the weights gained along its direction all the same.
    noise_power, on_axes = view.problem.noise_geometry()
    along = on_directions + on_noise.reshape(len(on_noise), -1) @ on_axes.reshape(-1, len(truth.norms))
    gamma = jnp.where(truth.norms[None] > 0, on_directions * truth.norms[None], along)
    rho = on_noise.reshape(-1, *noise_power.shape) * noise_power[None]
    shape = (len(view.class_signs), -1)
    gamma, rho = gamma.reshape(*shape, model.signal_count), rho.reshape(*shape, *noise_power.shape)
    if model.signed_by_class:
        gamma = gamma * view.class_signs[:, None, None]
    return {
        "gamma": gamma[..., 0] if model.signal_count == 1 else gamma,
        "rho": rho[..., 0] if model.noise_count == 1 else rho,
    }


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    signal_learnt=Variable("", r"\max \gamma", "largest signal coefficient"),
)
def signal_learnt(view: View):
    """The largest gamma: one number, for a level or a moment."""
    return jnp.max(coefficients(view)["gamma"])


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    signal_learnt_least=Variable(
        "", r"\min_j \max_r \gamma_{j,r}", "largest signal coefficient of the weaker class"
    ),
)
def signal_learnt_by_each_class(view: View):
    """The largest gamma of the class that has learnt less."""
    gamma = coefficients(view)["gamma"]
    return jnp.min(jnp.max(gamma.reshape(len(gamma), -1), axis=1))


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    noise_memorised=Variable("", r"\max \rho_i", "largest noise coefficient"),
)
def noise_memorised(view: View, *, sample: int | None = None):
    """The largest rho, of all samples or of one: one number, for a level or a moment."""
    rho = coefficients(view)["rho"]
    return jnp.max(rho if sample is None else rho[:, :, sample])


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    signal_product=Variable("class filter signal", r"\langle w_{j,r}, \mu \rangle", "product with the signal"),
    noise_product=Variable(
        "class filter sample vector", r"\langle w_{j,r}, \xi_i \rangle", "product with the noise"
    ),
)
def products(view: View):
    """Inner products of the filters with the signals and with the training noise."""
    model, classes = view.vectors, len(view.class_signs)
    signals, noise = view.problem.products(view.params)
    signal = signals.T.reshape(classes, -1, model.signal_count)
    noise = jnp.moveaxis(noise, -1, 0).reshape(classes, -1, *noise.shape[:2])
    return {
        "signal_product": signal[..., 0] if model.signal_count == 1 else signal,
        "noise_product": noise[..., 0] if model.noise_count == 1 else noise,
    }


@probe(
    of=(AbstractVectorModel, AbstractProductNetwork),
    sees=Sees.PRODUCTS,
    gamma_least=Variable("", r"\min \gamma", "smallest signal coefficient"),
    gamma_most=Variable("", r"\max \gamma", "largest signal coefficient"),
    rho_own_least=Variable("", r"\min \overline{\rho}", "smallest coefficient on noise of the filter's own class"),
    rho_own_most=Variable("", r"\max \overline{\rho}", "largest coefficient on noise of the filter's own class"),
    rho_other_least=Variable("", r"\min \underline{\rho}", "smallest coefficient on noise of the other class"),
    rho_other_most=Variable("", r"\max \underline{\rho}", "largest coefficient on noise of the other class"),
)
def coefficient_bounds(view: View):
    r"""What a proof keeps inside bounds, split as there.

    $\overline\rho = \rho\,1[\tilde y_i = j]$ and $\underline\rho = \rho\,1[\tilde y_i = -j]$. On the clock
    `throughout` these are the extremes over the whole trajectory.
    """
    reading = coefficients(view)
    gamma, rho = reading["gamma"], reading["rho"]
    classes = view.class_signs[:, None]
    real = view.training.mask[None]
    own = (view.training.labels[None] == classes) & real
    other = (view.training.labels[None] != classes) & real
    per_sample = rho.reshape(*rho.shape[:3], -1)

    def extremes(which):
        chosen = which[:, None, :, None]
        least = jnp.min(jnp.where(chosen, per_sample, jnp.inf))
        most = jnp.max(jnp.where(chosen, per_sample, -jnp.inf))
        return tuple(jnp.where(jnp.any(chosen), value, 0.0) for value in (least, most))

    own_least, own_most = extremes(own)
    other_least, other_most = extremes(other)
    return {
        "gamma_least": jnp.min(gamma),
        "gamma_most": jnp.max(gamma),
        "rho_own_least": own_least,
        "rho_own_most": own_most,
        "rho_other_least": other_least,
        "rho_other_most": other_most,
    }
