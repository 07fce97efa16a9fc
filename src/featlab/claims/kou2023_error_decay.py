r"""The test error of benign ReLU networks falls exponentially in X = n |mu|^4 / (sigma^4 d).

Kou, Chen, Chen and Gu (2023), Theorem 4.2, first part: the error beyond the flipped labels is at most
$\exp(-X / C_2)$. Here $C_2 = 4$ is put to the test, for every X from 1 to 16. A power law could pass under that
bound over a short range, so the local slope of $-\log$ error must stay above 1/4 as well, which no power law's
does. X alone decides: at equal X, the Gaussian quantile z of the error is the same for all n and d, up to what is
lost at small n. With flips, the error on observed labels falls to p and no further.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import scipy.stats

from featlab.claims._claim import Assumption, Claim, Size
from featlab.claims._judge import agrees, bounded_by, exceeds
from featlab.claims.kou2023_phase import Phase as KouPhase
from featlab.claims.kou2023_phase import signal_at
from featlab.fields import probability, real, whole
from featlab.probes import at_end, test_error, train_loss

SLOPE = 1 / 4  # 1 / C_2


class ErrorDecay(Claim):
    """The claim of this file."""

    title = "the test error of benign ReLU networks falls exponentially in n |mu|^4 / (sigma^4 d)"
    statement = r"L_D^{0-1} \le p + e^{-X/4}, \qquad X = \frac{n\|\mu\|^4}{\sigma^4 d} \in [1, 16]"
    refuted_if = "some cell's error is above exp(-X/4), or -log error flattens below slope 1/4"
    reference = KouPhase.reference
    sizes = {
        "tiny": Size(seeds=3, strengths=(1, 4), n=(8, 16), d=(1e4, 1e5), tests=(2_000,)),
        "smoke": Size(seeds=4, strengths=(1, 4, 16), n=(32, 64, 128), d=(1e6, 1e7), tests=(100_000,)),
        "laptop": Size(seeds=12, strengths=(1, 2, 4, 8, 16), n=(64, 256, 1024), d=(1e6, 1e9), tests=(1_000_000,)),
        "full": Size(seeds=32, strengths=(1, 2, 4, 8, 16), n=(256, 1024, 4096), d=(1e8, 1e10), tests=(1_000_000,)),
    }
    number_of_checks = 5
    minutes = 3.0  # a million test products for each of 240 networks
    control_changes = "the labels of the test are flipped like those of training"

    width: int = whole(default=16, at_least=1)  # m
    learning_rate: float = real(default=8.0, above=0)  # eta, in units of n / (sigma^2 d)
    init_scale: float = real(default=1e-3, above=0)  # sigma_0, in units of sqrt(n) / (sigma d)
    loss: float = real(default=0.01, above=0)  # epsilon
    flip: float = probability(default=0.1)  # p, where labels are flipped

    def experiment(self, strength, n, d, tests, flip=0.0):
        """Kou's experiment with the signal such that X is the strength, and more tests."""
        kou = KouPhase(
            width=self.width, learning_rate=self.learning_rate, init_scale=self.init_scale, loss=self.loss
        )
        trained = kou.experiment(n, d, signal_at(strength, n, d), flip=flip)
        probes = (train_loss.on(at_end), test_error(count=tests).on(at_end))
        return dataclasses.replace(trained, probes=probes)

    def typical(self):
        return self.experiment(4.0, 256, 1e9, 10_000)

    def assumptions(self, experiment: Any) -> list[Assumption]:
        return KouPhase().assumptions(experiment)

    def checks(self, lab):
        size = lab.size
        (tests,), strengths = size.tests, np.array(size.strengths, float)
        small, large = min(size.d), max(size.d)
        # All n at the largest d, and the smaller n once more at the smallest.
        pairs = [(n, large) for n in size.n] + [(n, small) for n in size.n[:-1]]
        runs = {pair: [lab.endings(self.experiment(x, *pair, tests)) for x in strengths] for pair in pairs}
        trained = float(min(run["trained"].mean() for row in runs.values() for run in row))
        errors = {pair: np.array([run["clean_test_error"] for run in row]) for pair, row in runs.items()}
        # No wrong test input among so many is no error of 0: half of one is the least that was resolved.
        errors = {pair: np.maximum(value, 0.5 / tests) for pair, value in errors.items()}

        names = [f"X = {x:g}, n = {n}, d = {d:g}" for n, d in pairs for x in strengths]
        bounds = np.tile(np.exp(-SLOPE * strengths), len(pairs))
        stacked = np.concatenate([errors[pair] for pair in pairs])
        points = {
            "x": strengths,
            "pairs": pairs,
            "errors": np.array([errors[pair] for pair in pairs]),
            "bound": bounds[: len(strengths)],
        }
        yield bounded_by("error / exp(-X/4)", stacked, bounds, cells=tuple(names), trained=trained, points=points)

        slopes = {
            pair: -np.diff(np.log(value), axis=0) / np.diff(strengths)[:, None] for pair, value in errors.items()
        }
        gaps = [f"X = {a:g} to {b:g}" for a, b in zip(strengths, strengths[1:])]
        cells = tuple(f"{gap}, n = {n}, d = {d:g}" for n, d in pairs for gap in gaps)
        stacked = np.concatenate([slopes[pair] for pair in pairs])
        yield exceeds("local slope of -log error in X", stacked, 0.0, by=SLOPE, cells=cells, trained=trained)

        quantile = {pair: -scipy.stats.norm.ppf(value) for pair, value in errors.items()}
        ratios = [quantile[n, large] / quantile[n, small] for n in size.n[:-1]]
        cells = tuple(f"X = {x:g}, n = {n}" for n in size.n[:-1] for x in strengths)
        yield agrees(
            f"z at d = {large:g} over z at d = {small:g}",
            np.concatenate(ratios),
            1.0,
            cells=cells,
            trained=trained,
        )

        means = {n: quantile[n, large].mean(axis=0) for n in size.n}  # over X, one for each seed
        last, before = size.n[-1], size.n[-2]
        drift = means[last] / means[before] - means[before] / means[size.n[0]] if len(size.n) > 2 else None
        ratios = np.concatenate([quantile[last, large] / quantile[n, large] for n in size.n[:-1]])
        cells = tuple(f"X = {x:g}, n = {last} over {n}" for n in size.n[:-1] for x in strengths)
        yield agrees(
            f"z at n = {last} over z at smaller n", ratios, 1.0, cells=cells, trained=trained, drift=drift
        )

        read = lab.endings(self.experiment(strengths[-1], size.n[1], large, tests, self.flip))
        yield agrees(
            "observed error with flips over p",
            read["test_error"] / self.flip,
            1.0,
            trained=float(read["trained"].mean()),
        )

    def control(self, lab):
        """Observed labels do not fall below p, so the same bound must be refuted."""
        size = lab.size
        strengths = np.array(size.strengths, float)
        runs = [
            lab.endings(self.experiment(x, size.n[0], max(size.d), size.tests[0], self.flip)) for x in strengths
        ]
        return bounded_by(
            "error / exp(-X/4)",
            np.array([run["test_error"] for run in runs]),
            np.exp(-SLOPE * strengths),
            cells=tuple(f"X = {x:g}, n = {size.n[0]}" for x in strengths),
            trained=float(min(run["trained"].mean() for run in runs)),
        )
