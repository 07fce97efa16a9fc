"""Lazy or rich: how far weights and kernels have moved from where they began, for any network."""

from __future__ import annotations

import jax
import jax.numpy as jnp

from featlab.core.sees import Sees
from featlab.data import Batch
from featlab.networks.two_layer import Layers
from featlab.probes._probe import Variable, View, probe


@probe(
    sees=Sees.VECTORS,
    weight_movement=Variable(
        "",
        r"\frac1N \sum_r \|w_r - w_r^{(0)}\| / \|w_r^{(0)}\|",
        "relative movement of a neuron's weights, on average",
    ),
    total_movement=Variable("", r"\|\theta - \theta_0\| / \|\theta_0\|", "relative movement of all parameters"),
)
def movement(view: View):
    """How far the parameters have gone, relative to where they began.

    A neuron is a row of the first layer where the network says which it is, else of every matrix among its
    parameters.
    """
    start = view.problem.draw.start
    pairs = [(now, then) for now, then in zip(_matrices(view, view.params), _matrices(view, start))]
    ratios = jnp.concatenate([_norms(now - then) / _nonzero(_norms(then)) for now, then in pairs])
    everything = [
        jnp.concatenate([leaf.ravel() for leaf in jax.tree.leaves(_parameters(p))]) for p in (view.params, start)
    ]
    total = jnp.linalg.norm(everything[0] - everything[1]) / _nonzero(jnp.linalg.norm(everything[1]))
    return {"weight_movement": jnp.mean(ratios), "total_movement": total}


@probe(
    sees=Sees.VECTORS,
    kernel_movement=Variable("", r"\|K_t - K_0\|_F / \|K_0\|_F", "relative movement of the tangent kernel"),
    kernel_similarity=Variable("", r"\cos(K_t, K_0)", "cosine of the tangent kernel with the one it began with"),
    kernel_alignment=Variable(
        "", r"\frac{y^\top K_t y}{\|K_t\|_F \|y\|^2}", "alignment of the tangent kernel with the labels"
    ),
)
def tangent_kernel(view: View, *, samples: int = 100):
    r"""The kernel $K_{ij} = \langle \nabla f(x_i), \nabla f(x_j) \rangle$ on the first training inputs, now
    and at the start."""
    batch: Batch = jax.tree.map(lambda leaf: leaf[:samples], view.training)
    labels = jnp.where(batch.mask, batch.labels, 0)
    now, then = (kernel(view, params, batch) for params in (view.params, view.problem.draw.start))
    size, first = jnp.linalg.norm(now), jnp.linalg.norm(then)
    return {
        "kernel_movement": jnp.linalg.norm(now - then) / _nonzero(first),
        "kernel_similarity": jnp.sum(now * then) / _nonzero(size * first),
        "kernel_alignment": labels @ now @ labels / _nonzero(size * jnp.sum(labels**2)),
    }


def kernel(view: View, params, batch: Batch):
    """The tangent kernel of the network's output on a batch; padding has no gradient."""

    def output(params, inputs, real):
        return jnp.where(real, view.problem.network(params, inputs), 0)

    gradients = jax.vmap(jax.grad(output), in_axes=(None, 0, 0))(params, batch.inputs, batch.mask)
    rows = jnp.concatenate([leaf.reshape(len(batch.mask), -1) for leaf in jax.tree.leaves(gradients)], axis=1)
    return rows @ rows.T


def _parameters(params):
    """Without what a centred network carries along of its start, which is no parameter."""
    return Layers(params.weights, params.head) if isinstance(params, Layers) else params


def _matrices(view, params):
    first_layer = getattr(view.problem.network, "first_layer", None)
    if first_layer is not None:
        return [first_layer(params)]
    return [leaf.reshape(-1, leaf.shape[-1]) for leaf in jax.tree.leaves(params) if leaf.ndim >= 1]


def _norms(rows):
    return jnp.linalg.norm(rows, axis=-1)


def _nonzero(number):
    return jnp.where(number > 0, number, 1)
