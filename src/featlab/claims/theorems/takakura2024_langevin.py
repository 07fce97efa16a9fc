r"""Mean-field Langevin dynamics lowers the free energy exponentially, at twice the rate of the frozen Gibbs law.

Takakura and Suzuki (2024), after Nitanda, Wu and Suzuki (2022) and Chizat (2022). With the second layer solved
for, $F(\mu) = \lambda y^\top (K_\mu + n\lambda I)^{-1} y$ is convex in the law $\mu$ of the first-layer weights.
Langevin dynamics with confinement r and temperature $\tau$ then lowers the free energy $\mathcal{L} = F + r\,
\mathbb{E} \|w\|^2 + \tau \int \mu \log \mu$ to its least value, and the gap falls at least as fast as
$e^{-2\alpha\tau t}$ where $\alpha$ is a log-Sobolev constant of the Gibbs laws $p_t \propto e^{-\frac{\delta
F}{\delta\mu}(\mu_t)/\tau - r w^2/ \tau}$ on the way.

For weights on a line the density is computed without particles (`theory.mean_field`), for a training set of each
seed, from a start on one side of 0. The scheme lowers the free energy by construction, so that this clause is an
identity here. Measured are:

* the mean rate of the fall over $2\alpha\tau$, up to three times, where the potential is convex: a penalty of 2
  and a confinement of 1. There $\alpha \geq \min V''/\tau$ (Bakry and Émery 1985) is known within a few per
  cent, the gap of a quadratic potential falling at $2\alpha\tau$ exactly, and a constant 1.5 times too large
  fails;
* the same where it has several wells, with the $\alpha$ of Barthe and Roberto's integrals, the smallest on the
  way. That $2\alpha\tau$ is a fourth of the rate or less, and the constant is not tested;
* the late rate. Tanh is odd, so F sees the even part of $\mu$ alone, and the slowest mode, which carries mass
  from one side to the other, is that of the Gibbs law of the potential at the end, frozen: the late rate must
  be twice its spectral gap, with no constant left (margin 5 %);
* particles, trained by `Langevin` and `ProfileRidge` from an even start: their energy $F + r\,
  \mathbb{E}\|w\|^2$ at two times must be the density's (5 %; time is the learning rate times a fixed number of
  steps, and a run is compared wherever it is at that time).

The control begins evenly on both sides: the slow mode is absent, and the late rate is another.
"""

from __future__ import annotations

from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from featlab.algorithms import Langevin
from featlab.claims import Assumption, Claim, Size, at_least, equals, identity, not_judged
from featlab.claims.settings.references import TAKAKURA_SUZUKI_2024
from featlab.core.validation import real, whole
from featlab.data import SingleIndex
from featlab.experiment import Experiment
from featlab.networks import TwoLayer
from featlab.objectives import ProfileRidge
from featlab.probes import at_end, mean_field_energy
from featlab.problem import draw_run
from featlab.theory.mean_field import MeanField

GRID = np.linspace(-8, 8, 201)
ONE_SIDE = (1.0, 0.5)  # mean and deviation of the start
CONVEX = (2.0, 1.0)  # lambda and r with which the potential is convex; half the grid is enough there
POINTS = 120  # in time
SPANS = {"1/4 of the time": POINTS // 4, "1/2 of the time": POINTS // 2, "the whole of the time": POINTS}
TIMES = (2.0, 8.0)  # at which particles are compared
STEPS = 100  # of the particles, whatever the time


class LangevinRate(Claim):
    """The claim of this file."""

    title = "mean-field Langevin dynamics lowers the free energy exponentially, at a rate that is known"
    statement = (
        r"\mathcal{L}(\mu_t) - \min \mathcal{L} \leq e^{-2\alpha\tau t} (\mathcal{L}(\mu_0) - \min \mathcal{L}), "
        r"\qquad \mathcal{L} = F + r\, \mathbb{E}\|w\|^2 + \tau \int \mu \log \mu"
    )
    refuted_if = "the fall is slower than the bound, or the late rate is not twice the spectral gap"
    reference = TAKAKURA_SUZUKI_2024
    sizes = {
        "tiny": Size(seeds=3, tau=(0.16,)),
        "smoke": Size(seeds=6, tau=(0.04, 0.16)),
        "laptop": Size(seeds=24, tau=(0.04, 0.08, 0.16)),
        "full": Size(seeds=24, tau=(0.04, 0.08, 0.16)),
    }
    minutes = 1.5
    control_changes = "the start is even, and has nothing of the slow mode"

    clauses = {
        "the free energy never rises": "rise of the free energy*",
        "its gap falls at least as fast as exp(-2 alpha tau t)": "rate of the fall*",
        "for an odd activation it ends at twice the spectral gap": "late rate of the free energy*",
        "many particles follow the density": "energy of the particles*",
        "weights in more than one dimension": not_judged("the density is computed on a grid, on a line only"),
    }

    samples: int = whole(default=40, at_least=2)  # n
    penalty: float = real(default=0.05, above=0)  # lambda
    confinement: float = real(default=0.05, above=0)  # r
    width: int = whole(default=500, at_least=1)  # N, particles
    init_scale: float = real(default=0.3, above=0)  # deviation of the particles' start
    label_noise: float = real(default=0.1, at_least=0)

    def experiment(self, tau: float, t: float) -> Experiment:
        """Particles at temperature tau, for a time t."""
        return Experiment(
            data=SingleIndex(n=self.samples, d=1, link=jnp.sin, label_noise=self.label_noise),
            network=TwoLayer(width=self.width, activation=jnp.tanh, init_scale=self.init_scale),
            algorithm=Langevin(t / STEPS, tau, self.confinement),
            objective=ProfileRidge(penalty=self.penalty),
            probes=[mean_field_energy.on(at_end)],
            steps=STEPS,
            precision=64,
        )

    def typical(self):
        return self.experiment(0.08, 8.0)

    def assumptions(self, experiment):
        algorithm: Any = experiment.algorithm
        return [
            Assumption("1 / sqrt N: many particles", experiment.network.vectors() ** -0.5, "<< 1"),
            Assumption("eta: small steps", algorithm.learning_rate, "<< 1"),
        ]

    def checks(self, lab):
        wells = lab.measure(self._curves, tau=lab.size.tau, even=False)
        yield identity("rise of the free energy from one time to the next", wells.rise, 1e-12)
        convex = lab.measure(self._curves, tau=lab.size.tau, even=False, convex=True)
        yield at_least("rate of the fall over 2 alpha tau, convex potential", convex.fall_ratio, 1)
        yield at_least("rate of the fall over 2 alpha tau, several wells", wells.fall_ratio, 1)
        yield self._late(wells)
        tau = lab.size.tau[-1]
        particles = lab.run(self.experiment, tau=tau, t=TIMES)
        energy = particles.objective_value + particles.confinement_energy
        density = lab.measure(self._density, tau=tau)
        yield equals("energy of the particles over the density's", energy / density.energy, 1)

    def control(self, lab):
        return self._late(lab.measure(self._curves, tau=lab.size.tau[-1:], even=True))

    def _late(self, curves):
        return equals("late rate of the free energy over twice the spectral gap", curves.late_ratio, 1)

    def _curves(self, seeds, tau, even, convex=False):
        """What the free energy does from a start on one side of 0, or from one that is even."""
        curves = []
        for seed in seeds:
            field = self._field(seed, tau, convex)
            start = field.normal(*ONE_SIDE)
            curves.append(field.curve((start + start[::-1]) / 2 if even else start, POINTS))
        ends = list(SPANS.values())
        rises = [max(np.max(np.diff(c.gaps)) / c.gaps[0], 0.0) for c in curves]
        with np.errstate(invalid="ignore", divide="ignore"):  # after an even start gaps are rounding
            falls = [-np.log(c.gaps[ends] / c.gaps[0]) / (2 * c.sobolev * tau * c.times[ends]) for c in curves]
        return xr.Dataset(
            {
                "rise": ("seed", rises),
                "late_ratio": ("seed", [c.late_rate() / (2 * c.spectral_gap) for c in curves]),
                "fall_ratio": (["seed", "span"], falls),
            },
            {"span": list(SPANS)},
        )

    def _density(self, seeds, tau):
        """The energy of the density that begins as the particles do, at each of the times."""
        fields = [self._field(seed, tau) for seed in seeds]
        starts = [field.normal(0.0, self.init_scale) for field in fields]
        masses = [field.evolve(start, TIMES, 0.05) for field, start in zip(fields, starts)]
        energies = [[field.energy(mass) for mass in row] for field, row in zip(fields, masses)]
        return xr.Dataset({"energy": (["seed", "t"], energies)}, {"t": list(TIMES)})

    def _field(self, seed, tau, convex=False):
        """The mean field of the training set of a seed."""
        inputs, labels = _training_set(self.experiment(tau, 1.0), seed)
        penalty, confinement = CONVEX if convex else (self.penalty, self.confinement)
        return MeanField(inputs, labels, penalty, confinement, tau, GRID / 2 if convex else GRID)


def _training_set(experiment: Any, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Inputs and labels of the run with this seed, as numbers."""
    with jax.enable_x64(True):
        data, space = experiment.data, experiment.empty_space()
        batch = _draw(data, experiment.network, space, data.n, 0, jax.random.key(seed)).training
        return np.asarray(batch.inputs)[:, 0, 0], np.asarray(batch.labels)


_draw = eqx.filter_jit(draw_run)
