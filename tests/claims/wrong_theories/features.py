"""Wrong theories of features: contrastive pairs, denoisers, prompts, sparse codes, patterns, parities, AGOP."""

from __future__ import annotations

import itertools

from rival import Rival, replaced, wrong

from featlab.claims import at_least


def _other_clock(claim):
    """What is not learnt as the root of what it is: a start twice as far down in logarithms."""

    def experiment(self, n, strength, signal, start=1.0):
        return claim.experiment(n, strength, signal, start**2)

    return wrong(claim, experiment=experiment)


def _both_classes(claim):
    """The ratio n SNR^2, as if every sample had the signal of either class."""

    def denoiser(self, n, strength, **options):
        return claim.denoiser(n, 2 * strength, **options)

    return wrong(claim, denoiser=denoiser)


def _any_start(claim):
    """Attention learns semantics and leaves concepts alone from a start that matches nothing, too."""

    def experiment(self, time, alignment=0.0, count=4000):
        return claim.experiment(time, 0.0, count)

    return wrong(claim, experiment=experiment)


def _no_other_atoms(claim):
    """P(i in S_sure,j) = Q(sqrt((c_1 + c_2) log d)), without what is asked along the other atoms."""
    from featlab.theory.sparse_coding import potential_probability, sure_count

    def expected(self, width, d):
        alone = (1 - potential_probability(d, self.c1, self.c2)) ** (d - 1)
        return sure_count(width, d, self.c1, self.c2)[0] / alone

    def checks(self, lab):
        return itertools.islice(claim.__class__.checks(self, lab), 1)

    return wrong(claim, _expected=expected, checks=checks)


def _one_step(claim):
    """One step is enough: the second adds nothing that a head needs."""

    def two_steps(self, easy=0.5, *, second=True, inputs=4096, count=10_000):
        return claim.two_steps(easy, second=False, inputs=inputs, count=count)

    return wrong(claim, two_steps=two_steps)


def _pairs(claim):
    """The plateau of k = 2 is that of k = 3."""

    def experiment(self, d, k, steps=20_000, batch=None):
        return claim.experiment(d, min(k, 2), steps, batch)

    return wrong(claim, experiment=experiment)


def _power_one(claim):
    """With a fixed head ReLU networks have the power of linear ones."""

    def checks(self, lab):
        for check in claim.checks(lab):
            if check.name == "power of AGOP, fixed head":
                yield at_least(check.name, check.samples, 0.75)

    return wrong(claim, checks=checks)


FEW_STEPS = {"steps": 2, "multiple": 1, "count": 2000, "linearised": False}
RIVALS = [
    Rival(
        "huang2024_contrastive",
        "what is not learnt falls as sigma_0^(1/4)",
        _other_clock,
        "exponent in sigma_0 of*",
        size={"n": 32, "strengths": (3.0, 6.0, 12.0)},
    ),
    Rival(
        "han2025_diffusion",
        "the ratio is n SNR^2",
        _both_classes,
        "ratio * over n SNR^2 / 2*",
        size={"n": (10, 20)},
    ),
    Rival(
        "bu2024_concepts",
        "a start that matches nothing does as well",
        _any_start,
        "* component of attention*",
        size={"times": (2.0, 4.0, 6.0, 8.0), "prompts": 500},
    ),
    Rival(
        "allenzhu2020_sparse_coding", "no condition along other atoms", _no_other_atoms, "surely good neurons at*"
    ),
    Rival("shi2022_emergence", "one step is enough", _one_step, "error of a head after*", size=FEW_STEPS),
    Rival(
        "shi2022_emergence",
        "no step of descent is needed beside fixed features",
        lambda claim: replaced(claim, learning_rate=3e-3),
        "error of fixed features*",
        size=FEW_STEPS,
    ),
    Rival(
        "barak2022_parity",
        "k = 2 has the plateau of k = 3",
        _pairs,
        "share of the plateau*",
        size={"d": (18, 27), "k": (2, 3)},
    ),
    Rival(
        "radhakrishnan2022_agop",
        "power 1 under a fixed head",
        _power_one,
        "power of AGOP*",
        size={"targets": ("product",), "count": 500},
    ),
]
