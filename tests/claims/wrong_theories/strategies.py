"""Rivals of the theorems on training strategies."""

import dataclasses

from rival import Rival, wrong


def _weaker_signal(claim):
    """SNR^2 of order 1 / n^2 is enough for stage I: strengths are those at n = 100."""
    kind = type(claim)
    return wrong(claim, split=lambda self, ratio, n, strength: kind.split(self, ratio, n, strength * 100 / n))


def _without_the_half(claim):
    return wrong(claim, least_error=property(lambda self: min(self.flip, self.negative_flip)))


def _descent_for_adam(claim):
    def strategies(self, scale=1.0):
        found = type(claim).strategies(self, scale)
        return found | {"Adam": found["gradient descent"]}

    return wrong(claim, strategies=strategies)


def _mean_of_squares(claim):
    """Noise grows by s sigma_p a step: the mean of |x| is taken for the root of the mean of x^2."""
    return wrong(claim, pace=lambda self, s: s * self.noise_scale)


def _smaller_steps_of_wide_heads(claim):
    """Attention turns at a time that does not depend on the head: steps shrink with its root."""
    kind = type(claim)

    def signs(self, time, steps, d, noise, *, head=None, **cells):
        slower = (self.head / head) ** 0.5 if head else 1.0
        return kind.signs(self, time * slower, steps, d, noise, head=head, **cells)

    return wrong(claim, signs=signs)


def _flipped(label_flip):
    """No labels are flipped anew: `label_flip` of them are flipped once, before training."""

    def change(claim):
        kind = type(claim)

        def descent(self, steps, d, factor, flip, probes, strength=None):
            one = kind.descent(self, steps, d, factor, 0.0, probes, strength)
            once = label_flip if flip else 0.0
            return dataclasses.replace(one, data=dataclasses.replace(one.data, label_flip=once))

        return wrong(claim, descent=descent)

    return change


def _before_memorising(claim):
    """The clock is that of the first steps, where the drift is of order one."""
    kind = type(claim)
    return wrong(
        claim, _rates=lambda self, lab, window, power, **cells: kind._rates(self, lab, (2, 8), 1, **cells)
    )


def _sam_without_radius(claim):
    """Mini-batches alone do what SAM does."""
    kind = type(claim)

    def experiment(self, d, signal, radius=None, n=None, start=None, batch=None):
        return kind.experiment(self, d, signal, 0.0 if batch and radius else radius, n, start, batch)

    return wrong(claim, experiment=experiment)


def _dimension_alone(claim):
    """Descent's threshold depends on d / n through d alone: n is varied at constant d / n."""
    kind = type(claim)

    def experiment(self, d, signal, radius=None, n=None, start=None, batch=None):
        return kind.experiment(self, d * (n or self.n) / self.n, signal, radius, n, start, batch)

    return wrong(claim, experiment=experiment)


EARLY = {"ratios": (100, 1000), "n": 50, "ns": (100, 400), "late": 100}
SPARSE = {"d": 2000, "sparsities": (12,), "ns": (15,)}
COARSE = {"steps": 4.0}
GD = "huang2025_label_noise_gd"
LOW = {"d": (300, 600, 1200), "n": (10, 20, 40)}
RIVALS = [
    Rival("han2025_label_noise", "SNR ~ 1 / n is enough", _weaker_signal, "*at one n SNR^2*", size=EARLY),
    Rival("han2025_label_noise", "the least error has no half", _without_the_half, "spurious error*", size=EARLY),
    Rival("zou2023_adam", "descent does what Adam does", _descent_for_adam, "test error of Adam", size=SPARSE),
    Rival(
        "zou2023_adam", "noise grows by s sigma_p", _mean_of_squares, "sign descent: noise over*",
        size=SPARSE | {"scale": 0.1},
    ),
    Rival(
        "li2025_sign_gd", "T_4 does not depend on the head", _smaller_steps_of_wide_heads,
        "exponent of T_4 in m_k", size={"d": 2000, "s": (20, 40), "steps": 100, "adam": False},
    ),
    Rival(GD, "plain descent keeps noise bounded", _flipped(0.0), "largest rho*", size=COARSE),
    Rival(GD, "plain descent learns", _flipped(0.0), "*label noise", size=COARSE),
    Rival(GD, "plain descent: gamma grows", _flipped(0.0), "gain of log gamma*", size=COARSE),
    Rival(GD, "labels are flipped once", _flipped(0.1), "largest rho*", size=COARSE),
    Rival(
        "huang2025_clock", "the clock is proportional to the step", _before_memorising, "*in the step",
        size={"steps": (1.0, 2.0, 4.0)},
    ),
    Rival(
        "huang2025_clock", "the clock needs no flips", _before_memorising, "*in p (1 - p)",
        size={"steps": (1.0, 2.0, 4.0)},
    ),
    Rival("chen2023_sam", "mini-batches do what SAM does", _sam_without_radius, "*mini-batches*", size=LOW),
    Rival("chen2023_sam", "the threshold depends on d alone", _dimension_alone, "*in n, descent", size=LOW),
]  # fmt: skip
