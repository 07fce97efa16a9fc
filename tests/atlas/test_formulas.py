"""Formulas of a page: every claim's converts, what the translator gets wrong is mended or refused."""

import re
import sys
import unicodedata
from xml.etree import ElementTree

import pytest

import featlab as fl
from featlab.atlas.formulas import lines, mathml
from featlab.atlas.words import paragraphs
from featlab.claims import find_claims


def formulas():
    for name, claim in find_claims().items():
        words = sys.modules[type(claim).__module__].__doc__ or ""
        found = [
            claim.statement,
            *(one[0] or one[1] for one in re.findall(r"\$\$(.+?)\$\$|\$(.+?)\$", words, re.S)),
        ]
        yield name, found


def text_of(formula, block=True):
    return "".join(ElementTree.fromstring(mathml(formula, block=block)).itertext())


def test_words_have_lists_and_emphasis_and_stars_of_their_own():
    text = "Of *two* kinds, |mu|* = 2 SNR*.\n\n* *one*: $x$\n  and more;\n* <two>."
    first, rest = paragraphs(text).split("\n")
    assert first == "<p>Of <em>two</em> kinds, |μ|* = 2 SNR*.</p>"
    items = "<li><em>one</em>: <math><mi>x</mi></math> and more;</li>", "<li>&lt;two&gt;.</li>"
    assert rest == f"<ul>{''.join(items)}</ul>"


# Commands that show letters of the alphabet, by what they show; all others show none.
SHOWN = {
    "log": "log",
    "arg": "arg",
    "exp": "exp",
    "min": "min",
    "max": "max",
    "inf": "inf",
    "cos": "cos",
    "sin": "sin",
    "ell": "l",
}


@pytest.mark.parametrize(
    "name, found", list(formulas()), ids=lambda value: value if isinstance(value, str) else ""
)
def test_every_formula_of_a_claim_converts_with_all_its_letters(name, found):
    for formula in found:
        for block in (False, True):
            text = text_of(formula, block)
            assert "\\" not in text and "$" not in text
            letters = re.sub(r"\\([A-Za-z]+)", lambda one: SHOWN.get(one[1], ""), formula)
            seen = unicodedata.normalize("NFKC", text)
            assert sorted(re.findall("[A-Za-z0-9]", seen)) == sorted(re.findall("[A-Za-z0-9]", letters)), formula
        assert [text_of(part) for part in lines(formula)]


def test_the_parts_of_a_formula_are_whole():
    assert lines(r"a = b, \qquad c \quad d") == ["a = b,", "c", "d"]
    assert lines(r"\frac{a \quad b}{c}") == [r"\frac{a \quad b}{c}"]
    assert lines(r"\left( a \quad b \right)") == [r"\left( a \quad b \right)"]  # parentheses belong together


@pytest.mark.parametrize(
    "formula, inside",
    [
        (r"\mathbb E x", "<mi>𝔼</mi>"),  # browsers know the letter, not the style
        (r"\mathbb{R}^d", "<mi>ℝ</mi>"),
        (r"\mathcal L_a", "<mi>ℒ</mi>"),
        (r"\mathfrak{C}", "<mi>ℭ</mi>"),
        (r"\mathbf{\mu}", "<mi>𝛍</mi>"),
        (r"\mathrm{d}x", '<mi mathvariant="normal">d</mi><mi>x</mi>'),
        (r"n\,\mathrm{SNR}^q", "<mi>SNR</mi>"),
        (r"\Omega", '<mi mathvariant="normal">Ω</mi>'),  # upright, as TeX has it
        (r"\tilde\Omega", '<mo stretchy="false">˜</mo>'),
        (r"u \sim v", "<mo>∼</mo>"),
        (r"a \iff b", "<mo>⟺</mo>"),
        (r"\langle x \rangle", '<mo fence="true" form="prefix" stretchy="false">⟨</mo>'),
        (r"\log 2", '<mo lspace="0" rspace="0.167em">log</mo>'),
        (r"a \log(x)", '<mo lspace="0.167em" rspace="0">log</mo>'),
        (r"(-x)", '<mo form="prefix">−</mo>'),
        (r"|x| - y", "<mo>−</mo>"),
        (r"x^{a-b}", '<mo lspace="0" rspace="0">−</mo>'),
        (r"a\!b", '<mspace width="-0.167em"></mspace>'),
        (r"\inf_\lambda x", "<munder><mo"),
        (r"a < b", "<mo>&lt;</mo>"),
    ],
)
def test_what_comes_out_wrong_is_mended(formula, inside):
    assert inside in mathml(formula)


def test_lines_of_their_own_and_in_a_sentence():
    assert mathml("x", block=True).startswith('<math display="block">')
    assert mathml("x").startswith('<math display="inline">')


@pytest.mark.parametrize(
    "formula",
    [
        r"\foo x",
        r"\bigl\| x \bigr\|",
        r"\operatorname*{arg\,min}_x",
        r"\operatorname x",
        r"\mathop{\mathrm{argmin}}_x",
        r"\xrightarrow{a}",
        r"\not=",
        r"\frac{a}",
        r"x^{a",
        r"\left( x",
        "x_",
        "^2",
        "a & b",
        r"\text{a $x$ b}",
        r"\text{<b>}",
        r"\text{<script>alert(1)</script>}",
        r"\href{http://example.org}{x}",
        r"\color{red}{x}",
        r"\begin{aligned} a &= b \\ c &= d \end{aligned}",
        "",
        " ",
    ],
)
def test_what_would_be_wrong_is_refused_in_one_sentence(formula):
    with pytest.raises(fl.InputError) as caught:
        mathml(formula)
    assert str(caught.value).endswith(".")


@pytest.mark.parametrize("formula", [None, 3, b"x"])
def test_only_a_formula_is_one(formula):
    with pytest.raises(fl.InputError, match="must be a formula"):
        mathml(formula)
