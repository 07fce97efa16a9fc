"""Plain text of claims as HTML: paragraphs with formulas, names with their Greek letters, numbers.

Everything is escaped before anything is added: these texts may come from a user's file.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from featlab.atlas.formulas import breakable, lines, mathml
from featlab.core.validation import InputError
from featlab.plots._forest import two_sided
from featlab.plots._scalings import as_fraction

if TYPE_CHECKING:
    from markupsafe import Markup

GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "epsilon": "ε", "eta": "η", "theta": "θ", "kappa": "κ", "lambda": "λ",
    "mu": "μ", "xi": "ξ", "rho": "ρ", "sigma": "σ", "tau": "τ", "phi": "φ", "psi": "ψ",
}  # fmt: skip
EMPHASIS = r"(?<![\w*|)])\*([^*\s][^*]*)\*(?!\w)"  # the star of SNR* or |mu|* begins none
_INLINE = re.compile(rf"(?<!\\)\$(?!\$)(.+?)(?<!\\)\$|`([^`]+)`|{EMPHASIS}", re.DOTALL)
_BLOCK = re.compile(r"(?<!\\)\$\$(.+?)\$\$", re.DOTALL)
_GREEK_WORD = re.compile(rf"(?<![A-Za-z\\&])({'|'.join(GREEK)})(?![A-Za-z0-9])")
_RAISED = re.compile(r"\^(-?)(?:\(([^()]*)\)|(\w+(?:\.\d+)?))")
# What plain text writes for a sign, and what a typesetter would, in this order.
_SIGNS: list[tuple[str, str]] = [
    (r"-&gt;", "→"),
    (r"&lt;&lt;", "≪"),
    (r"&gt;&gt;", "≫"),
    (r"&lt;=", "≤"),
    (r"&gt;=", "≥"),
    (r"\bsqrt ?(?=[a-zA-Z(])", "√"),
    (r"(?<![\w.)\]|>])-(?=[\d.√(|]|log\b|[A-Za-z]\b)", "−"),
    (r"(?<![A-Za-z])([A-Za-zα-ω])_([A-Za-z0-9]{1,2})(?![A-Za-z0-9_])", r"\1<sub>\2</sub>"),
]


def typeset(text: Any) -> Markup:
    """A short text as a typesetter would set it: sigma_0 with its letter, n^2 raised."""
    from markupsafe import Markup, escape

    done = _GREEK_WORD.sub(lambda one: GREEK[one[1]], str(escape(str(text))))
    done = _RAISED.sub(_raised, done)
    for pattern, replacement in _SIGNS:
        done = re.sub(pattern, replacement, done)
    return Markup(done)


def _raised(found: re.Match[str]) -> str:
    sign, inside, word = found.groups()
    raised = word or (f"({inside})" if sign else inside)
    return f"<sup>{sign}{raised}</sup>".replace("-", "−")


def paragraphs(text: str) -> Markup:
    """Text with `$...$`, `$$...$$`, backticks and stars; an empty line begins a new paragraph or list."""
    from markupsafe import Markup

    parts = []
    for k, piece in enumerate(_BLOCK.split(text)):
        if k % 2:
            parts.append(formula(piece))
        else:
            parts += [_paragraph(one.strip()) for one in re.split(r"\n\s*\n", piece) if one.strip()]
    return Markup("\n").join(parts)


def _paragraph(text: str) -> Markup:
    """Lines that begin with a star are items of a list."""
    from markupsafe import Markup

    before, *items = re.split(r"(?:^|\n)\* ", text)
    done = Markup("<p>{}</p>").format(_line(before)) if before.strip() else Markup("")
    if items:
        done += Markup("<ul>{}</ul>").format(
            Markup("").join(Markup("<li>{}</li>").format(_line(i)) for i in items)
        )
    return done


def sentence(text: str) -> Markup:
    """One line with `$...$` and backticks."""
    return _line(text)


def formula(latex: str) -> Markup:
    """A formula on lines of its own, or its source where it cannot be shown."""
    from markupsafe import Markup

    try:
        parts = [mathml(part, block=True) for part in lines(latex)]
    except InputError:
        return Markup('<div class="formula"><code>{}</code></div>').format(latex.strip())
    return Markup('<div class="formula">{}</div>').format(Markup("".join(f"<div>{part}</div>" for part in parts)))


def _line(text: str) -> Markup:
    from markupsafe import Markup

    done, last = Markup(""), 0
    for found in _INLINE.finditer(text):
        done += typeset(_plain(text[last : found.start()]))
        if found[3] is not None:
            done += Markup("<em>{}</em>").format(typeset(_plain(found[3])))
        else:
            done += Markup("<code>{}</code>").format(found[2]) if found[1] is None else _inline(found[1])
        last = found.end()
    return done + typeset(_plain(text[last:]))


def _plain(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace(r"\$", "$")


def _inline(latex: str) -> Markup:
    from markupsafe import Markup

    try:
        return Markup(breakable(latex))
    except InputError:
        return Markup("<code>{}</code>").format(latex)


def number(value: Any, digits: int = 4) -> Markup:
    """A number for reading: a true minus sign, a power of ten where it is very large or small."""
    from markupsafe import Markup

    if value is None or not math.isfinite(float(value)):
        return Markup("–")
    mantissa, _, power = f"{float(value):.{digits}g}".replace("-", "−").partition("e")
    if not power:
        return Markup(mantissa)
    exponent = power.replace("+", "").lstrip("0") if "−" not in power else "−" + power[1:].lstrip("0")
    return Markup(f"{mantissa}·10<sup>{exponent}</sup>")


def interval(check: Any) -> Markup:
    """The 95 % interval of a check's record."""
    from markupsafe import Markup

    if check.get("low") is None or check.get("high") is None:
        return Markup("–")
    return Markup("[{}, {}]").format(number(check["low"]), number(check["high"]))


def allowed(check: Any) -> Markup:
    """What theory allows, from a check's record."""
    from markupsafe import Markup

    if two_sided(check):
        theory = as_fraction(float(check["expected"])).replace("-", "−")
        return Markup("{} ± {}").format(theory, number(check["margin"], 2))
    if check.get("lower") is None:
        return Markup("≤ {}").format(number(check["upper"], 3))
    return Markup("≥ {}").format(number(check["lower"], 3))
