r"""The landscape of learning in context: the loss after the best attention, what it misses, and where it goes
down.

With $P = \Sigma_{\circ\mu} \Sigma_{\mu\mu}^{-1}$ the learnt features explain $P h_\mu$ of the true ones, and
$E = \Sigma_{\circ\circ} - P \Sigma_{\mu\circ}$ is the covariance of what they miss: $\mathcal{L}(\mu) = \frac12
\mathrm{tr}\, E$. Along the mixture $\bar\mu_s = (1 - s)\mu + s R\sharp\mu^\circ$, in which the teacher's second
layer is turned by $R$,
$$\frac{d}{ds} \mathcal{L}(\bar\mu_s)\Big|_0 = -\mathrm{tr}(R E P), \qquad \min_{R \in \mathrm{conv}\, O(k)} =
  -\|E P\|_*,$$
and where that vanishes, with $R$ carrying what is missed onto the directions of $h_\mu$ that explain nothing,
$\frac{d^2}{ds^2} \mathcal{L}(\bar\mu_s)|_0 = -\mathrm{tr}(E R^\top \Sigma_{\mu\mu}^{-1} R E)$.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from featlab.core.linear_algebra import eigh, eigvalsh
from featlab.core.sees import Sees
from featlab.core.validation import InputError
from featlab.data import Batch, FeatureTasks
from featlab.networks import MeanFieldFeatures
from featlab.objectives.in_context import Moments, best_attention, moments_of, outputs_of, risk
from featlab.probes._probe import Variable, View, probe

TEST_INPUTS = 10_000
JITTER = 1e-9  # of float64; float32 takes its own rounding
_CURVATURES = 2000  # numbers in all particles, of which a whole Hessian is made


@probe(
    sees=Sees.VECTORS,
    in_context_loss=Variable("", r"\mathcal{L}(\mu)", "half the squared error after the best attention"),
    attention_loss=Variable(
        "", r"\mathcal{L}(\mu, \Gamma)", "half the squared error with the network's own attention; NaN without any"
    ),
)
def in_context_loss(view: View, *, count: int | None = TEST_INPUTS):
    """The loss over fresh inputs, or over the training inputs where `count` is None."""
    true, learnt, mask, moments = _seen(view, view.params, count)
    attention = getattr(view.problem.network, "attention", None)
    own = jnp.nan if attention is None else risk(true, learnt, mask, moments.cross @ attention(view.params))
    return {
        "in_context_loss": risk(true, learnt, mask, moments.cross @ best_attention(moments, _jitter(true))),
        "attention_loss": own,
    }


@probe(
    sees=Sees.VECTORS,
    missed=Variable("truth", r"\lambda_j(E)", "eigenvalues of the covariance of what the features miss, falling"),
    feature_alignment=Variable(
        "", r"R^2 = 1 - \mathrm{tr} E / \mathrm{tr} \Sigma_{\circ\circ}", "share of the true features explained"
    ),
)
def feature_residual(view: View, *, count: int | None = TEST_INPUTS):
    """What a linear readout of the learnt features leaves of the true ones."""
    true, learnt, mask, moments = _seen(view, view.params, count)
    readout = moments.cross @ best_attention(moments, _jitter(true))
    missed = moments_of(true - learnt @ readout.T, learnt, mask).true
    return {
        "missed": eigvalsh(missed)[::-1],
        "feature_alignment": 1 - jnp.trace(missed) / jnp.trace(moments.true),
    }


@probe(
    of=(FeatureTasks, MeanFieldFeatures),
    sees=Sees.VECTORS,
    slope=Variable(
        "", r"\min_R \frac{d}{ds} \mathcal{L}(\bar\mu_s)", "steepest slope towards the turned teacher: at most 0"
    ),
    slope_bound=Variable(
        "",
        r"-\frac{4 \mathcal{L} (r^\circ/2 - \mathcal{L})}{\|a\| \|a^\circ\| \|\sigma\|_\infty^2}",
        "what the slope stays below, where the loss is below r/2",
    ),
    mixture_curvature=Variable(
        "", r"\frac{d^2}{ds^2} \mathcal{L}(\bar\mu_s)", "curvature along the mixture, at a critical point"
    ),
    curvature_bound=Variable(
        "",
        r"-\frac{4 \mathcal{L}^2}{k \|a\|^2 \|\sigma\|_\infty^2}",
        "what the curvature stays below, at a critical point",
    ),
)
def strict_saddle(view: View, *, largest: float = 1.0, count: int | None = TEST_INPUTS):
    r"""Slope and curvature towards the teacher, beside the bounds of the theorem; `largest` is
    $\|\sigma\|_\infty$.

    The theorem has second layers of length at most one; $\|a\|$ is the longest of them, the loss not changing
    with their scale. The curvature is that of a critical point, where the slope is 0.
    """
    true, _, _, moments = _seen(view, view.params, count)
    longest = [jnp.max(jnp.linalg.norm(one, axis=1)) for one in (view.params.heads, view.problem.draw.truth.heads)]
    return dict(
        zip(
            ("slope", "slope_bound", "mixture_curvature", "curvature_bound"),
            saddle_bounds(moments, *longest, largest=largest, jitter=_jitter(true)),
        )
    )


@probe(
    sees=Sees.VECTORS,
    task_error=Variable(
        "task", r"\mathbb{E}(g - \hat g)^2 / \mathbb{E} g^2", "error of tasks that are not linear in the features"
    ),
    untrained_error=Variable("task", r"\mathrm{err}(h_{\mu_0})", "the same, with the features of the start"),
    teacher_error=Variable("task", r"\mathrm{err}(f^\circ)", "the same, with the true features"),
)
def nonlinear_tasks(view: View, *, count: int = TEST_INPUTS, task: tuple[str, ...] = ("max", "squared norm")):
    r"""Attention, with the best matrix, on the tasks $g = \max_j f^\circ_j$ and $g = \|f^\circ\|^2$."""
    true, learnt, mask, _ = _seen(view, view.params, count)
    start = _seen(view, view.problem.draw.start, count)[1]
    kinds = {"max": lambda f: jnp.max(f, axis=1), "squared norm": lambda f: jnp.sum(f**2, axis=1)}
    for name in task:
        if name not in kinds:
            raise InputError(f"nonlinear_tasks(task=) knows {', '.join(kinds)}, got {name!r}.")
    targets = jnp.stack([kinds[name](true) for name in task], axis=1)

    def error(features):
        moments = moments_of(targets, features, mask)
        left = targets - features @ (moments.cross @ best_attention(moments, _jitter(true))).T
        return jnp.mean(left**2, axis=0) / jnp.mean(targets**2, axis=0)

    return {"task_error": error(learnt), "untrained_error": error(start), "teacher_error": error(true)}


@probe(
    sees=Sees.VECTORS,
    of=(MeanFieldFeatures,),
    smallest_curvature=Variable(
        "", r"\lambda_{\min}(H)", "smallest eigenvalue of N times the Hessian over the particles"
    ),
    particle_slope=Variable("", r"\max_r \|N \nabla_r \mathcal{L}\|", "largest velocity of a particle"),
)
def smallest_curvature(view: View):
    """The curvature of the objective on the training set, over all particles: negative at a saddle.

    The whole Hessian is made, so it is for few particles. At a critical point the flow leaves it at the rate
    of the most negative eigenvalue, and the loss falls at twice that rate.
    """
    network: Any = view.problem.network
    leaves, kind = jax.tree.flatten(network.particles(view.params))
    sizes = [leaf.size for leaf in leaves]
    if sum(sizes) > _CURVATURES:
        raise InputError(
            f"smallest_curvature makes a Hessian of {sum(sizes)} rows, and takes at most {_CURVATURES}; "
            "use fewer particles."
        )

    def value(flat):
        parts = jnp.split(flat, np.cumsum(sizes)[:-1])
        particles = jax.tree.unflatten(kind, [one.reshape(leaf.shape) for one, leaf in zip(parts, leaves)])
        return view.problem.value(network.with_particles(view.params, particles), view.training)

    here = jnp.concatenate([leaf.ravel() for leaf in leaves])
    count = len(leaves[0])
    slopes = jnp.split(count * jax.grad(value)(here), np.cumsum(sizes)[:-1])
    squares = sum(jnp.sum(one.reshape(count, -1) ** 2, axis=1) for one in slopes)
    return {
        "smallest_curvature": eigvalsh(count * jax.hessian(value)(here))[0],
        "particle_slope": jnp.sqrt(jnp.max(squares)),
    }


def saddle_bounds(moments: Moments, longest, longest_true, *, largest=1.0, jitter=0.0):
    r"""Slope, its bound, curvature and its bound; `longest` are $\max_r \|a_r\|$ and $\max_r \|a_r^\circ\|$."""
    features, tasks = len(moments.learnt), len(moments.true)
    gamma = best_attention(moments, jitter)
    readout = moments.cross @ gamma
    missed = moments.true - readout @ moments.cross.T
    loss, variance = jnp.trace(missed) / 2, jnp.trace(moments.true) / tasks
    slope = -jnp.sum(jnp.linalg.svd(missed @ readout, compute_uv=False))
    slope_bound = -4 * loss * (variance / 2 - loss) / (longest * longest_true * largest**2)
    # What is missed goes onto the directions of h that explain nothing, the largest onto the freest: at a critical
    # point all that is missed has one size, and any order is as good.
    free = jnp.linalg.svd(readout, full_matrices=True)[2][::-1]  # rows, those that explain least first
    directions = eigh(missed)[1][:, ::-1]  # what is missed most first
    both = min(features, tasks)
    turn = free[:both].T @ directions[:, :both].T
    turned = turn @ missed
    curvature = -jnp.trace(turned.T @ gamma @ turned)
    curvature_bound = -4 * loss**2 / (features * longest**2 * largest**2)
    return slope, slope_bound, curvature, curvature_bound


def escape_rate(times, sizes, low: float, high: float) -> float:
    r"""The rate of an exponential growth: the slope of $\log$ size in time while it is between two levels.

    NaN where there are fewer than three readings between them.
    """
    times, sizes = np.asarray(times, float), np.asarray(sizes, float)
    chosen = (sizes > low) & (sizes < high)
    if chosen.sum() < 3:
        return float("nan")
    return float(np.polyfit(times[chosen], np.log(sizes[chosen]), 1)[0])


def _seen(view: View, params: Any, count: int | None):
    """True and learnt features, which rows count, and their second moments."""
    draw = view.problem.draw
    batch: Batch = (
        view.training if count is None else view.problem.data.fresh(draw.test_key, draw.truth, draw.space, count)
    )
    true = batch.labels.reshape(len(batch.mask), -1)
    learnt = outputs_of(view.problem.network, params, batch)
    return true, learnt, batch.mask, moments_of(true, learnt, batch.mask)


def _jitter(like) -> float:
    """Relative to the size of the covariance: nothing to speak of in either precision."""
    return JITTER if like.dtype == jnp.float64 else 1e-6
