r"""LaTeX to MathML, so that a page shows formulas without a script and without a request.

latex2mathml translates, and is silently wrong at times: letters of `\mathbb E` lose their style in a browser,
`\frac{a}` lacks its denominator, `\text{<b>}` is not escaped. What can be mended is mended here, and spaces are
set as TeX sets them. The rest is refused: letters, digits and Greek letters of both sides are counted.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator
from xml.etree import ElementTree

from featlab.core.validation import InputError

THIN = "0.167em"
_FUNCTIONS = set(
    "arccos arcsin arctan arg cos cosh cot coth csc deg det dim exp gcd hom inf ker lg lim liminf limsup ln log "
    "max min sec sin sinh sup tan tanh Pr".split()
)
_UNDER = {"inf", "sup", "max", "min", "lim", "argmax", "argmin", "Pr"}  # what has its subscript below
_GREEK = set(
    "alpha beta gamma delta epsilon zeta eta theta iota kappa lambda mu nu xi pi rho sigma tau upsilon phi chi "
    "psi omega varepsilon vartheta varpi varrho varsigma varphi "
    "Gamma Delta Theta Lambda Xi Pi Sigma Upsilon Phi Psi Omega".split()
)
_CHILDREN = {"mfrac": 2, "msub": 2, "msup": 2, "munder": 2, "mover": 2, "mroot": 2, "msubsup": 3, "munderover": 3}
_PLAIN = {"math", "mrow", "mi", "mn", "mo", "mtext", "mspace", "msqrt", "mstyle", "mtable", "mtr", "mtd"}
_ATTRIBUTES = set(
    "accent columnalign depth display displaystyle fence form height linethickness lspace mathvariant maxsize "
    "minsize movablelimits rspace scriptlevel stretchy width".split()
)
_STYLES = {"bold": "BOLD", "bold-italic": "BOLD ITALIC", "double-struck": "DOUBLE-STRUCK", "script": "SCRIPT"}
_STYLES |= {"fraktur": "FRAKTUR", "sans-serif": "SANS-SERIF", "monospace": "MONOSPACE"}
_FENCES = dict.fromkeys("([{⟨⌊⌈", "prefix") | dict.fromkeys(")]}⟩⌋⌉", "postfix")
_TIGHT = {"‖", "|", "/"}  # no space on either side
_RELATIONS = {*"=<>≤≥∼≈≃≍≲≳≪≫→⇒⟺∈≠"}
_STARS, _SIGNS = {"⋆", "∘", "∗", "*"}, {"−", "+", "±"}
_CLOSING = {*")]}⟩⌋⌉|‖!"}
_LETTERS = {"∞", "∂", "∇", "…"}  # of which the translation makes operators, or which look like some
_ACCENTS = {"~": "˜", "^": "ˆ", "˙": "˙", "¯": "¯", "―": "¯"}
_TOKEN = re.compile(r"\\([A-Za-z]+)|\\.|([A-Za-z0-9])", re.DOTALL)


def mathml(latex: str, *, block: bool = False) -> str:
    """A `<math>` element that shows the formula, on a line of its own with `block`."""
    if not isinstance(latex, str) or not latex.strip():
        raise InputError(f"mathml(latex) must be a formula, got {latex!r}.")
    return _translated(" ".join(latex.split()), block)


def lines(latex: str) -> list[str]:
    r"""The parts that `\quad` and `\qquad` keep apart, which a narrow page may set below each other."""
    found, depth = [""], 0
    for piece in re.split(r"(\\qq?uad(?![A-Za-z])|\\.|[{}])", latex):
        depth += (piece == "{") - (piece == "}")
        if piece in (r"\quad", r"\qquad") and depth == 0:
            found.append("")
        else:
            found[-1] += piece
    whole = [part.strip() for part in found if part.strip()]
    torn = any(len(re.findall(r"\\left\b", part)) != len(re.findall(r"\\right\b", part)) for part in whole)
    return [latex] if torn else whole


def breakable(latex: str) -> str:
    """The formula within a sentence: several `<math>` elements, between which a line may end, after relations."""
    root = ElementTree.fromstring(mathml(latex))
    row = root[0] if len(root) == 1 and root[0].tag == "mrow" else root
    pieces: list[list[ElementTree.Element]] = [[]]
    for k, one in enumerate(row):
        pieces[-1].append(one)
        if one.tag == "mo" and one.text in _RELATIONS and 0 < k < len(row) - 1:
            one.set("form", "infix")
            pieces.append([])
    return "<wbr>".join(_written(piece) for piece in pieces)


def _written(row: list[ElementTree.Element]) -> str:
    inside = "".join(ElementTree.tostring(one, encoding="unicode", short_empty_elements=False) for one in row)
    return f"<math>{inside}</math>"


@functools.lru_cache(maxsize=1024)
def _translated(latex: str, block: bool) -> str:
    from latex2mathml.converter import convert

    _refuse_what_is_known_to_fail(latex)
    # A single letter in braces would come back in italics.
    source = re.sub(r"\\mathrm\s*\{\s*([A-Za-z])\s*\}", r"\\mathrm \1 ", latex)
    source = re.sub(r"\\arg\s*\\(min|max)(?![A-Za-z])", r"\\operatorname{arg\1}", source)  # which it does not know
    try:
        text = convert(source, display="block" if block else "inline").replace(' xmlns="', ' xmlns_="')
        root = ElementTree.fromstring(text)
    except Exception as error:  # of many kinds, and a syntax error where something was not escaped
        raise _refusal(latex, f"{type(error).__name__} {error}".strip()) from None
    root.attrib.pop("xmlns_", None)
    _check_elements(root, latex)
    _mend(root, small=False)
    _check_letters(root, latex)
    return ElementTree.tostring(root, encoding="unicode", short_empty_elements=False)


def _refusal(latex: str, why: str) -> InputError:
    return InputError(f"The formula {latex!r} cannot be turned into MathML: {why}; write it in simpler LaTeX.")


def _refuse_what_is_known_to_fail(latex: str) -> None:
    bare = re.sub(r"\\.", "", latex)
    if bare.count("{") != bare.count("}"):
        raise _refusal(latex, "its braces do not match")
    for found in re.finditer(r"\\operatorname\*?\s*(\{[^{}]*\}|.)?", latex):
        if not re.fullmatch(r"\{[A-Za-z]+\}", found[1] or ""):
            raise _refusal(latex, r"\operatorname works with plain letters in braces only")
    wrong = re.search(r"\\(mathop|href|color|textcolor|phantom|substack|not|xrightarrow|xleftarrow)\b", latex)
    if wrong:
        raise _refusal(latex, f"{wrong[0]} comes out wrong")
    if re.search(r"\\text[a-z]*\s*\{[^}]*[$\\]", latex):
        raise _refusal(latex, r"\text may hold plain words only")


def _check_elements(root: ElementTree.Element, latex: str) -> None:
    for one in root.iter():
        if one.tag not in _PLAIN and one.tag not in _CHILDREN:
            raise _refusal(latex, f"it needs <{one.tag}>")
        strange = set(one.attrib) - _ATTRIBUTES
        if strange:
            raise _refusal(latex, f"it needs the attribute {min(strange)!r}")
        if len(one) != _CHILDREN.get(one.tag, len(one)):
            raise _refusal(latex, "a command lacks an argument")
        if one.tag == "mi" and not one.text:
            raise _refusal(latex, "a script has nothing to stand at")


def _check_letters(root: ElementTree.Element, latex: str) -> None:
    text = "".join(root.itertext())
    if "\\" in text:
        raise _refusal(latex, f"{text[text.index(chr(92)) :].split()[0]!r} is not known")
    got = Counter(_kind(letter) for letter in unicodedata.normalize("NFKC", text))
    wanted = Counter(_kind(letter) for letter in _letters_of(latex))
    del got[""], wanted[""]
    if got != wanted:
        differing = sorted((got - wanted) | (wanted - got))
        raise _refusal(latex, f"{', '.join(differing)} would be lost or added")


def _kind(letter: str) -> str:
    if letter.isascii():
        return letter if letter.isalnum() else ""
    return "Greek letters" if unicodedata.name(letter, "").startswith("GREEK") else ""


def _letters_of(latex: str) -> Iterator[str]:
    """The letters and digits that a reader of the LaTeX expects to see."""
    latex = re.sub(r"\\(begin|end)\s*\{[^{}]*\}|\\hspace\s*\{[^{}]*\}", " ", latex)
    for found in _TOKEN.finditer(latex):
        name = found[1]
        if name in _FUNCTIONS:
            yield from name
        elif name in _GREEK:
            yield "α"
        elif name == "ell":
            yield "l"
        elif found[2]:
            yield found[2]


def _mend(parent: ElementTree.Element, small: bool) -> None:
    """Styles that browsers show, operators that are operators, TeX's spaces; none in `small` scripts."""
    if parent.tag == "mover" and (parent[1].text or "") in _ACCENTS and len(parent[1]) == 0:
        parent.set("accent", "true")
        parent[1].text = _ACCENTS[parent[1].text or ""]
        parent[1].set("stretchy", "true" if len("".join(parent[0].itertext())) > 1 else "false")
    if parent.tag == "msub" and "".join(parent[0].itertext()) in _UNDER:
        parent.tag = "munder"
        parent[0].set("movablelimits", "true")
    scripts = parent.tag in ("msub", "msup", "msubsup", "munder", "munderover")
    children = list(parent)
    for k, one in enumerate(children):
        _mend_leaf(one)
        _mend(one, small or (scripts and k > 0))
    if parent.tag in ("math", "mrow", "mstyle", "mtd", "msqrt"):
        for before, one, after in zip([None, *children], children, [*children[1:], None]):
            _set_spaces(before, one, after)
    if small:
        for one in children:
            if one.tag == "mo":
                one.attrib |= {"lspace": "0", "rspace": "0"}
    _join_upright(parent)


def _mend_leaf(one: ElementTree.Element) -> None:
    text = one.text or ""
    style = one.attrib.pop("mathvariant", None)
    if style == "normal":
        one.set("mathvariant", "normal")
    elif style in _STYLES:
        one.text = "".join(_styled(letter, _STYLES[style]) for letter in text)
    if one.get("width") == "negativethinmathspace":
        one.set("width", f"-{THIN}")
    if one.tag == "mi" and unicodedata.name(text[:1] or " ", "").startswith("GREEK CAPITAL"):
        one.set("mathvariant", "normal")
    if text == "~" and one.tag != "mtext":  # the relation; the accent has another sign by now
        one.tag, one.text = "mo", "∼"
    if text in _LETTERS:
        one.tag = "mi"
    elif text in _FENCES:
        one.tag = "mo"
        one.attrib |= {"fence": "true", "form": one.get("form", _FENCES[text])}
        one.attrib.setdefault("stretchy", "false")
    elif one.tag == "mi" and (text in _FUNCTIONS or (len(text) == 1 and unicodedata.category(text) == "Sm")):
        one.tag = "mo"
    if one.tag == "mo" and text in _TIGHT:
        one.attrib |= {"lspace": "0", "rspace": "0"}


def _styled(letter: str, style: str) -> str:
    """The letter of a mathematical alphabet; some lie elsewhere, under a shorter name."""
    found = re.fullmatch(r"(?:LATIN|GREEK) (CAPITAL|SMALL) LETTER (\w+)", unicodedata.name(letter, ""))
    for alphabet in (f"MATHEMATICAL {style}", style.replace("FRAKTUR", "BLACK-LETTER")):
        try:
            return unicodedata.lookup(f"{alphabet} {found[1]} {found[2]}") if found else letter
        except KeyError:
            continue
    return letter


def _set_spaces(before, one, after) -> None:
    """Around names of functions, and none between a sign and what it belongs to."""
    core = one
    while core.tag in ("msub", "msup", "msubsup", "munder", "mover", "munderover"):
        core = core[0]
    text = core.text or ""
    if core.tag != "mo":
        return
    if text.isascii() and text.isalpha():
        opens = after is not None and after.tag == "mo" and (after.text or "") in "([{|‖⟨"
        ordinary = before is not None and before.tag not in ("mo", "mspace", "mtext")
        core.set("lspace", THIN if ordinary else "0")
        core.set("rspace", "0" if after is None or opens else THIN)
    elif before is None and text in _STARS:
        core.attrib |= {"lspace": "0", "rspace": "0"}
    elif text in _SIGNS and (before is None or (before.tag == "mo" and before.text not in _CLOSING)):
        core.set("form", "prefix")


def _join_upright(parent: ElementTree.Element) -> None:
    """One identifier of several upright letters: SNR, not S N R."""
    for one in list(parent):
        last = None if one is parent[0] else parent[list(parent).index(one) - 1]
        if last is not None and all(
            two.tag == "mi" and (two.get("mathvariant") == "normal" or two.get("class") == "upright")
            for two in (last, one)
        ):
            last.text = f"{last.text}{one.text}"
            last.attrib.pop("mathvariant", None)
            last.set("class", "upright")
            parent.remove(one)
    for one in parent:
        one.attrib.pop("class", None)
