r"""Along which directions the trained function changes: its average gradient outer product.

$\mathrm{AGOP} = \frac1n \sum_i \nabla f(x_i) \nabla f(x_i)^\top$ over the training inputs, for any network; of an
input of several patches the outer products are summed over patches.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.networks import AbstractNetwork, AbstractProductNetwork, KernelMachine
from featlab.probes._probe import Variable, View, probe
from featlab.theory import agop as theory


@probe(agop=Variable("column column_2", r"\mathrm{AGOP}", "average gradient outer product"))
def agop(view: View):
    """The matrix itself, in the coordinates of the space."""
    return gradient_product(view)


@probe(
    sees=Sees.VECTORS,
    agop_rank=Variable("", r"e^{-\sum_j p_j \log p_j}", "effective rank of the average gradient outer product"),
    agop_mass=Variable(
        "", r"\mathrm{tr}(U M U^\top) / \mathrm{tr}\, M", "share of its trace on the directions of the labels"
    ),
    agop_overlap=Variable(
        "", r"\frac1r \|U V_r\|_F^2", "share of its r top eigenvectors on the directions of the labels"
    ),
)
def agop_subspace(view: View):
    """Whether the function changes along the directions that the labels depend on, and no others."""
    directions = getattr(view.problem.draw.truth, "directions", None)
    if directions is None or directions.shape[-1] != view.training.inputs.shape[-1]:
        raise InputError(
            f"agop_subspace needs labels that depend on given directions, which "
            f"{type(view.problem.data).__name__} does not have; use MultiIndex."
        )
    matrix = gradient_product(view)
    return {
        "agop_rank": theory.effective_rank(matrix),
        "agop_mass": theory.subspace_mass(matrix, directions),
        "agop_overlap": theory.subspace_overlap(matrix, directions),
    }


@probe(
    of=(AbstractProductNetwork,),
    sees=Sees.VECTORS,
    feature_root_cosine=Variable(
        "",
        r"\cos(W^\top W, \mathrm{AGOP}^{1/2})",
        "cosine of the first layer's metric with the root of AGOP, multiples of I apart",
    ),
    feature_cosine=Variable(
        "",
        r"\cos(W^\top W, \mathrm{AGOP})",
        "cosine of the first layer's metric with AGOP, multiples of I apart",
    ),
    feature_power=Variable(
        "",
        r"\mathrm{argmax}_s \cos(W^\top W, \mathrm{AGOP}^s)",
        "power of AGOP that the first layer's metric is closest to, multiples of I apart",
    ),
)
def feature_ansatz(view: View):
    r"""Both forms of the neural feature ansatz, $W^\top W \propto \mathrm{AGOP}^s$ with $s = \frac12$ and $1$, and
    the power s that fits best.

    The cosines are those of `theory.agop.shape_cosine`, to which what all positive matrices share adds nothing.
    """
    layer, matrix, d = view.first_layer, gradient_product(view), view.problem.draw.space.dimension
    metric = layer.T @ layer
    return {
        "feature_root_cosine": theory.shape_cosine(metric, theory.power(matrix, 0.5), d),
        "feature_cosine": theory.shape_cosine(metric, matrix, d),
        "feature_power": theory.best_power(metric, matrix, d),
    }


def gradient_product(view: View) -> Float[Array, "column other"]:
    """The average gradient outer product on the training inputs; padding has no gradient."""
    batch = view.training
    gradients = input_gradients(view.problem.network, view.params, batch.inputs)
    real = batch.mask.reshape(-1, *[1] * (gradients.ndim - 1))
    rows = jnp.where(real, gradients, 0).reshape(-1, gradients.shape[-1])
    return theory.agop(rows, jnp.sum(batch.mask).astype(rows.dtype))


def input_gradients(
    network: AbstractNetwork, params: Any, inputs: Float[Array, "sample patch column"]
) -> Float[Array, "sample patch column"]:
    """The gradient of the output in each patch of each input."""
    if isinstance(network, KernelMachine):  # all at once, by matrix products
        gradients = network.gradients(params, jnp.sum(inputs, axis=1))
        return jnp.broadcast_to(gradients[:, None], inputs.shape)
    return jax.vmap(jax.grad(network, argnums=1), in_axes=(None, 0))(params, inputs)
