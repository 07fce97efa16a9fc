r"""What a second spike adds to the gain in test error carries the factor $\phi/\psi$, and lengths of rows count.

The term has $m_1^{-2}$ already; leaving one sample out, as for one spike, gives $\phi / (\psi m_1^2)$. The printed
$m_1/3$ is moreover that of rows of length one. The talk's rows, $w_j \sim \mathcal{N}(0, I/d)$, differ in length,
so that the untrained features hold a rank-one piece along the constant, and a part of what $x^2$ brings is
explained without the spike (derived here; see `theory.one_step`). Ridge regression is made on features
$\sigma(\tilde X W_0^\top)$ with one and with two strong explicit spikes, for rows of both kinds, and what the
second spike adds is measured on fresh inputs.
"""

from __future__ import annotations

from featlab.claims import equals
from featlab.errata import _one_step, _sources
from featlab.errata._erratum import Erratum, over_seeds

SETTING = _one_step.Ridge(phi=0.25, ratio=0.5, quadratic=0.5**0.5, noise=0.0, penalty=0.3)  # the talk's setting 2
ROWS = {"rows N(0, I/d)": False, "rows of length one": True}


class TwoSpikesGain(Erratum):
    """The erratum of this file."""

    title = (
        "a second spike lowers the test error by phi over psi times the printed amount, and by more where rows "
        "differ in length"
    )
    source = (
        "“A Theory of Non-Linear Feature Learning with One Gradient Step in Two-Layer Neural Networks” (E. "
        "Dobriban, Lausanne 2024), slide “Special cases of test error”, equation (4), second term"
    )
    printed = (
        r"\Lambda_1 + \frac{4c_{\star,1}^4 c_{\star,2}^2}{3[c_{\star,1}^2 + \phi(c_{\star}^2 + "
        r"\sigma_{\varepsilon}^2)]^2 m_1^2} \left(-\frac{\partial m_1}{\partial \lambda}\right)"
    )
    corrected = (
        r"\Lambda_1 + \frac{\phi}{\psi} \frac{4c_{\star,1}^4 c_{\star,2}^2}{[c_{\star,1}^2 + \phi(c_{\star}^2 + "
        r"\sigma_{\varepsilon}^2)]^2 m_1^2} \left(-\frac{\partial}{\partial \lambda} \frac{m_1^2}{2 m_1 + "
        r"m_1'}\right), \qquad m_1' = \frac{m_1}{1 + 2 c_2^2 t m_1 / \phi} \text{ for rows } \mathcal{N}(0, I/d), "
        r"\qquad m_1' = m_1 \text{ for rows of length one}"
    )
    derivation = (
        r"$\mathcal{L}_{te} = -\partial_\lambda(\mathcal{L}_{tr}/\lambda) \, (\phi/\psi m_1)^2$, applied to the "
        r"second term of equation (2) over $\lambda$, $\frac{\psi}{\phi} \frac{4 c_{\star,1}^4 c_{\star,2}^2 "
        r"m_1}{3 b^2}$, whose 3 is 2 from $H_2$ and 1 from the constant in $x^2$; lengths $|w_j|^2 = 1 + "
        r"\delta_j$ add $1 (c_2 \delta)^\top$ to the features, of squared length $2 c_2^2/\psi$ over $n$, which "
        r"lowers the weight of the constant from $m_1$ to $m_1'$, with $t = 1 - \frac{\psi}{\phi} (1 - \lambda "
        r"\frac{\psi}{\phi} m_1)$."
    )
    reference = _sources.ONE_STEP
    sizes = _one_step.SIZES_OF_GAINS
    minutes = 0.5

    def judge(self, lab, *, printed):
        cells = {}
        for rows, unit in ROWS.items():
            errors = over_seeds(lab, _one_step.errors_on_fresh_inputs, lab.size.n, SETTING, unit)
            cells[rows] = (errors[1] - errors[2]) / formula(printed, unit)
        yield equals("what the second spike adds to the gain over the formula", cells, 1.0)


def formula(printed: bool, unit_rows: bool) -> float:
    """What the second spike adds, as printed or corrected."""
    m, ratio = SETTING.traces(), SETTING.phi / SETTING.psi
    common = 4 * SETTING.quadratic**2 / (SETTING.bracket**2 * m.m1**2)  # the teacher's c_1 is 1
    if printed:
        return float(common / 3 * -m.dm1)
    shift = 1e-4 * SETTING.penalty
    ends = [_weight(SETTING.penalty + sign * shift, unit_rows) for sign in (1, -1)]
    return float(ratio * common * -(ends[0] - ends[1]) / (2 * shift))


def _weight(penalty: float, unit_rows: bool) -> float:
    r"""$m_1^2 / (2 m_1 + m_1')$."""
    m1, ratio = SETTING.traces(penalty).m1, SETTING.phi / SETTING.psi
    free = 1 - (1 - penalty * m1 / ratio) / ratio  # t
    lengths = 0.0 if unit_rows else 2 * _one_step.COEFFICIENTS[2] ** 2 / SETTING.phi
    constant = m1 / (1 + lengths * free * m1)  # m_1'
    return float(m1**2 / (2 * m1 + constant))
