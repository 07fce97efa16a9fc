"""One gradient step, random features, lazy and rich: wrong constants, exponents and activations."""

import jax.numpy as jnp
from rival import Rival, wrong

from featlab.algorithms import GiantStep
from featlab.claims import at_least, equals, scales_as
from featlab.claims.settings import one_step as shared
from featlab.networks import identity
from featlab.theory import one_step


def cosine_without_noise(claim):
    """b = c_1^2 + phi c^2: the noise of the labels is forgotten."""

    def cosine(self, n, teacher):
        known = shared.SETTINGS[teacher].teacher._replace(noise=0.0)
        return one_step.alignment(self.experiment(n, teacher).data.d / n, known)

    return wrong(claim, _cosine=cosine)


def slow_gap(claim):
    """A gap that falls as n^-1/4 only: the measured one times n^(1/4)."""

    def falls(self, runs):
        return type(claim)._falls(self, runs.assign(rank_one_gap=runs.rank_one_gap * runs.n**0.25))

    return wrong(claim, _falls=falls)


def stronger_powers(claim):
    """Each further spike is weaker by n^(alpha - 1/4), not n^(alpha - 1/2)."""

    def checks(self, lab):
        s = lab.run(self.single, n=lab.size.n).spike_overlap
        ratio = abs(s.sel(spike=2) / s.sel(spike=1))
        yield scales_as("exponent of spike 2 over spike 1", ratio, "n", -0.05, rivals=(-0.3,))

    return wrong(claim, checks=checks)


def drops_over(factor, name):
    """The drop with two explicit spikes is a factor of what the formula says."""

    def change(claim):
        def checks(self, lab):
            teachers = (tuple(shared.SETTINGS)[1],)
            drops = self.gains.explicit_drops(lab, lab.size.n, teachers, 2) / factor
            yield equals(name, drops, 1, 0.1)

        return wrong(claim, checks=checks)

    return change


def learnt_at_once(claim):
    """One step learns the staircase's second direction too."""

    def staircase(z):
        return z[0] + z[0] * z[1]

    def checks(self, lab):
        yield self._learnt("the second", self._shares(lab, staircase, 2, 1).sel(direction=1), "v_2")

    return wrong(claim, checks=checks)


def higher_bound(claim):
    """The bound on random features is half as high again."""

    def checks(self, lab):
        runs = lab.run(self.experiment, d=lab.size.d, step=GiantStep(eta=0.0))
        bound = 1.5 * shared.Setting(jnp.tanh, 0.0).teacher.nonlinear
        yield at_least("risk over the bound", runs.ridge_test_error.min("penalty") / bound, 1)

    return wrong(claim, checks=checks)


def one_spike_too_few(claim):
    """After any step the Gaussian features have one spike less than the theorem says."""

    def after(self, lab, teachers, spikes):
        return type(claim)._after(self, lab, teachers, lambda alpha: one_step.spikes_at(alpha) - 1)

    return wrong(claim, _after=after)


def linear_activation(claim):
    """The curve is that of features with the wrong activation: the network is linear."""
    experiment = type(claim).experiment
    return wrong(claim, experiment=lambda self, n, ratio: experiment(self, n, ratio, activation=identity))


def lazy_everywhere(claim):
    """Weights move by N^(-1/2) under 1/N too."""

    def checks(self, lab):
        runs = lab.run(self.experiment, width=lab.size.width, power=1.0)
        yield self._law(runs, "weight_movement", 1.0, -0.5, rivals=(0.0,))

    return wrong(claim, checks=checks)


RIVALS = [
    Rival(
        "moniri2023_rank_one",
        "noise does not turn the step",
        cosine_without_noise,
        "cosine*",
        size={"n": (200, 400, 800)},
    ),
    Rival(
        "moniri2023_rank_one",
        "the gap falls as n^-1/4",
        slow_gap,
        "exponent of the gap*",
        size={"n": (200, 400, 800)},
    ),
    Rival(
        "moniri2023_spikes", "spikes fall as n^(alpha - 1/4)", stronger_powers, "*", size={"n": (500, 1000, 2000)}
    ),
    Rival(
        "moniri2023_train_error",
        "two spikes are worth 1.5 times as much",
        drops_over(1.5, "drop"),
        "drop",
        size={"n": 500},
    ),
    Rival(
        "moniri2023_test_error",
        "two spikes are worth 1.5 times as much",
        drops_over(1.5, "drop"),
        "drop",
        size={"n": 500},
    ),
    Rival(
        "dandi2023_directions",
        "one step learns the staircase",
        learnt_at_once,
        "*the second",
        size={"d": (100, 200, 400)},
    ),
    Rival("ba2022_kernel_gap", "a bound 1.5 times as high", higher_bound, "risk*"),
    Rival(
        "gaussian_equivalence",
        "one spike less",
        one_spike_too_few,
        "test error after*",
        size={"n": 500, "teachers": 2},
    ),
    Rival(
        "mei2022_double_descent",
        "a linear activation has the same curve",
        linear_activation,
        "test error over*",
        size={"n": 400, "ratio": (0.6, 0.9, 1.1, 1.5)},
    ),
    Rival(
        "lazy_or_rich",
        "lazy in either scaling",
        lazy_everywhere,
        "*weight movement*",
        size={"width": (512, 1024, 2048)},
    ),
]
