r"""The test error of benign ReLU networks falls exponentially in X = n |mu|^4 / (sigma^4 d).

Kou, Chen, Chen and Gu (2023), Theorem 4.2, first part: the error beyond the flipped labels is at most $\exp(-X /
C_2)$. Here $C_2 = 4$ is put to the test, for every X from 1 to 16. A power law could pass under that bound over
a short range, so the local slope of $-\log$ error must stay above 1/4 as well, which no power law's does. X
alone decides: at equal X, the Gaussian quantile z of the error is the same for all n and d. With flips, the
error on observed labels falls to p and no further.

Classes are balanced. Labels by a coin each are unequal by about $\sqrt n$, which the theorem's n forgets; at n =
64 the weaker class then makes all the errors at large X, and the error is that of a smaller X.
"""

from __future__ import annotations

import dataclasses

import numpy as np
import scipy.stats
import xarray as xr

from featlab.claims import Claim, Size, at_least, at_most, equals, not_judged
from featlab.claims.settings import kou
from featlab.claims.settings.kou import KOU, signal_at
from featlab.core.validation import probability, real, whole
from featlab.networks import relu, relu_power


class ErrorDecay(Claim):
    """The claim of this file."""

    title = "the test error of benign ReLU networks falls exponentially in n |mu|^4 / (sigma^4 d)"
    statement = r"L_D^{0-1} \le p + e^{-X/4}, \qquad X = \frac{n\|\mu\|^4}{\sigma^4 d} \in [1, 16]"
    refuted_if = "some cell's error is above exp(-X/4), or -log error flattens below slope 1/4"
    reference = KOU
    sizes = {
        "tiny": Size(seeds=3, strengths=(1, 4), n=(8, 16), d=(1e4, 1e5), tests=2_000),
        "smoke": Size(seeds=4, strengths=(1, 4, 16), n=(32, 64, 128), d=(1e6, 1e7), tests=100_000),
        "laptop": Size(seeds=24, strengths=(1, 2, 4, 8, 16), n=(64, 256, 1024), d=(1e6, 1e9), tests=1_000_000),
        "full": Size(seeds=32, strengths=(1, 2, 4, 8, 16), n=(256, 1024, 4096), d=(1e8, 1e10), tests=1_000_000),
    }
    minutes = 3.0  # a million test products for each network
    control_changes = "activation ReLU -> ReLU^2"

    clauses = {
        "the error beyond p is at most exp(-X / C_2), with C_2 = 4": "error / exp(-X/4)",
        "it falls exponentially": "local slope of -log error in X",
        "X alone decides, whatever n and d": ("z at d = * over z at d = *", "z at n = * over z at smaller n"),
        "with flipped labels the error falls to p": "observed error with flips over p",
        "labels by a coin each": not_judged(
            "chance in the numbers of the two classes makes n look smaller; they are equal here"
        ),
        "the smallest C_2": not_judged("the theorem leaves it open; a value that holds is put to the test"),
        "the bound for X beyond 16": not_judged("the error is then below what the test set resolves"),
    }

    c_2 = 4.0  # of the bound
    exploratory = "Classes were balanced after coins for labels had been found to blur z at small n."

    width: int = whole(default=16, at_least=1)  # m
    learning_rate: float = real(default=8.0, above=0)  # eta, in units of n / (sigma^2 d)
    init_scale: float = real(default=1e-3, above=0)  # sigma_0, in units of sqrt(n) / (sigma d)
    loss: float = real(default=0.01, above=0)  # epsilon
    flip: float = probability(default=0.1)  # p, where labels are flipped

    def experiment(self, strength, n, d, tests, flip=0.0, activation=relu):
        """Kou's experiment with the signal such that X is the strength, and more tests."""
        return kou.experiment(
            n,
            d,
            signal_at(strength, n, d),
            width=self.width,
            learning_rate=self.learning_rate,
            init_scale=self.init_scale,
            loss=self.loss,
            flip=flip,
            tests=tests,
            activation=activation,
            balanced=True,
        )

    def typical(self):
        return self.experiment(4.0, 256, 1e9, 10_000)

    def assumptions(self, experiment):
        return kou.assumptions(experiment)

    def checks(self, lab):
        size = lab.size
        d_small, d_large = min(size.d), max(size.d)
        # All n at the largest d, and the smaller n once more at the smallest.
        large = self._errors(lab, size.n, d_large)
        small = self._errors(lab, size.n[:-1], d_small)
        by_d = {f"d = {d_large:g}": large, f"d = {d_small:g}": small}

        check = at_most("error / exp(-X/4)", {d: one / self._bound(one) for d, one in by_d.items()}, 1)
        yield dataclasses.replace(check, points=_drawn({d_large: large, d_small: small}, self._bound(large)))

        yield at_least(
            "local slope of -log error in X", {d: _slopes(one) for d, one in by_d.items()}, 1 / self.c_2
        )

        z_large, z_small = _quantile(large), _quantile(small)
        yield equals(f"z at d = {d_large:g} over z at d = {d_small:g}", z_large.sel(n=small.n) / z_small, 1.0)
        yield _alike_at_all_n(z_large)

        flipped = lab.run(self.experiment(size.strengths[-1], size.n[1], d_large, size.tests, self.flip))
        yield equals("observed error with flips over p", flipped.test_error / self.flip, 1.0)

    def control(self, lab):
        """Networks of ReLU^2, trained to the same loss, ask for more than X: n SNR^2, which is small here."""
        squares = self._runs(lab, lab.size.n[0], max(lab.size.d), relu_power(2)).clean_test_error
        return at_most("error / exp(-X/4)", squares / self._bound(squares), 1)

    def _runs(self, lab, n, d, activation=relu):
        cells = {"strength": lab.size.strengths, "d": d, "tests": lab.size.tests, "activation": activation}
        runs = lab.run(self.experiment, n=n, **cells)
        runs.strength.attrs["symbol"] = "X"
        return runs

    def _bound(self, errors):
        return np.exp(-errors.strength / self.c_2)

    def _errors(self, lab, n, d):
        # No wrong test input is not an error of 0: half of one is the least that was resolved.
        return np.maximum(self._runs(lab, n, d).clean_test_error, 0.5 / lab.size.tests)


def _quantile(errors: xr.DataArray) -> xr.DataArray:
    return errors.copy(data=-scipy.stats.norm.ppf(errors))


def _slopes(errors: xr.DataArray) -> xr.DataArray:
    """Of -log error between neighbouring X."""
    x = errors.strength.values
    slopes = -errors.copy(data=np.log(errors)).diff("strength") / errors.strength.diff("strength")
    return slopes.assign_coords(strength=[f"X = {a:g} to {b:g}" for a, b in zip(x, x[1:])])


def _alike_at_all_n(z: xr.DataArray):
    """z at the largest n is that at the others; and, with three sizes or more, it does not drift with n."""
    ratios = (1 / z.isel(n=slice(-1))) * z.isel(n=-1, drop=True)
    check = equals(f"z at n = {int(z.n[-1])} over z at smaller n", ratios, 1.0)
    if z.sizes["n"] < 3:
        return check
    means = z.mean("strength", skipna=False)
    first, before, last = (means.isel(n=k, drop=True) for k in (0, -2, -1))
    drift = last / before - before / first
    return dataclasses.replace(check, drift=drift.values[None])


def _drawn(errors: dict[float, xr.DataArray], bound: xr.DataArray) -> dict:
    """What the figure of the verdict shows: errors by pair of n and d, by X and by seed."""
    one = next(iter(errors.values()))
    return {
        "x": one.strength.values.astype(float),
        "pairs": [(int(n), d) for d, at_d in errors.items() for n in at_d.n],
        "errors": np.concatenate([at_d.transpose("n", "strength", "seed").values for at_d in errors.values()]),
        "bound": bound.values,
    }
