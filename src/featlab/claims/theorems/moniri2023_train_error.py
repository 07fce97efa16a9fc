r"""Each spike lowers the training error by a known amount: a staircase in the exponent of the step.

Moniri, Lee, Hassani and Dobriban (2023), on training errors. After one step of size $\eta \asymp n^\alpha$,
$\frac{\ell-1}{2\ell} < \alpha < \frac{\ell}{2\ell+2}$, ridge regression on fresh data has a training error
(penalty included) that is lower by $\Delta_\ell$ than with random features: the formula is in
`featlab.theory.one_step`. Linear teachers gain from the first spike only, quadratic ones from the second as
well. Rows here are Gaussian: $m_1'$ counts that they differ in length (derived here), and is $m_1$ for rows of
length one, as the paper has it.

Spikes are infinitely strong in the limit and finite in any simulation, so the theorem is put to the test twice:
with the theorem's own explicit spikes, made strong, and with a real step, whose spikes are as strong as $\eta$
makes them (the same formula with a penalty on the spikes, which tends to $\Delta_\ell$). At n = 1500 a step of
$n^\alpha$ is worth 0.40 to 0.96 of $\Delta_\ell$ by that formula, one of $4 n^\alpha$ 0.97 to 1.02: the latter
is compared with $\Delta_\ell$ itself.

The step is that of the centred network, whose output before training is 0. The head is fitted on fresh data:
fitted on the data of the step, whose labels the learnt direction has already seen, it gains far more, and the
control shows that. One step and a closed form: there is nothing that could be trained too little.
"""

from __future__ import annotations

from featlab.claims import Claim, Size, equals, not_judged
from featlab.claims.settings import one_step as shared
from featlab.claims.settings.spike_gains import CUBIC, Gains
from featlab.core.validation import real

TEACHERS = LINEAR, QUADRATIC, _ = tuple(shared.SETTINGS)
EXPONENTS = (0.15, 0.3)  # of real steps: one and two spikes
LIMITS = (LINEAR, 0.15, 1), (QUADRATIC, 0.3, 2)  # teacher, alpha, spikes
LARGE = 4.0  # a constant with which finite spikes are worth 0.97 and 1.02 of infinite ones, by the formula
MARGIN = 0.08  # relative, around the formula


class TrainError(Claim):
    """The claim of this file."""

    title = "each spike of a gradient step lowers the training error by the theory's amount"
    statement = (
        r"\mathcal{L}_{tr}(F_0) - \mathcal{L}_{tr}(F) \to \Delta_\ell, \qquad "
        r"\Delta_1 = \frac{\psi \lambda c_{\star 1}^4 m_2}{\phi b}, \quad "
        r"\Delta_2 = \Delta_1 + \frac{4 \psi \lambda c_{\star 1}^4 c_{\star 2}^2}{\phi b^2} "
        r"\frac{m_1^2}{2 m_1 + m_1'}"
    )
    refuted_if = "the drop with one or two spikes differs from the formula by more than 8 %"
    reference = shared.MONIRI
    sizes = {
        "tiny": Size(seeds=3, n=60, teachers=2),
        "smoke": Size(seeds=12, n=400, teachers=2),
        "laptop": Size(seeds=110, n=1500, teachers=3),
        "full": Size(seeds=240, n=4000, teachers=3),
    }
    minutes = 5.0  # the scatter between seeds is 15 to 25 %: 110 are needed
    control_changes = "the head is fitted on the data of the step, not on fresh data"

    clauses = {
        "one spike lowers the training error by Delta_1": "drop of the training error with 1 explicit spike*",
        "two spikes lower it by Delta_2": "drop of the training error with 2 explicit spikes*",
        "features after a real step behave like those with spikes": "drop of the training error after a real*",
        "the drop after a real step tends to Delta_l itself": "drop after a step of 4 n^alpha*",
        "three spikes lower it by Delta_3": "drop of the training error with 3 explicit spikes*",
        "four spikes and more": not_judged(
            "the l-th adds no more than the l-th power of cos^2 beta: from the fourth on less than the scatter"
        ),
    }

    penalty: float = real(default=0.02, above=0)  # lambda
    dimensions: float = real(default=shared.DIMENSIONS, above=0)  # d / n
    neurons: float = real(default=shared.NEURONS, above=0)  # N / n

    @property
    def gains(self):
        """The experiments and the formula; test inputs are of no interest here."""
        return Gains("train", self.penalty, self.dimensions, self.neurons, test_inputs=16)

    def typical(self):
        return self.gains.real(1500, "y = H1 + H2/sqrt 2", 0.3)

    def assumptions(self, experiment):
        return [shared.in_proportion(experiment), shared.centred_activation(experiment)]

    def checks(self, lab):
        n, teachers = lab.size.n, TEACHERS[: lab.size.teachers]
        for spikes, words in {1: "1 explicit spike", 2: "2 explicit spikes"}.items():
            drops = self.gains.explicit_drops(lab, n, teachers, spikes)
            yield equals(f"drop of the training error with {words}, over the formula", drops, 1, MARGIN)
        three = self.gains.explicit_drops(lab, n, [CUBIC], 3)
        yield equals("drop of the training error with 3 explicit spikes, over the formula", three, 1, MARGIN)
        yield self._after_a_step(self.gains.real_drops(lab, n, teachers, EXPONENTS))
        large = {
            name: self.gains.over_the_limit(lab, n, name, alpha, spikes, LARGE) for name, alpha, spikes in LIMITS
        }
        yield equals("drop after a step of 4 n^alpha, over Delta_l", large, 1, MARGIN)

    def control(self, lab):
        drops = self.gains.real_drops(lab, lab.size.n, TEACHERS[:1], EXPONENTS, on_fresh_data=False)
        return self._after_a_step(drops)

    def _after_a_step(self, drops):
        return equals(
            "drop of the training error after a real step, over the formula for its spikes", drops, 1, MARGIN
        )
