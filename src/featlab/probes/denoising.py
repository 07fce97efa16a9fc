"""What a denoiser has learnt: signal beside noise, the loss at other noise levels, and how stationary it is."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.data import AbstractVectorModel
from featlab.networks import AbstractProductNetwork
from featlab.objectives.denoising import mean_loss, scales
from featlab.probes._probe import Variable, View, probe

NOISE_TIMES = (0.01, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)  # from hardly any noise to little else


@probe(
    of=(AbstractVectorModel,),
    sees=Sees.PRODUCTS,
    signal_product=Variable(
        "", r"|\langle w_r, \mu_j \rangle|", "product of weights and signals: mean magnitude over neurons, classes"
    ),
    noise_product=Variable(
        "",
        r"|\langle w_r, \xi_i \rangle|",
        "product of weights and training noise: mean magnitude over neurons, samples",
    ),
    balance=Variable(
        "", r"\frac{|\langle w, \mu \rangle|}{|\langle w, \xi \rangle|}", "signal over noise in the weights"
    ),
)
def feature_balance(view: View):
    """How much of the signals the weights have beside how much of the training noise."""
    signal, noise = _sizes(view, view.params)
    return {"signal_product": signal, "noise_product": noise, "balance": signal / noise}


@probe(
    of=(AbstractVectorModel,),
    sees=Sees.VECTORS,
    first_balance=Variable(
        "",
        r"\frac{|\langle \nabla_0 L, \mu \rangle|}{|\langle \nabla_0 L, \xi \rangle|}",
        "signal over noise in what the first step of gradient descent adds to the weights",
    ),
)
def first_step_balance(view: View):
    """How much of the signals the first step of gradient descent adds, beside how much of the training noise."""
    gradient = view.problem.gradient(view.problem.start, view.training, view.problem.draw.algorithm_key)
    signal, noise = _sizes(view, gradient)
    return signal / noise


def _sizes(view: View, params):
    """Mean magnitudes of the products of weights, or of a gradient, with the signals and the training noise."""
    signals, noise = view.problem.products(params)
    return jnp.mean(jnp.abs(signals)), view.training.mean(jnp.abs(noise))


@probe(
    of=(AbstractProductNetwork,),
    sees=Sees.VECTORS,
    denoising_loss=Variable(
        "noise_time", "L(t)", "loss of the same weights at other noise levels, less that of finding none"
    ),
)
def denoising_losses(view: View, *, noise_time: tuple[float, ...] = NOISE_TIMES):
    """The denoising loss on the training inputs at several noise levels t, whichever it is trained at."""
    weights, training = view.weights, view.training
    products, gram = training.inputs @ weights.T, weights @ weights.T

    def loss(t):
        alpha, beta = scales(t)
        return mean_loss(alpha * products, gram, training.mask, beta)

    return jax.vmap(loss)(jnp.array(noise_time, float))


@probe(
    sees=Sees.VECTORS,
    relative_slope=Variable(
        "", r"\|\nabla L\| \|w\| / |L|", "length of the gradient, in units of loss over length of the weights"
    ),
)
def relative_slope(view: View):
    """How far from stationary the parameters are, as a number without units.

    While a loss grows in magnitude like a power of the weights this is the power at least; at a stationary point
    it is 0.
    """
    value, gradient = view.problem.value_and_grad(view.params, view.training, view.problem.draw.algorithm_key)
    size = jnp.sqrt(sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(view.params)))
    return view.problem.norm(gradient) * size / jnp.abs(value)
