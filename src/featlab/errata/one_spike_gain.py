r"""The gain in test error from one spike carries the factor $\phi / (\psi m_1^2)$.

Leaving one sample out turns residuals into test errors by $(\mathrm{tr} R)^{-2} = (\phi / \psi m_1)^2$, and the
gain is the derivative of $\Delta_1 / \lambda$ times that. Without the factor the gain exceeds the whole test
error. Ridge regression is made on the talk's features, rows $w_j \sim \mathcal{N}(0, I/d)$, with one strong
explicit spike and without it, and the errors are measured on fresh inputs.
"""

from __future__ import annotations

from featlab.claims import equals
from featlab.errata import _one_step, _sources
from featlab.errata._erratum import Erratum, over_seeds

SETTING = _one_step.Ridge(phi=0.5, ratio=0.4, quadratic=0.0, noise=1.0, penalty=1.0)  # the talk's setting 1


class OneSpikeGain(Erratum):
    """The erratum of this file."""

    title = "one spike lowers the test error by the printed amount times phi over psi m1 squared"
    source = (
        "“A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks” (E. "
        "Dobriban, Lausanne 2024), slide “Special cases of test error”, equation (3)"
    )
    printed = (
        r"\Lambda_1 := \frac{c_{\star,1}^4}{\left[c_{\star,1}^2 + \phi(c_{\star}^2 + "
        r"\sigma_{\varepsilon}^2)\right]} \left(-\frac{\partial m_2}{\partial \lambda}\right)"
    )
    corrected = (
        r"\Lambda_1 := \frac{\phi}{\psi m_1^2} \frac{c_{\star,1}^4}{\left[c_{\star,1}^2 + \phi(c_{\star}^2 + "
        r"\sigma_{\varepsilon}^2)\right]} \left(-\frac{\partial m_2}{\partial \lambda}\right)"
    )
    derivation = (
        r"$\mathcal{L}_{te} = -\partial_\lambda(\mathcal{L}_{tr}/\lambda) \, (\phi/\psi m_1)^2$, and "
        r"$\Delta_1/\lambda = \frac{\psi}{\phi} \frac{c_{\star,1}^4 m_2}{b}$ of equation (1), $b$ being the "
        r"bracket."
    )
    reference = _sources.ONE_STEP
    sizes = _one_step.SIZES_OF_GAINS
    minutes = 0.3

    def judge(self, lab, *, printed):
        errors = over_seeds(lab, _one_step.errors_on_fresh_inputs, lab.size.n, SETTING, False)
        gains = errors[0] - errors[1]
        yield equals("gain in test error over the formula", gains / formula(printed), 1.0)


def formula(printed: bool) -> float:
    r"""$\Lambda_1$, as printed or corrected."""
    m = SETTING.traces()
    factor = 1.0 if printed else SETTING.phi / (SETTING.psi * m.m1**2)
    return float(factor / SETTING.bracket * -m.dm2)  # the teacher's c_1 is 1
