r"""Each spike lowers the training error by a known amount: a staircase in the exponent of the step.

Moniri, Lee, Hassani and Dobriban (2023), on training errors. After one step of size $\eta \asymp
n^\alpha$, $\frac{\ell-1}{2\ell} < \alpha < \frac{\ell}{2\ell+2}$, ridge regression on fresh data has a training
error (penalty included) that is lower by $\Delta_\ell$ than with random features: the formula is in
`featlab.theory.one_step`. Linear teachers gain from the first spike only, quadratic ones from the second as well.

Spikes are infinitely strong in the limit and finite in any simulation, so the theorem is put to the test twice:
with the theorem's own explicit spikes, made strong, and with a real step, whose spikes are as strong as
$\eta$ makes them (the same formula with a penalty on the spikes, which tends to $\Delta_\ell$).

The step is that of the centred network, whose output before training is 0. The head is fitted on fresh data:
fitted on the data of the step, whose labels the learnt direction has already seen, it gains far more, and the
control shows that.
"""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from featlab.algorithms import GiantStep
from featlab.claims import _one_step as shared
from featlab.claims._claim import Claim, Size
from featlab.claims._judge import agrees
from featlab.fields import real
from featlab.probes import ridge_errors
from featlab.theory import one_step, random_features

STRONG = 300.0  # a step that makes the theorem's explicit spikes 30 times and more as long as the bulk
SPIKES_OF_A_STEP = 4  # beyond, they are too weak to count at these sizes


class TrainError(Claim):
    """The claim of this file."""

    title = "each spike of a gradient step lowers the training error by the theory's amount"
    statement = (
        r"\mathcal{L}_{tr}(F_0) - \mathcal{L}_{tr}(F) \to \Delta_\ell, \qquad "
        r"\Delta_1 = \frac{\psi \lambda c_{\star 1}^4 m_2}{\phi b}, \quad "
        r"\Delta_2 = \Delta_1 + \frac{4 \psi \lambda c_{\star 1}^4 c_{\star 2}^2 m_1}{3 \phi b^2}"
    )
    refuted_if = "the drop with one or two spikes differs from the formula by more than 8 %"
    reference = shared.MONIRI
    sizes = {
        "tiny": Size(seeds=3, n=(60,), teachers=(2,)),
        "smoke": Size(seeds=12, n=(400,), teachers=(2,)),
        "laptop": Size(seeds=80, n=(1500,), teachers=(3,)),
        "full": Size(seeds=240, n=(4000,), teachers=(3,)),
    }
    number_of_checks = 3
    minutes = 3.0  # the scatter between seeds is 15 %: many are needed
    control_changes = "the head is fitted on the data of the step, not on fresh data"

    penalty: float = real(default=0.02, above=0)  # lambda
    dimensions: float = real(default=shared.DIMENSIONS, above=0)  # d / n
    neurons: float = real(default=shared.NEURONS, above=0)  # N / n

    which: ClassVar[int] = 0  # of (training error, test error)
    error: ClassVar[str] = "training error"
    margin: ClassVar[float] = 0.08
    test_inputs: ClassVar[int] = 16  # of no interest here
    exponents: ClassVar[tuple[float, ...]] = (0.15, 0.3)  # one and two spikes

    def typical(self):
        return self._step(1500, "y = H1 + H2/sqrt 2", 0.3)

    def assumptions(self, experiment):
        return [shared.in_proportion(experiment), shared.centred_activation(experiment)]

    def checks(self, lab):
        (n,), (teachers,) = lab.size.n, lab.size.teachers
        explicit = {name: self._explicit(lab, n, name) for name in list(shared.SETTINGS)[:teachers]}
        for spikes in (1, 2):
            ratios = [
                (read[:, 0] - read[:, spikes]) / self._gain(n, name, spikes) for name, read in explicit.items()
            ]
            name = f"drop of the {self.error} with {spikes} explicit spike{'s' * (spikes > 1)}, over the formula"
            yield agrees(name, np.array(ratios), 1.0, self.margin, cells=tuple(explicit))
        yield self._real_steps(lab, n, {name: read[:, 0] for name, read in explicit.items()})

    def control(self, lab):
        (n,), first = lab.size.n, next(iter(shared.SETTINGS))
        before = lab.endings(self._step(n, first, self.exponents[0], holdout=0, steps=0))
        return self._real_steps(lab, n, {first: self._read(before)[:, 0]}, holdout=0)

    def _explicit(self, lab, n, name):
        """Errors with 0, 1 and 2 explicit spikes, for each seed."""
        probe = ridge_errors(penalty=(self.penalty,), spikes=(0, 1, 2), count=self.test_inputs)
        experiment = self._stated(n, name, GiantStep(eta=STRONG), probe, steps=0)
        return self._read(lab.endings(experiment, remember=name))[:, 0]

    def _real_steps(self, lab, n, untrained, holdout=1):
        ratios, cells, trained = [], [], 1.0
        for name in untrained:
            for alpha in self.exponents:
                read = lab.endings(self._step(n, name, alpha, holdout))
                trained = min(trained, float(read["trained"].mean()))
                law = self._gain(n, name, SPIKES_OF_A_STEP, n**alpha)
                ratios.append((untrained[name] - self._read(read)[:, 0]) / law)
                cells.append(f"{name}, alpha = {alpha:g}")
        name = f"drop of the {self.error} after a real step, over the formula for its spikes"
        return agrees(name, np.array(ratios), 1.0, self.margin, cells=tuple(cells), trained=trained)

    def _step(self, n, name, alpha, holdout=1, steps=1):
        probe = ridge_errors(penalty=(self.penalty,), holdout=holdout, count=self.test_inputs)
        return self._stated(n, name, GiantStep(alpha=alpha), probe, steps)

    def _gain(self, n, name, spikes, eta=None):
        """The theory's drop; with infinitely strong spikes unless the step is given."""
        experiment = self._step(n, name, 0.3)
        activation = random_features.Activation.of(shared.STUDENT)
        step = eta and one_step.Step.of(shared.STUDENT, eta, experiment.network.vectors())
        teacher = shared.SETTINGS[name].teacher
        return one_step.gains(*shared.proportions(experiment), self.penalty, activation, teacher, spikes, step)[
            self.which
        ]

    def _stated(self, n, name, algorithm, probe, steps):
        sizes: dict[str, Any] = {"dimensions": self.dimensions, "neurons": self.neurons}
        return shared.stated(n, shared.SETTINGS[name], algorithm, [probe], steps=steps, **sizes)

    def _read(self, read):
        return read[("ridge_train_error", "ridge_test_error")[self.which]]
