"""Wrong theories of ridge regression, metrics, mean fields and learning in context."""

from __future__ import annotations

import dataclasses
import fnmatch
import functools

from rival import Rival, wrong

from featlab.claims import Claim, at_most, equals, scales_as
from featlab.claims.settings.saturated_features import falls
from featlab.claims.theorems.suzuki2024_rates import LARGE, LEARNT


def scaled(pattern: str, factor: float):
    """The bound or value of these checks is off by a factor: so is what is measured in its units."""

    def change(claim: Claim) -> Claim:
        def checks(self, lab):
            for check in type(claim).checks(self, lab):
                off = factor if fnmatch.fnmatchcase(check.name, pattern) else 1.0
                yield dataclasses.replace(check, samples=off * check.samples)

        return wrong(claim, checks=checks)

    return change


def judging(check):
    """One judgement in place of all."""
    return lambda claim: wrong(claim, checks=lambda self, lab: iter([check(self, lab)]))


def no_density_ratio(claim, lab):
    ratios = lab.measure(falls, k=(1, 2), one_in=(2, 4, 8)).ratio
    return at_most("squared slope over the fall", ratios * ratios.one_in, 1)


def level_without_noise(claim, lab):
    runs = lab.run(claim.experiment, n=lab.size.n, steps=lab.size.steps, many=True)
    total = runs.seen_spectrum.clip(max=claim.excess * claim.noise / lab.size.n).sum("eigenvalue", skipna=False)
    return equals("less s^2, over the sum", (runs.criterion.isel(penalty=0) - claim.noise) / total, 1)


def parametric_rate(claim, lab):
    risks = claim._equivalent("harmful", [LEARNT], LARGE).squeeze(drop=True)
    return scales_as("risk in n", risks, "n", -1.0, (0.0,))


def constant_of_the_talk(claim, lab):
    read = claim._read(lab, 0.0)
    added = read.label_noise_excess / (3 * read.penalty * read.label_noise_formula)
    return equals("what noise adds", added, 1, margin=0.01)


def half_of_what_is_missed(claim, lab):
    missed = claim._read(lab, ["static"], 7).missed
    return equals("variance missed, 5 of 7 features", missed, (1 - 5 / 7) / 2)


def without_noise(claim):
    def over(self, read, formula):
        def stated(spectrum, energy, n, penalty, noise, multiplicity):
            return formula(spectrum, energy, n, penalty, 1.0, multiplicity=multiplicity)

        return type(claim)._over(self, read, stated)

    return wrong(claim, _over=over)


def squared_covariance(claim, lab):
    right, squared = (claim._given(lab, [2.0], share).isel(penalty=-1) for share in (0.5, 1.0))
    return at_most("risk of Bayes over that of another", squared / right, 1)


def no_inflation(claim):
    def family(self, lab, *args):
        found = type(claim)._family(self, lab, *args)
        return found.assign(freedom=0 * found.freedom)

    return wrong(claim, _family=family)


SADDLE = functools.partial(Rival, "kim2024_strict_saddle")
RIVALS = [
    SADDLE("the curvature is at most -6 L^2", scaled("4 L^2 over*", 1.5), "4 L^2 over*"),
    SADDLE("the slope has the constant 6", scaled("4 L (r/2 - L)*", 1.5), "4 L (r/2 - L)*"),
    SADDLE("the smallest eigenvalue is 1.5 times the bound", scaled("4 L^2 / R*", 1.5), "4 L^2 / R*"),
    SADDLE("the fall has no 1/R", judging(no_density_ratio), "*"),
    Rival(
        "takakura2024_langevin", "the gap falls at 3 alpha tau", scaled("*convex potential", 1 / 1.5),
        "*convex potential", size={"tau": (0.16,)},
    ),
    Rival(
        "takakura2024_label_noise", "the constant is lambda s^2 / n", judging(constant_of_the_talk), "*",
        size={"draws": 200},
    ),
    Rival(
        "kim2024_icl", "half a feature's variance for each feature too many", judging(half_of_what_is_missed), "*",
        size={"neurons": 60, "batch": 64, "steps": 50},
    ),
    Rival(
        "suzuki2024_metric", "the level of the threshold is s'^2 / n", judging(level_without_noise), "*",
        size={"n": 20, "steps": 300},
    ),
    Rival(
        "suzuki2024_alignment", "Bayes has W = Sigma_beta", judging(squared_covariance), "*",
        size={"n": 30, "d": 200},
    ),
    Rival(
        "suzuki2024_dof_risk", "on fresh inputs without (1 - df/n)^-2", no_inflation,
        "((1 - df/n)^2 risk - (R - s^2)) / s^2", size={"n": 40, "tasks": 160, "fooled": 8},
    ),
    Rival("suzuki2024_rates", "the rate is 1/n", judging(parametric_rate), "*"),
    Rival(
        "tsigler2020_regimes", "V lacks the variance of the noise", without_noise,
        "factor between simulated risk*", size={"n": (40, 80, 160), "harmful": (8, 12)},
    ),
]  # fmt: skip
