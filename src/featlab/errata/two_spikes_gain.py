r"""What a second spike adds to the gain in test error carries the factor $\phi/\psi$.

The term has $m_1^{-2}$ already; the same derivation as for one spike, by leaving one sample out, gives $\phi /
(\psi m_1^2)$. It is judged with the first term as corrected. Ridge regression is made on features with two
strong explicit spikes and without them, and the errors on fresh inputs are computed exactly. Both formulas are for
rows of length one: Gaussian rows add a term of their own (`theory.one_step`), which these features do not have.
"""

from __future__ import annotations

from featlab.claims import equals
from featlab.errata import _one_step, _sources
from featlab.errata._erratum import Erratum, over_seeds
from featlab.theory import one_step, random_features

QUADRATIC, NOISE = 0.5**0.5, 0.0  # the talk's setting 2
PENALTY = 1.0


class TwoSpikesGain(Erratum):
    """The erratum of this file."""

    title = "a second spike lowers the test error by the printed amount times phi over psi"
    source = (
        "“A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks” (E. "
        "Dobriban, Lausanne 2024), slide “Special cases of test error”, equation (4), second term"
    )
    printed = (
        r"\Lambda_1 + \frac{4c_{\star,1}^4 c_{\star,2}^2}{3[c_{\star,1}^2 + \phi(c_{\star}^2 + "
        r"\sigma_{\varepsilon}^2)]^2 m_1^2} \left(-\frac{\partial m_1}{\partial \lambda}\right)"
    )
    corrected = (
        r"\Lambda_1 + \frac{\phi}{\psi} \frac{4c_{\star,1}^4 c_{\star,2}^2}{3[c_{\star,1}^2 + \phi(c_{\star}^2 + "
        r"\sigma_{\varepsilon}^2)]^2 m_1^2} \left(-\frac{\partial m_1}{\partial \lambda}\right)"
    )
    derivation = (
        r"$\mathcal{L}_{te} = -\partial_\lambda(\mathcal{L}_{tr}/\lambda) \, (\phi/\psi m_1)^2$, applied to the "
        r"second term of equation (2) over $\lambda$, $\frac{\psi}{\phi} \frac{4 c_{\star,1}^4 c_{\star,2}^2 "
        r"m_1}{3 b^2}$."
    )
    reference = _sources.ONE_STEP
    sizes = _one_step.SIZES_OF_GAINS
    minutes = 0.3

    def judge(self, lab, *, printed):
        errors = over_seeds(lab, _one_step.errors_on_fresh_inputs, lab.size.n, QUADRATIC, NOISE, PENALTY)
        gains = errors[0] - errors[2]
        yield equals("gain in test error over the formula", gains / formula(printed), 1.0)


def formula(printed: bool) -> float:
    """The gain with two spikes: its second term as printed or corrected, its first as corrected."""
    m = random_features.traces(_one_step.PHI, _one_step.PSI, PENALTY, _one_step.STUDENT)
    bracket = one_step.squared_length(_one_step.PHI, _one_step.teacher(QUADRATIC, NOISE))
    ratio = _one_step.PHI / _one_step.PSI
    one = ratio / m.m1**2 / bracket * -m.dm2  # the teacher's c_1 is 1
    two = 4 * QUADRATIC**2 / (3 * bracket**2 * m.m1**2) * -m.dm1
    return float(one + (1.0 if printed else ratio) * two)
