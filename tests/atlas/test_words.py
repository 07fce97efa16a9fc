"""Plain texts as HTML: what is typeset, and that nothing of a user's text becomes a tag."""

import pytest

from featlab.atlas.cards import alt_text, command_of, main_check
from featlab.atlas.tables import _escaped, _mathematics
from featlab.atlas.words import allowed, formula, interval, number, paragraphs, sentence, typeset


@pytest.mark.parametrize(
    "plain, html",
    [
        ("|mu|* in n", "|μ|* in n"),
        ("sigma_0 and x_12", "σ<sub>0</sub> and x<sub>12</sub>"),
        ("sigma_0^-(q-2) |mu|^-q", "σ<sub>0</sub><sup>−(q−2)</sup> |μ|<sup>−q</sup>"),
        ("ReLU^(q + 1/2)", "ReLU<sup>q + 1/2</sup>"),
        ("n^0.4", "n<sup>0.4</sup>"),
        ("ReLU -> ReLU^2", "ReLU → ReLU<sup>2</sup>"),
        ("<< 1 or >= 1", "≪ 1 or ≥ 1"),
        ("from -1/4, in sqrt n", "from −1/4, in √n"),
        ("-log error", "−log error"),
        ("x-ray 1e-12 a-b", "x-ray 1e-12 a-b"),
        ("init_scale of beta2", "init_scale of beta2"),
        ("<script>alert(1)</script> & 'x'", "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &#39;x&#39;"),
        ("a^<b>", "a^&lt;b&gt;"),
    ],
)
def test_a_short_text_is_set_as_a_typesetter_would(plain, html):
    assert typeset(plain) == html


def test_paragraphs_hold_formulas_and_code():
    text = "One $x < y$ and `a<b>`,\non two lines.\n\nTwo\n\n$$z^2$$\n\nfor \\$5"
    first, second, block, third = paragraphs(text).splitlines()
    assert first.startswith("<p>One <math>") and "<code>a&lt;b&gt;</code>, on two lines.</p>" in first
    assert "<wbr>" in first and first.count("<math>") == 2  # a line may end after the relation
    assert (second, third) == ("<p>Two</p>", "<p>for $5</p>")
    assert block.startswith('<div class="formula"><div><math display="block">')


def test_a_formula_that_cannot_be_shown_is_shown_as_it_is_written():
    assert formula(r"\foo <b>") == r'<div class="formula"><code>\foo &lt;b&gt;</code></div>'
    assert sentence(r"so $\foo<x>$.") == r"so <code>\foo&lt;x&gt;</code>."
    assert formula(r"a \qquad b").count("<math") == 2


@pytest.mark.parametrize(
    "value, text",
    [
        (-0.33243, "−0.3324"),
        (1.1e-16, "1.1·10<sup>−16</sup>"),
        (2.5e12, "2.5·10<sup>12</sup>"),
        (0.0, "0"),
        (None, "–"),
        (float("nan"), "–"),
    ],
)
def test_numbers_have_true_minus_signs_and_powers(value, text):
    assert number(value) == text


def check(kind="scales_as", expected=-1 / 3, margin=1 / 36, status="supported", **facts):
    measured = {"name": "exponent of SNR* in n", "measured": -0.33, "low": -0.34, "high": -0.32}
    region = {"lower": expected - margin, "upper": expected + margin}
    return {**measured, **region, "kind": kind, "expected": expected, "margin": margin, "status": status, **facts}


@pytest.mark.parametrize(
    "one, text",
    [
        (check(), "−1/3 ± 0.028"),
        (check("equals", 1.0, 0.05), "1 ± 0.05"),
        (check("at_most", 0.06, 0.0, lower=None), "≤ 0.06"),
        (check("at_least", 0.1, 0.0, upper=None), "≥ 0.1"),
        (check("scales_as", 0.05, 0.0, lower=None), "≤ 0.05"),
        (check("identity", 0.0, 1e-12, lower=None), "≤ 1·10<sup>−12</sup>"),
    ],
)
def test_what_theory_allows(one, text):
    assert allowed(one) == text
    assert interval(one) == "[−0.34, −0.32]" and interval({**one, "low": None}) == "–"


def test_the_check_that_decided_stands_for_the_claim():
    checks = [check(), check(status="inconclusive", name="second"), check(status="refuted", name="third")]
    record = {"id": "one", "status": "inconclusive", "checks": checks}
    assert main_check(record)["name"] == "second"
    assert main_check({**record, "status": "refuted"})["name"] == "third"
    outside = {**record, "checks": checks[:1]}  # inconclusive by its conditions alone
    assert main_check(outside)["name"] == "exponent of SNR* in n"


def test_the_alternative_text_says_what_is_seen():
    control = check(status="refuted", changes="ReLU^3 -> ReLU^4")
    record = {"id": "one", "status": "supported", "checks": [check()] * 10, "control": control}
    said = alt_text(record)
    assert said.startswith("Verdict on one: supported. exponent of SNR* in n: −0.33 [−0.34, −0.32], theory −1/3 ±")
    assert "2 more checks" in said and said.endswith("The control (ReLU^3 -> ReLU^4) is refuted.")
    assert "<" not in said


def test_the_command_repeats_the_record():
    record = {"size": "laptop", "base_seed": 7}
    assert command_of("one", record, None) == "featlab verify one --size laptop --base-seed 7"
    assert command_of("one", record, "my claims").endswith("--claims 'my claims'")


def test_a_table_for_a_paper_is_escaped():
    assert _escaped("50 % of |x_1|^2 & more") == (r"50 \% of \textbar{}x\_1\textbar{}\textasciicircum{}2 \& more")
    assert _mathematics("1.1e-16 [0, 2e+05]") == r"$1.1 \cdot 10^{-16}\ [0, 2 \cdot 10^{5}]$"
    assert _mathematics("-1/3 ± 0.028") == r"$-1/3 \pm 0.028$" and _mathematics("not measured") == "not measured"
