r"""The criterion with degrees of freedom bounds the risk over a family of metrics, and not over all of them.

K. Suzuki and T. Suzuki (2024): $\bar R(W) \lesssim R(W) - \sigma^2$, with $\bar R$ the error on fresh inputs,
"uniformly over $W$". The talk does not say over which W, and the two readings part ways: for W that were fixed
before the inputs were seen it holds, with constants that are derived here; for all W it does not.

On the training inputs it is exact, in expectation and with constant 1, once $\sigma'^2 \geq 2\sigma^2$: with
the smoother $H$, $(I - H)^2 \leq I - H$ and $H^2 \leq H$. For a $W$ that is not chosen by looking at the
inputs the deterministic equivalent of both sides gives a constant too,

$$\bar R(W) \leq \frac{R(W) - \sigma^2}{(1 - \mathrm{df}/n)^2}, \qquad \mathrm{df} = \mathrm{tr} H,$$

since with $s_j = \lambda_j/(\lambda_j + \kappa)$ and $\mathrm{df} = \sum_j s_j$ they are $E_0 [\sum_j (1 -
s_j)^2 \lambda_j \nu_j + \frac{\sigma^2}{n} \sum_j s_j^2]$, $E_0^{-1} = 1 - \frac1n \sum_j s_j^2$, and $(1 -
\frac{\mathrm{df}}{n}) \sum_j (1 - s_j) \lambda_j \nu_j + \frac{\sigma^2}{n} \mathrm{df}$ at $\sigma'^2 =
2\sigma^2$.

Measured over a family of first layers, $W = \mathrm{diag}(j^{-p})$ with several $p$ and penalties: both bounds,
in every cell; and that the member with the least criterion has a risk within a factor 2 of the least in the
family, 2 being what the criterion of the best member can lose ($1 - s$ against $(1 - s)^2$, $s$ against $s^2$
where $s = \frac12$). That it fails for all W is measured at the unrestricted minimiser of the criterion, a hard
threshold on the training inputs (`suzuki2024_metric`), in the paper's misaligned and harmful settings: its risk
is above the second bound. The control takes $\sigma'^2 = \frac32 \sigma^2$, below the 2 that the first bound
needs. Nothing is trained: the first layers are given.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from featlab.algorithms import GradientDescent
from featlab.claims import Assumption, Claim, Size, at_least, at_most, not_judged
from featlab.claims.settings.metric import EXAMPLES, REFERENCE, ManyTasks
from featlab.core.validation import real
from featlab.data import LinearRegression, power_law
from featlab.experiment import Experiment
from featlab.networks import TwoLayerLinear
from featlab.objectives import ProfileRidge
from featlab.probes import at_end, criterion, degrees_of_freedom, geometric, ridge_risk, train_loss

DECAYS = (0.0, 0.25, 0.5, 0.75, 1.0)  # p
FACTORS = (1e-3, 1e-2, 0.1, 1.0, 10.0)  # of the penalty
ENOUGH, TOO_LITTLE = 2.0, 1.5  # sigma'^2 / sigma^2
LOST = 2.0  # the factor that the criterion of the best member can lose
FAMILY = ["p", "lambda"]


class Risk(Claim):
    """The claim of this file."""

    title = (
        "the criterion with degrees of freedom bounds the risk over a family of metrics, and not over all of them"
    )
    statement = (
        r"\sigma'^2 \geq 2\sigma^2, \ W \text{ fixed before the inputs}: \quad "
        r"\bar R_{\text{in}}(W) \leq R(W) - \sigma^2, \quad "
        r"\bar R(W) \leq \frac{R(W) - \sigma^2}{(1 - \mathrm{df}/n)^2}; \qquad "
        r"\hat W = \arg\min_W R(W): \quad \bar R(\hat W) > \frac{R(\hat W) - \sigma^2}{(1 - \mathrm{df}/n)^2}"
    )
    refuted_if = (
        "a member of the family has a risk above its bound, the one with the least criterion is no good, or the "
        "unrestricted minimiser keeps to the bound"
    )
    reference = REFERENCE
    sizes = {
        "tiny": Size(seeds=3, n=10, tasks=20, fooled=6),
        "smoke": Size(seeds=6, n=50, tasks=200, fooled=16),
        "laptop": Size(seeds=24, n=100, tasks=400, fooled=24),
        "full": Size(seeds=48, n=200, tasks=800, fooled=24),
    }
    minutes = 1.0
    control_changes = "the weight of the degrees of freedom is 1.5 s^2, not 2"
    clauses = {
        "on the training inputs R(W) - s^2 bounds the risk, with constant 1": "(risk on the training inputs*",
        "on fresh inputs it does, up to (1 - df/n)^-2, for a family of W that are fixed before the inputs": (
            "((1 - df/n)^2 risk - (R - s^2)) / s^2"
        ),
        "in the family the least criterion finds a W of small risk": "risk at the least criterion*",
        "over all W it does not: the minimiser of R has a risk above the bound": "*of the unrestricted minimiser",
        "the bound as the paper has it, with the constants and the class of W of its theorem": not_judged(
            "the talk prints neither; the constants judged here are derived"
        ),
    }

    penalty: float = real(default=0.1, above=0)  # lambda, in the middle of those tried
    dimensions: float = real(default=10.0, above=1)  # d / n
    noise: float = real(default=0.5, above=0)  # sigma^2

    def experiment(self, n, tasks, p, probes=None, record=at_end, steps=0, enough=ENOUGH):
        """W = diag(j^-p), read for all penalties."""
        sigma, along = float(np.sqrt(self.noise)), {"penalty": tuple(self.penalty * factor for factor in FACTORS)}
        dof = enough * sigma**2
        return Experiment(
            data=LinearRegression(
                n=n, d=round(self.dimensions * n), spectrum=power_law(1), target=power_law(1), tasks=tasks,
                label_noise=sigma,
            ),
            network=TwoLayerLinear(diagonal=True, decay=p),
            objective=ProfileRidge(penalty=self.penalty, dof=dof),
            algorithm=GradientDescent(0.1),
            probes=probes or [ridge_risk(**along), degrees_of_freedom(**along), criterion(dof=dof, **along)],
            steps=steps,
            record=record,
            precision=64,
        )  # fmt: skip

    def typical(self):
        return self.experiment(100, 400, DECAYS[0])

    def scene(self):
        return self.experiment(20, 50, DECAYS[0], [train_loss], geometric(80), 400)

    def assumptions(self, experiment: Any):
        data = experiment.data
        return [
            Assumption("d / n (inputs are independent)", data.d / data.n, ">= 1"),
            Assumption("s'^2 / (2 s^2)", experiment.objective.dof / (2 * data.label_noise**2), ">= 1"),
        ]

    def checks(self, lab):
        family = self._family(lab)
        yield self._inside(family)
        gap = ((1 - family.freedom) ** 2 * family.ridge_risk - family.criterion) / self._noise + 1
        yield at_most("((1 - df/n)^2 risk - (R - s^2)) / s^2", gap, 0)
        chosen = family.criterion == family.criterion.min(FAMILY)
        risk = family.ridge_risk
        lost = risk.where(chosen).min(FAMILY) / risk.min(FAMILY)
        yield at_most("risk at the least criterion, over the least in the family", lost, LOST)
        fooled = lab.measure(self._unrestricted, n=lab.size.fooled, example=("misaligned", "harmful"))
        yield at_least("((1 - df/n)^2 risk - (R - s^2)) / s^2 of the unrestricted minimiser", fooled.gap, 0)

    def control(self, lab):
        return self._inside(self._family(lab, TOO_LITTLE))

    def _inside(self, family):
        inside = family.in_sample_bias + family.in_sample_variance
        gap = (inside - family.criterion) / self._noise + 1
        return at_most("(risk on the training inputs - (R - s^2)) / s^2", gap, 0)

    @property
    def _noise(self) -> float:
        """sigma^2, as the square of the experiments' sigma."""
        return float(np.sqrt(self.noise)) ** 2

    def _family(self, lab, enough=ENOUGH):
        """What was read of every member, and its degrees of freedom over n."""
        size = {"n": lab.size.n, "tasks": lab.size.tasks, "enough": enough}
        runs = lab.run(self.experiment, p=DECAYS, **size).rename(penalty="lambda")
        return runs.assign(freedom=runs.degrees_of_freedom / lab.size.n)

    def _unrestricted(self, seeds, n, example):
        """How far the risk exceeds its bound at the W with the least criterion of all, for many tasks."""
        setting = EXAMPLES[example]
        j = np.arange(1, n**setting.growth + 1)
        spectrum, target = setting.spectrum(n)(j), setting.target(n)(j)
        found = []
        for seed in seeds:
            x = np.random.default_rng(seed).standard_normal((n, len(j))) * np.sqrt(spectrum)
            many = ManyTasks(x, target, noise=self._noise, excess=ENOUGH)
            free = 1 - many.kept().shape[1] / n  # 1 - df/n
            found.append((free**2 * many.risk_at_the_threshold(spectrum) - many.least) / self._noise)
        return {"gap": found}
