r"""Each spike lowers the test error by a known amount, by the corrected formula, for any number of spikes.

Moniri, Lee, Hassani and Dobriban (2023), for one and two spikes. The test error follows from the
training error by leaving one sample out: $\mathcal{L}_{te} = -\partial_\lambda Q\, (\phi/\psi m_1)^2$ with $Q =
\mathcal{L}_{tr}/\lambda$, noise included, for every $\ell$. So one spike is worth

$$\Lambda_1 = \frac{\phi}{\psi m_1^2} \frac{c_{\star 1}^4}{b} (-\partial_\lambda m_2)$$

and a second one $\frac{\phi}{\psi m_1^2} \frac{4 c_{\star 1}^4 c_{\star 2}^2}{3 b^2} (-\partial_\lambda m_1)$
more. Slides of the talk have these without the factor $\phi / (\psi m_1^2)$ or with a part of it; their values
exceed the whole test error many times over.

A real step of $\alpha = 0.15$ is judged by the formula for its spikes. At $\alpha = 0.3$ the gain stays 4 to 9
% below it for n from 2000 to 4000 (the curvature of the activation and the part of the gradient beyond rank
one cost some, and fall as $n^{2\alpha - 1}$): there the staircase is judged instead. A linear teacher gains no
more than $\Lambda_1$, a quadratic one does.
"""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from featlab.claims import _one_step as shared
from featlab.claims._claim import Size
from featlab.claims._judge import bounded_by, exceeds
from featlab.claims.moniri2023_train_error import TrainError


class TestError(TrainError):
    """The claim of this file."""

    __test__ = False  # no test, whatever a test runner may think of its name

    title = "each spike of a gradient step lowers the test error by the theory's amount"
    statement = (
        r"\mathcal{L}_{te}(F_0) - \mathcal{L}_{te}(F) \to \Lambda_\ell, \qquad "
        r"\Lambda_1 = \frac{\phi}{\psi m_1^2} \frac{c_{\star 1}^4}{b} (-\partial_\lambda m_2)"
    )
    refuted_if = "the gain with one or two spikes differs from the formula by more than 10 %"
    sizes = {
        "tiny": Size(seeds=3, n=(60,), teachers=(2,)),
        "smoke": Size(seeds=12, n=(400,), teachers=(2,)),
        "laptop": Size(seeds=90, n=(1500,), teachers=(3,)),
        "full": Size(seeds=240, n=(4000,), teachers=(3,)),
    }
    number_of_checks = 5

    which: ClassVar[int] = 1
    error: ClassVar[str] = "test error"
    margin: ClassVar[float] = 0.1
    test_inputs: ClassVar[int] = 4000
    exponents: ClassVar[tuple[float, ...]] = (0.15,)

    def checks(self, lab):
        yield from super().checks(lab)
        (n,) = lab.size.n
        linear, quadratic, _ = shared.SETTINGS
        gains = {name: self._in_first_steps(lab, n, name) for name in (linear, quadratic)}
        yield bounded_by(
            "gain of a linear teacher at alpha = 0.3, in steps of one spike", gains[linear], 1 + self.margin
        )
        yield exceeds(
            "gain of a quadratic teacher at alpha = 0.3, in steps of one spike",
            gains[quadratic],
            1.0,
            by=self.margin,
        )

    def _in_first_steps(self, lab, n, name):
        before = self._explicit(lab, n, name)[:, 0]
        after = self._read(lab.endings(self._step(n, name, 0.3)))[:, 0]
        return np.array((before - after) / self._gain(n, name, 1))
