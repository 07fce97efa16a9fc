"""Wrong theories of signal and noise: other laws of thresholds, times, errors and attention."""

from __future__ import annotations

import dataclasses

from rival import Rival, wrong

from featlab.algorithms import GradientDescent
from featlab.claims.theorems.cao2022_phase import BLOW_UP
from featlab.networks import relu_power


def _only(claim, method, *args):
    """The same claim with nothing but the checks of one of its methods."""
    return wrong(claim, checks=lambda self, lab: getattr(self, method)(lab, *args))


def _squared_sample_size(claim):
    """Every sample counted twice: n^2 SNR^q decides."""
    return wrong(
        _only(claim, "_sides", 3), strength=lambda self, factor, q: lambda n: (BLOW_UP * factor / n**2) ** (1 / q)
    )


def _power_below(claim):
    """n SNR^(q-1) = const."""

    def checks(self, lab):
        yield self._exponent(lab, 3, 0.35, judged_as=2)

    return wrong(claim, checks=checks)


def _smaller_constant(claim, c_2):
    return wrong(claim, c_2=c_2)


def _four_times_the_power(claim):
    """Growth from the start at the rate of ReLU^4, which is linear for a while too."""
    right = type(claim).experiment

    def experiment(self, *args, **kwargs):
        found = right(self, *args, **kwargs)
        network = dataclasses.replace(found.network, activation=relu_power(4))
        return dataclasses.replace(found, network=network)

    return wrong(_only(claim, "_linear"), experiment=experiment)


def _faster(claim):
    """The slope of the loss taken for 1/3: all growth is half as fast again as the equation says."""
    right = type(claim).experiment

    def experiment(self, *args, **kwargs):
        found = right(self, *args, **kwargs)
        return dataclasses.replace(found, algorithm=GradientDescent(1.5 * found.algorithm.learning_rate))

    def checks(self, lab):
        yield from self._constants(lab, lab.size.n[0], 3, self.init_scale * lab.size.factors[-1])
        yield from self._linear(lab)

    return wrong(claim, experiment=experiment, checks=checks)


def _uniform_attention(claim):
    """Attention that hardly moves: new inputs then lose no more than training inputs."""
    right = type(claim).experiment

    def experiment(self, *args, **kwargs):
        return right(self, *args, **{**kwargs, "longer": 20.0})

    def checks(self, lab):
        yield self._of_epsilon(lab)

    return wrong(claim, experiment=experiment, checks=checks)


LARGE_N = {"n": (512, 1024)}
RIVALS = [
    Rival("cao2022_phase", "n^2 SNR^q decides", _squared_sample_size, "[tg]* above*", size=LARGE_N),
    Rival("cao2022_phase", "the threshold is at n SNR^(q-1)", _power_below, "*", size={"n": (64, 128, 256)}),
    Rival(
        "kou2023_phase",
        "the benign bound has C_2 = 1",
        lambda claim: _smaller_constant(_only(claim, "_sides"), 1.0),
        "benign side*",
        size={"n": (128, 256, 512)},
    ),
    Rival(
        "kou2023_error_decay",
        "the bound has half the constant",
        lambda claim: _smaller_constant(claim, 2.0),
        "local slope*",
        size={"n": (64, 256), "d": (1e6, 1e9), "tests": 200_000},
    ),
    Rival(
        "meng2024_xor",
        "exclusive or costs no larger constant than a linear task",
        lambda claim: _smaller_constant(_only(claim, "_sides"), 4.0),
        "benign side*",
    ),
    Rival("growth_laws", "ReLU^4 in place of ReLU", _four_times_the_power, "*over its law*"),
    Rival(
        "growth_laws", "growth half as fast again", _faster, "* over *", size={"n": (16,), "factors": (1.0, 0.5)}
    ),
    Rival(
        "jiang2024_transformer", "uniform attention", _uniform_attention, "exponent of exp*", size={"n": (16, 32)}
    ),
]
