r"""The landscape of learning in context has no bad minima: below $r^\circ/2$ it slopes towards the teacher, and a
critical point above has negative curvature, along which the flow leaves it.

Kim and Suzuki (2024). $\mathcal{L}(\mu) = \frac12 \mathbb{E} \|f^\circ - \Sigma_{\circ\mu} \Sigma_{\mu\mu}^{-1}
h_\mu\|^2$ is the loss after the best attention, with $\Sigma_{\circ\circ} = r^\circ I_k$ and second layers of
length at most one, and $\bar\mu_s = (1 - s)\mu + s R\sharp\mu^\circ$ a mixture with the teacher, its second layer
turned. Each seed draws inputs (whose empirical law is the law of $x$, so that all expectations are sums), a
teacher that is white on them, and networks.

Bounds, so there is no margin. The steepest slope over $R \in \mathrm{conv}\, O(k)$, which is $-\|E P\|_*$ (see
`probes.in_context`), against the theorem's, for networks with random second layers whose loss is below
$r^\circ/2$, over a thousand of them. The fall of the loss under the flow against $R^{-1}$ times the square of that
slope, the first layer being the teacher's, so that the density ratio $R$ is 1. What the two imply after a time $T$
while the second layer flows, $\mathcal{L} = O(1/T)$. The curvature at critical points that miss one, two or all of
three features; and for one saturated feature, where the bound is nearly sharp. (At a critical point the bound
holds even without its $k$, because $\mathrm{tr}\, \Sigma_{\mu\mu} \leq \|\sigma\|_\infty^2$.) Each is a ratio of
the bound to what it bounds, at most 1.

Values, within 5 %: the loss at these critical points over $r^\circ/2$ times the number of features missed; and
from a critical point that misses one feature, the rate at which the flow of all particles leaves it over
$|\lambda_{\min}(H)|$, with $H = N \nabla^2 \mathcal{L}$ over the particles, and that at which the loss falls over
twice as much.

The control takes the loss without its half, as some slides print it, under the same bound on the curvature.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.special

from featlab.algorithms import GradientDescent
from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by, identity
from featlab.claims._picture import MOMENTS
from featlab.data import FeatureTasks
from featlab.experiment import Experiment
from featlab.fields import real, whole
from featlab.networks import MeanFieldFeatures
from featlab.objectives import InContextRisk
from featlab.objectives.in_context import Moments, best_attention, moments_of
from featlab.probes import escape_rate, feature_residual, geometric, in_context_loss, train_loss
from featlab.probes.in_context import saddle_bounds

FEATURES = 3  # k
MISSING = (1, 2, 3)  # features that a critical point misses
NETWORKS = 45  # a seed: at laptop size more than a thousand in all
SATURATED = "the bound on the curvature over it, one nearly saturated feature"
NEARNESS = (0.03, 30.0)  # of noise beside the teacher's second layer, drawn evenly in log scale
FLOW = 2000  # steps of a flow of the second layer
ROUNDING = 1e-6  # of velocities over the loss, the second layers of white features being some hundreds long
RECORDS = 240  # readings of an escape
EFOLDS = 15.0  # of the escape: from the push to where it stops being linear
PUSH, LINEAR = 1e-7, 1e-3  # relative to the particles: where the escape begins, and where its rate is still that


class StrictSaddle(Claim):
    """The claim of this file."""

    title = "the loss of learning in context slopes towards the teacher, or has negative curvature"
    statement = (
        r"0 < \mathcal{L}(\mu) < \tfrac{r^\circ}{2}: \ \min_R \tfrac{d}{ds} \mathcal{L}(\bar\mu_s)|_0 \leq "
        r"-\tfrac{4}{\|\sigma\|_\infty^2} \mathcal{L} \left(\tfrac{r^\circ}{2} - \mathcal{L}\right); \quad "
        r"\text{at a critical point} \ \mathcal{L} \geq \tfrac{r^\circ}{2}, \ "
        r"\tfrac{d^2}{ds^2} \mathcal{L}(\bar\mu_s)|_0 \leq -\tfrac{4}{k \|\sigma\|_\infty^2} \mathcal{L}^2"
    )
    refuted_if = "a slope or a curvature is above its bound, or a saddle is left at another rate than its own"
    reference = """@inproceedings{kim2024transformers,
  title     = {Transformers Learn Nonlinear Features In Context: Nonconvex Mean-field Dynamics on the Attention Landscape},
  author    = {Kim, Juno and Suzuki, Taiji},
  booktitle = {International Conference on Machine Learning},
  year      = {2024}
}"""  # noqa: E501
    sizes = {
        "tiny": Size(seeds=3),
        "smoke": Size(seeds=6),
        "laptop": Size(seeds=24),
        "full": Size(seeds=96),
    }
    number_of_checks = 9
    minutes = 1.0
    control_changes = "the loss has no factor of one half"

    width: int = whole(default=12, at_least=2 * FEATURES)  # N, neurons of teacher and student
    d: float = real(default=6.0, at_least=2)
    samples: int = whole(default=300, at_least=20)  # inputs
    steepness: float = real(default=2.0, above=0)  # of the neurons: the typical size of <w, x>

    def typical(self):
        return Experiment(
            data=FeatureTasks(
                n=self.samples, d=self.d, features=FEATURES, width=self.width, steepness=self.steepness
            ),
            network=MeanFieldFeatures(width=self.width, outputs=FEATURES, init_scale=self.steepness),
            objective=InContextRisk(),
            algorithm=GradientDescent(0.5 * self.width),
            probes=[in_context_loss(count=2000)],
            steps=500,
            precision=64,
        )

    def scene(self):
        probes = [train_loss, in_context_loss(count=1000), feature_residual(count=1000)]
        return dataclasses.replace(self.typical(), probes=probes, record=geometric(MOMENTS))

    def assumptions(self, experiment):
        data: Any = experiment.data
        return [
            Assumption("M / k: the teacher has a neuron for each feature", data.width / data.features, ">= 1"),
            Assumption(
                "sup |sigma| over 1: the activation is bounded",
                float(1 / jnp.max(jnp.abs(data.activation(jnp.linspace(-1e3, 1e3, 101))))), ">= 1",
            ),  # fmt: skip
        ]  # fmt: skip

    def checks(self, lab):
        lab.deciding.append(self.typical())
        read = self._landscape(lab.seeds)
        yield bounded_by("the bound on the slope over the slope, L < r/2", read["slope_ratio"], 1.0)
        yield bounded_by("squared slope over the fall of the loss in time, R = 1", read["fall_ratio"], 1.0)
        yield bounded_by("L(T) over what the slope implies, second layer flowing", read["decay_ratio"], 1.0)
        cells = tuple(f"{j} of {FEATURES} features missing" for j in MISSING)
        yield identity("velocity of particles at the critical points", read["velocity"], ROUNDING)
        name = "loss at a critical point over r/2 times the features missed"
        yield agrees(name, read["level"].T, 1.0, cells=cells)
        name = "the bound on the curvature over it, at a critical point"
        yield bounded_by(name, read["curvature"].T, 1.0, cells=cells)
        yield bounded_by(SATURATED, self._saturated(lab, 0.5), 1.0)
        growth, fall = self._escapes(lab.seeds)
        yield agrees("rate of leaving a saddle over the curvature", growth, 1.0)
        yield agrees("rate at which the loss falls over twice the curvature", fall, 1.0)

    def control(self, lab):
        return bounded_by(SATURATED, self._saturated(lab, 1.0), 1.0)

    def _saturated(self, lab, factor):
        """For f = tanh(c x_1) and a student that has learnt tanh(c x_2): bound over curvature, c from 2 to 6."""
        nodes, masses = np.polynomial.hermite_e.hermegauss(64)
        steep = np.array([np.random.default_rng(seed).uniform(2, 6) for seed in lab.seeds])
        variances = np.tanh(steep[:, None] * nodes) ** 2 @ masses / np.sum(masses)

        def one(variance):
            same, nothing = variance[None, None], jnp.zeros((1, 1))
            _, _, curvature, bound = saddle_bounds(Moments(same, nothing, same), 1.0, 1.0)
            # Without the half the loss and its curvature are twice as large, and the bound four times.
            return bound * (2 * factor) ** 2 / (curvature * (2 * factor))

        return np.asarray(jax.jit(jax.vmap(one))(jnp.asarray(variances)))

    def _landscape(self, seeds):
        drawn = [self._drawn(seed) for seed in seeds]
        with jax.enable_x64(True):
            read = _landscapes(*map(jnp.asarray, map(np.stack, zip(*drawn))))
            return {name: np.asarray(value) for name, value in read.items()}

    def _escapes(self, seeds):
        """Growth of the distance and fall of the loss, each over what the curvature says."""
        drawn = [self._built(np.random.default_rng(seed)) for seed in seeds]
        numbers = self.width * (FEATURES + int(self.d))
        push = [np.random.default_rng([seed, 1]).standard_normal(numbers) for seed in seeds]
        with jax.enable_x64(True):
            stacked = map(jnp.asarray, map(np.stack, (*zip(*drawn), push)))
            found = _all_escapes(*stacked)
        growth, fall = [], []
        for curvature, time, distance, fallen in zip(*map(np.asarray, found)):
            between = (distance > 100 * PUSH) & (distance < LINEAR)
            growth.append(escape_rate(time[between], distance[between], 0.0, np.inf) / -curvature)
            fall.append(escape_rate(time[between], fallen[between], 0.0, np.inf) / (-2 * curvature))
        return np.array(growth), np.array(fall)

    def _built(self, rng):
        """Inputs, first-layer weights, and second layers of 2k functions that are uncorrelated on the inputs.

        The functions lie along the leading principal components of the neurons: the others need second layers so
        long that the flow would be stiff.
        """
        d, count = int(self.d), 2 * FEATURES
        x = rng.standard_normal((self.samples, d))
        w = self.steepness / np.sqrt(d) * rng.standard_normal((self.width, d))
        _, values, axes = np.linalg.svd(scipy.special.expit(x @ w.T), full_matrices=False)
        turn = np.linalg.qr(rng.standard_normal((count, count)))[0]
        return x, w, self.width * np.sqrt(self.samples) * (axes[:count].T / values[:count]) @ turn

    def _drawn(self, seed):
        """Teacher and students of one seed: second layers near the teacher's, then those of critical points."""
        rng = np.random.default_rng(seed)
        x, w, heads = self._built(rng)
        teacher = heads[:, :FEATURES]
        students = []
        for _ in range(NETWORKS):
            share = np.exp(rng.uniform(*np.log(NEARNESS)))
            students.append(teacher @ rng.standard_normal((FEATURES, FEATURES)))
            students[-1] += share * rng.standard_normal(teacher.shape)
        for missing in MISSING:
            students.append(heads[:, missing : missing + FEATURES] @ _mixing(rng))
        return x, w, teacher, np.stack(students)


def _mixing(rng):
    """A random matrix with singular values from 1/2 to 2: a worse one would make rounding look like a velocity."""
    one, other = (np.linalg.qr(rng.standard_normal((FEATURES, FEATURES)))[0] for _ in range(2))
    return one * np.exp(rng.uniform(-np.log(2), np.log(2), FEATURES)) @ other


def _features(heads, w, x):
    return jax.nn.sigmoid(x @ w.T) @ heads / len(w)


def _slopes(true, heads, w, x):
    r"""The loss, and its gradients in both layers.

    The best readout $B$ being stationary, only $h$ varies: $\partial_h \mathcal{L} = -B^\top (f - B h)$.
    """
    seen, count = jax.nn.sigmoid(x @ w.T), len(w)
    learnt = seen @ heads / count
    moments = moments_of(true, learnt, jnp.ones(len(x), bool))
    readout = moments.cross @ best_attention(moments, 0.0)
    left = true - learnt @ readout.T
    back = -left @ readout / len(x)
    in_w = ((back @ heads.T) * seen * (1 - seen)).T @ x / count
    return jnp.sum(left**2) / (2 * len(x)), seen.T @ back / count, in_w


def _hessian(slope, point):
    """The derivative of a gradient, by central differences."""
    shift = 1e-5 * jnp.linalg.norm(point) / jnp.sqrt(point.size)

    def column(direction):
        return (slope(point + shift * direction) - slope(point - shift * direction)) / (2 * shift)

    matrix = jax.vmap(column)(jnp.eye(point.size))
    return (matrix + matrix.T) / 2


def _landscape(x, w, teacher, students):
    """What the theorem says of one teacher: ratios to its bounds, over random networks and critical points."""
    longest = jnp.max(jnp.linalg.norm(teacher, axis=1))
    variance = longest**-2
    true = _features(teacher / longest, w, x)

    def read(student):
        student = student / jnp.max(jnp.linalg.norm(student, axis=1))
        loss, in_a, in_w = _slopes(true, student, w, x)
        moments = moments_of(true, _features(student, w, x), jnp.ones(len(x), bool))
        squares = len(w) ** 2 * (jnp.sum(in_a**2, axis=1) + jnp.sum(in_w**2, axis=1))
        return student, loss, squares, saddle_bounds(moments, 1.0, 1.0)

    students, losses, squares, (slope, slope_bound, curvature, curvature_bound) = jax.vmap(read)(students)
    below = losses[:NETWORKS] < variance / 2
    fall = jnp.mean(squares[:NETWORKS], axis=1)  # of the loss, in a unit of time
    # The flow of the second layer begins at the largest loss below a quarter of the variance.
    first = jnp.argmax(jnp.where(losses[:NETWORKS] < variance / 4, losses[:NETWORKS], 0))
    return {
        "slope_ratio": jnp.max(jnp.where(below, slope_bound[:NETWORKS] / slope[:NETWORKS], 0)),
        "fall_ratio": jnp.max(jnp.where(below, slope[:NETWORKS] ** 2 / fall, 0)),
        "decay_ratio": _decay(true, students[first], w, x, variance),
        # In units of the loss: the teacher's second layers being one long, its features are small.
        "velocity": jnp.sqrt(jnp.max(squares[NETWORKS:])) / variance,
        "level": losses[NETWORKS:] / (jnp.array(MISSING) * variance / 2),
        "curvature": curvature_bound[NETWORKS:] / curvature[NETWORKS:],
    }


_landscapes = jax.jit(jax.vmap(_landscape))


def _decay(true, student, w, x, variance):
    r"""$\mathcal{L}(T)$ over the bound that slope and fall imply, at the end of a flow of the second layer alone.

    $\dot{\mathcal{L}} \leq -16 \mathcal{L}^2 (r^\circ/2 - \mathcal{L})^2 / A^2$, with $A$ the longest second layer
    on the way, gives $1/\mathcal{L}(T) \geq 1/\mathcal{L}(0) + 16 (r^\circ/2 - \mathcal{L}(0))^2 T / A^2$.
    """
    shape = student.shape

    def slope(flat):
        return len(w) * _slopes(true, flat.reshape(shape), w, x)[1].ravel()

    # The loss does not change with the scale of the second layer, which therefore never shrinks under the flow,
    # and curvatures do not grow: a step that is stable at the start stays so.
    time = 0.5 / jnp.linalg.norm(_hessian(slope, student.ravel()))

    def step(carry, _):
        flat, longest = carry
        flat = flat - time * slope(flat)
        return (flat, jnp.maximum(longest, jnp.max(jnp.linalg.norm(flat.reshape(shape), axis=1)))), None

    (flat, longest), _ = jax.lax.scan(step, (student.ravel(), jnp.ones(())), None, FLOW)
    begin, end = (_slopes(true, one.reshape(shape), w, x)[0] for one in (student, flat))
    return end * (1 / begin + 16 * (variance / 2 - begin) ** 2 * FLOW * time / longest**2)


def _escape(x, w, heads, push):
    """The flow from a critical point that misses one feature, pushed a little.

    Returns the smallest curvature, and times with the distance gone and how far the loss has fallen.
    """
    true, width = _features(heads[:, :FEATURES], w, x), len(w)
    saddle = jnp.concatenate([heads[:, 1 : 1 + FEATURES].ravel(), w.ravel()])

    def all_slopes(particles):
        a, moved = jnp.split(particles, [width * FEATURES])
        return _slopes(true, a.reshape(width, FEATURES), moved.reshape(w.shape), x)

    def slope(particles):
        return width * jnp.concatenate([one.ravel() for one in all_slopes(particles)[1:]])

    values = jnp.linalg.eigvalsh(_hessian(slope, saddle))
    size = jnp.linalg.norm(saddle)
    start = saddle + PUSH * size * push / jnp.linalg.norm(push)
    between = EFOLDS / -values[0] / RECORDS
    # Runge-Kutta of order four is stable up to 2.7 over the largest curvature, and follows the growth exactly.
    inner = jnp.ceil(between * jnp.maximum(values[-1] / 1.5, -values[0] / 0.1)).astype(int)
    time = between / inner

    def runge_kutta(_, here):
        def stage(sums, share):
            ahead, total = sums
            velocity = -slope(ahead)
            return (here + share[0] * time * velocity, total + share[1] * time * velocity), None

        shares = jnp.array([[0.5, 1 / 6], [0.5, 1 / 3], [1.0, 1 / 3], [0.0, 1 / 6]])
        return jax.lax.scan(stage, (here, here), shares)[0][1]

    def record(here, _):
        here = jax.lax.fori_loop(0, inner, runge_kutta, here)
        return here, (jnp.linalg.norm(here - saddle) / size, all_slopes(here)[0])

    _, (distance, losses) = jax.lax.scan(record, start, None, RECORDS)
    return values[0], between * (1 + jnp.arange(RECORDS)), distance, all_slopes(saddle)[0] - losses


_all_escapes = jax.jit(jax.vmap(_escape))
