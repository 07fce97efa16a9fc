r"""When interpolating noisy labels is harmless: three regimes of ridge regression, told by the spectrum alone.

Tsigler and Bartlett (2023), Bartlett, Long, Lugosi and Tsigler (2020). For inputs with variances
$\lambda_j = j^{-a}$, and no penalty,

* *kernel*, $a > 1$: the noise of the labels is passed on at every n, while with the best penalty the risk falls;
* *benign*, $a < 1$ and $n \ll d \ll n^{1/(1-a)}$: the risk falls without a penalty;
* *harmful*, $a < 1$ and $d \gg n^{1/(1-a)}$: the signal is lost, the risk tends to that of predicting 0.

Bias and variance of ridge regression are measured exactly given simulated inputs, for $\nu_j = j^{-2}$ and random
coefficients. They are compared with the deterministic equivalent of `featlab.theory.ridge`, within the margin for
values, and with Tsigler and Bartlett's $B + V$, which holds up to constants: within a factor of three either way,
less than the factor $1/\sigma^2 = 4$ that a V without its factor $\sigma^2$ is off by.

Their inputs are sub-Gaussian with independent coordinates. So the same is asked of coordinates that are signs,
and uniform. In the control the coordinates are signs and each input has a factor besides that all of them
share, of mean square one: with the same covariance, they are independent no more.

The noise passed on without a penalty tends to $a - 1$ times $\sigma^2$; asked is a quarter of $\sigma^2$, where
`theory.ridge.regime` begins to call it kernel. The rate of the tuned risk is $n^{-(p-1)/p}$ for
$\lambda_j \nu_j = j^{-p}$ (Caponnetto and De Vito 2007). The benign risk tends to 0 as slowly as $\kappa \sim
n^{-1/4}$, and the share of the energy $\sum_j \lambda_j \nu_j$ that is learnt in the harmful regime as $1/\kappa
\sim n^{-1/2}$: when n doubles, by factors of 0.84 and 0.71. Asked is 0.9 of both.
"""

from __future__ import annotations

import numpy as np
import xarray as xr

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_least, at_most, equals, not_judged, scales_as, to
from featlab.claims.settings.ridge_inputs import COORDINATES, risks
from featlab.core.validation import real
from featlab.data import LinearRegression, power_law
from featlab.experiment import Experiment
from featlab.networks import TwoLayerLinear
from featlab.objectives import squared
from featlab.probes import at_end, ridge_risk
from featlab.theory import ridge

TARGET = 2.0  # nu_j = j^-2
CONSTANT = 3.0  # of the theorem, in place of those it leaves open
FALLS = 0.9  # when n doubles
PASSED_ON = 0.25  # of the noise, at least, where a penalty is needed
PENALTIES = ("no penalty", "best penalty of the kernel regime")


class Regimes(Claim):
    """The claim of this file."""

    title = "the spectrum of the inputs decides whether interpolation is a kernel method, benign or harmful"
    statement = (
        r"R \asymp \sum_{j \le k} \nu_j \tfrac{(n\lambda + \sum_{i>k} \lambda_i)^2}{n^2 \lambda_j} + "
        r"\sum_{j>k} \nu_j \lambda_j + \sigma^2 \left(\tfrac kn + "
        r"n \tfrac{\sum_{j>k} \lambda_j^2}{(n\lambda + \sum_{j>k} \lambda_j)^2}\right)"
    )
    refuted_if = (
        "a simulated risk differs from its equivalent by more than 5 % or from B + V by a factor of three, or one "
        "of the three regimes is not as the theorem says"
    )
    reference = """@article{tsigler2023benign,
  title   = {Benign Overfitting in Ridge Regression},
  author  = {Tsigler, Alexander and Bartlett, Peter L.},
  journal = {Journal of Machine Learning Research},
  volume  = {24},
  number  = {123},
  year    = {2023}
}"""
    sizes = {
        "tiny": Size(seeds=3, n=(12, 24), harmful=(6, 12)),
        "smoke": Size(seeds=16, n=(40, 80, 160), harmful=(12, 24)),
        "laptop": Size(seeds=128, n=(80, 160, 320), harmful=(16, 32)),
        "full": Size(seeds=160, n=(80, 160, 320, 640), harmful=(16, 32, 64)),
    }
    minutes = 2.0  # a program for every size, and a narrow interval for every cell
    control_changes = "the coordinates of an input share a random factor"
    clauses = {
        "the risk is B + V up to constants": "factor between simulated risk and B + V*",
        "its sharp form, the deterministic equivalent": "simulated risk over the equivalent*",
        "inputs are sub-Gaussian with independent coordinates": "*signs and uniform*",
        "kernel: interpolation passes the noise on": "kernel: share of the noise*",
        "kernel: the best penalty has the rate n^(-(p-1)/p)": "kernel: risk with the best penalty*",
        "benign: the risk falls without a penalty": "benign: risk*",
        "harmful: the signal is lost": "harmful: share of the energy*",
        "the constants of the bounds": not_judged("the theorem leaves them open; a factor of three is allowed"),
    }
    perturb = {"label_noise": to(0.4), "decay": to(1.5), "slow_decay": to(0.4)}

    label_noise: float = real(default=0.5, above=0)  # sigma
    decay: float = real(default=2.0, above=1.25)  # a of the kernel regime
    slow_decay: float = real(default=0.5, above=0, below=2 / 3)  # a of the others: n^3 is beyond n^(1/(1-a))

    def experiment(self, regime: str, n: int) -> Experiment:
        """Ridge regression on inputs of one of the regimes; nothing is trained."""
        spectrum, target = power_law(self._decay(regime)), power_law(TARGET)
        d, noise = _dimension(regime, n), self.label_noise
        return Experiment(
            data=LinearRegression(n=n, d=d, spectrum=spectrum, target=target, label_noise=noise),
            network=TwoLayerLinear(diagonal=True),
            algorithm=GradientDescent(1.0),
            objective=squared,
            probes=[ridge_risk(penalty=self._penalties(n)).on(at_end)],
            steps=0,
            precision=64,
        )

    def typical(self):
        return self.experiment("benign", 100)

    def assumptions(self, experiment):
        n, d = experiment.data.n, experiment.data.d
        return [
            Assumption("d / n: there are more directions than samples", d / n, ">= 1"),
            Assumption("1 / n: the equivalent's relative error is of this order", 1 / n, "<< 1"),
        ]

    def checks(self, lab):
        sizes = {"kernel": lab.size.n, "benign": lab.size.n, "harmful": lab.size.harmful}
        read = {regime: self._read(lab, regime, n) for regime, n in sizes.items()}
        yield equals("simulated risk over the equivalent", self._over(read, ridge.risk), 1)
        yield self._theorem(read)
        others = {regime: self._others(lab, regime, sizes[regime][:1], list(COORDINATES)) for regime in sizes}
        yield self._sharp(others)
        yield self._theorem(others, ", signs and uniform inputs")
        free, best = PENALTIES
        passed_on = read["kernel"].ridge_variance.sel(penalty=free) / self.label_noise**2
        yield at_least("kernel: share of the noise passed on without a penalty", passed_on, PASSED_ON)
        tuned, rate = read["kernel"].ridge_risk.sel(penalty=best), 1 / (self.decay + TARGET) - 1
        yield scales_as("kernel: risk with the best penalty in n", tuned, "n", rate, (0, -1), symbols=("n", "R"))
        yield _falls("benign: risk without a penalty", read["benign"].ridge_risk.sel(penalty=free))
        lost = read["harmful"].ridge_risk.sel(penalty=free)
        energy = [np.sum(np.prod(self._directions("harmful", n), axis=0)) for n in lab.size.harmful]
        yield _falls("harmful: share of the energy that is learnt", 1 - lost / xr.DataArray(energy, {"n": lost.n}))

    def control(self, lab):
        return self._sharp({"kernel": self._others(lab, "kernel", lab.size.n[:1], ["signs"], shared=True)})

    def _read(self, lab, regime, sizes):
        """Bias, variance and risk at each n, without a penalty and with the best one, which differs with n."""
        found = (lab.run(self.experiment, regime=regime, n=[n]) for n in sizes)
        labelled = [one.assign_coords(penalty=list(PENALTIES)) for one in found]
        return xr.concat(labelled, "n", combine_attrs="override")

    def _others(self, lab, regime, sizes, laws, shared=False):
        """The same of inputs that are not Gaussian."""

        def measured(seeds, n, law):
            j = np.arange(1.0, _dimension(regime, n) + 1)
            kinds = law, n, j ** -self._decay(regime), j**-TARGET, self._penalties(n), self.label_noise**2, shared
            found = [risks(np.random.default_rng(seed), *kinds) for seed in seeds]
            return xr.Dataset({"ridge_risk": (["seed", "penalty"], found)}, {"penalty": list(PENALTIES)})

        return lab.measure(measured, setting=self.experiment(regime, sizes[0]), n=sizes, law=laws)

    def _sharp(self, others):
        ratios = self._over(others, ridge.risk)
        return equals("simulated risk over the equivalent, signs and uniform inputs", ratios, 1)

    def _theorem(self, read, words=""):
        """The factor between simulated and stated risk, the larger one over the smaller."""
        ratios = self._over(read, ridge.tsigler_bartlett).items()
        factors = {regime: np.maximum(one, 1 / one) for regime, one in ratios}
        return at_most(f"factor between simulated risk and B + V{words}", factors, CONSTANT)

    def _over(self, read, formula):
        """Simulated risk over that of a formula, by regime."""

        def stated(regime, n):
            spectrum, target, times = self._directions(regime, n)
            noise, penalties = self.label_noise**2, self._penalties(n)
            found = [formula(spectrum, target, n, one, noise, multiplicity=times) for one in penalties]
            return xr.DataArray([one.total for one in found], {"penalty": list(PENALTIES)})

        return {
            regime: one.ridge_risk / xr.concat([stated(regime, n) for n in one.n.values.tolist()], one.n)
            for regime, one in read.items()
        }

    def _directions(self, regime, n):
        """Eigenvalues, variances of the coefficients, multiplicities."""
        j, times = ridge.index_blocks(_dimension(regime, n))
        return j ** -self._decay(regime), j**-TARGET, times

    def _decay(self, regime):
        return self.decay if regime == "kernel" else self.slow_decay

    def _penalties(self, n):
        """None, and the best one of the kernel regime, which the other regimes take too."""
        spectrum, target, times = self._directions("kernel", n)
        return 0.0, ridge.best_penalty(spectrum, target, n, self.label_noise**2, times)


def _dimension(regime: str, n: int) -> int:
    """n^3 is beyond the benign regime, n^1.5 within it."""
    return n**3 if regime == "harmful" else round(n**1.5)


def _falls(name, values):
    """Each value over that at the size before, to the power that makes it one doubling."""
    before, after = values.isel(n=slice(None, -1)), values.isel(n=slice(1, None))
    doublings = np.log2(after.n / before.n.values)
    ratios = (after / before.assign_coords(n=after.n)) ** (1 / doublings)
    return at_most(f"{name}, over that at half the n", ratios, FALLS)
