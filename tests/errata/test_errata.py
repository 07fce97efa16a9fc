"""Every erratum is complete, its corrected formula passes and the printed one fails; the page lists them all."""

import re
from pathlib import Path

import numpy as np
import pytest

from featlab.claims import Lab, Size
from featlab.claims.claim import SIZES
from featlab.claims.verify import TOGETHER, verify
from featlab.core.validation import InputError
from featlab.errata import (
    HOW_READ,
    READINGS,
    Erratum,
    _cnn,
    _one_step,
    find_errata,
    one_spike_gain,
    two_spikes_gain,
)
from featlab.errata._erratum import over_seeds
from featlab.theory import one_step

PAGE = Path(__file__).parents[2] / "docs" / "errata.md"
SEED = 29_000
ERRATA = find_errata()
JUDGED = TOGETHER
each_erratum = pytest.mark.parametrize("erratum", ERRATA.values(), ids=ERRATA)


def formulas(erratum):
    return [erratum.printed, erratum.corrected, *re.findall(r"\$([^$]+)\$", erratum.derivation)]


@each_erratum
def test_an_erratum_is_complete(erratum):
    assert isinstance(erratum, Erratum) and erratum.problem() is None
    assert set(erratum.sizes) == set(SIZES)
    assert erratum.statement == erratum.corrected != erratum.printed
    assert "\n" not in erratum.derivation and erratum.derivation.count("$") % 2 == 0
    assert re.search(r"“.+”", erratum.source), "a source says where in the document"
    for formula in formulas(erratum):
        bare = formula.replace(r"\{", "").replace(r"\}", "")
        assert formula.strip() and bare.count("{") == bare.count("}")
        assert len(re.findall(r"\\left\b", formula)) == len(re.findall(r"\\right\b", formula))
        assert not re.search(r"\\(mathbb|mathcal|mathbf|mathrm|frac|sqrt|hat|tilde|bar|text)(?![{a-z])", formula)
        assert r"\operatorname" not in formula


@each_erratum
def test_formulas_can_be_shown_on_a_page(erratum):
    pytest.importorskip("latex2mathml")
    from featlab.atlas.formulas import mathml

    for formula in formulas(erratum):
        assert mathml(formula).startswith("<math")


@each_erratum
def test_the_corrected_formula_holds_and_the_printed_one_does_not(erratum):
    seeds = max(24, erratum.sizes["smoke"].seeds)
    verdict = verify(erratum, "smoke", seeds=seeds, base_seed=SEED, judged=JUDGED, progress=False)
    assert verdict.status == "supported", verdict.reason
    assert verdict.control.status(JUDGED) == "refuted"
    assert verdict.control.kind == verdict.checks[0].kind, "one judge for both"
    assert verdict.control.margin == pytest.approx(verdict.checks[0].margin) or verdict.control.kind == "scales_as"
    assert not verdict.assumptions and verdict.record()["id"] == erratum.id


def test_the_gains_of_spikes_are_those_of_the_theory():
    def gain(setting, spikes, unit_rows):
        sizes = (setting.phi, setting.psi, setting.penalty, _one_step.STUDENT, setting.teacher)
        return one_step.gains(*sizes, spikes, unit_rows=unit_rows)[1]

    one, two = one_spike_gain, two_spikes_gain
    assert one.formula(printed=False) == pytest.approx(gain(one.SETTING, 1, False), rel=1e-9)
    assert one.formula(printed=True) != pytest.approx(one.formula(printed=False), rel=0.2)
    for unit in two.ROWS.values():
        second = gain(two.SETTING, 2, unit) - gain(two.SETTING, 1, unit)
        assert two.formula(False, unit) == pytest.approx(second, rel=1e-6)
        assert two.formula(True, unit) != pytest.approx(second, rel=0.2)
    assert two.formula(False, False) > 1.1 * two.formula(False, True), "the setting can tell the rows apart"
    phi, psi = two.SETTING.phi, two.SETTING.psi
    assert two.formula(True, True) * phi / psi == pytest.approx(two.formula(False, True), rel=1e-6)


def test_inputs_from_the_lattice_are_gaussian():
    x = _one_step._inputs(np.random.default_rng(5), 4000, 4)
    np.testing.assert_allclose(np.cov(x.T), np.eye(4), atol=0.06)
    np.testing.assert_allclose(np.mean(x[:, :2] ** 4, axis=0), 3, rtol=0.02)
    assert abs(np.mean(x[:, 0] ** 2 * x[:, 1])) < 0.02 and abs(np.mean(x[:, 0] ** 2 * x[:, 1] ** 2) - 1) < 0.02


def test_a_bound_that_is_attained_is_met():
    check = next(ERRATA["label_noise_test_law"].judge(Lab(Size(seeds=2), [1, 2]), printed=False))
    assert check.measured == pytest.approx(1), "half of the flipped labels, no more and no less"


def test_the_descent_of_the_reference_network_follows_its_loss():
    rng = np.random.default_rng(3)
    for power in (1, 3):
        run = _cnn.drawn(
            rng, n=6, d=9, width=3, signal_norm=1.5, noise_scale=0.5, init_scale=0.7, power=power, flipped=1
        )
        start, direction = run.weights, rng.standard_normal(run.weights.shape)

        def loss(weights, run=run):
            run.weights = weights
            return np.mean(np.log1p(np.exp(-run.labels * run.outputs(run.patches))))

        slope = (loss(start + 1e-6 * direction) - loss(start - 1e-6 * direction)) / 2e-6
        run.weights = start
        run.step(1.0)
        assert np.sum((run.weights - start) * direction) == pytest.approx(-slope, rel=1e-6)


def test_the_span_of_what_was_drawn_keeps_all_products():
    sizes = {"n": 5, "width": 2, "signal_norm": 2.0, "noise_scale": 1.0, "init_scale": 0.1}
    whole = _cnn.drawn(np.random.default_rng(1), d=400, **sizes)
    assert whole.start.shape[-1] == 1 + 5 + 4
    rng = np.random.default_rng(1)
    noise = rng.standard_normal((5, 400))
    noise[:, 0] = 0
    np.testing.assert_allclose(whole.noise @ whole.noise.T, noise @ noise.T, atol=1e-10)
    np.testing.assert_allclose(whole.noise @ whole.signal, 0, atol=1e-10)
    start = 0.1 * rng.standard_normal((4, 400))
    np.testing.assert_allclose(whole.start.reshape(4, -1) @ whole.noise.T, start @ noise.T, atol=1e-10)


def test_a_lab_measures_once_for_both_formulas():
    asked = []

    def measure(rng, factor):
        asked.append(factor)
        return [factor, factor * rng.uniform()]

    lab = Lab(Size(seeds=3), [5, 6, 7])
    first = over_seeds(lab, measure, 2.0)
    assert first.shape == (2, 3) and len(asked) == 3
    np.testing.assert_array_equal(over_seeds(lab, measure, 2.0), first)
    assert len(asked) == 3
    over_seeds(lab, measure, 3.0)
    np.testing.assert_array_equal(first, over_seeds(Lab(Size(seeds=3), [5, 6, 7]), measure, 2.0))
    assert len(asked) == 9


def test_an_erratum_says_that_it_has_no_experiment():
    with pytest.raises(InputError, match="about a formula and has no experiment"):
        ERRATA["ridge_variance"].typical()


def test_an_incomplete_erratum_is_refused():
    class Halfway(Erratum):
        source = "“A talk”, slide 1"
        printed = "1"

    assert Halfway.problem() == "Halfway has no corrected"


def test_the_page_lists_every_erratum():
    rows = re.findall(r"^\| `(\w+)`( †)? \| ([^|]+?) \|", PAGE.read_text(), re.MULTILINE)
    assert {name: title for name, _, title in rows} == {name: erratum.title for name, erratum in ERRATA.items()}
    assert {name for name, mark, _ in rows if mark} == {name for name, one in ERRATA.items() if one.one_symbol}


def test_the_page_says_how_sources_were_read_and_lists_every_reading():
    words = " ".join(PAGE.read_text().split())
    assert HOW_READ in words
    for one in READINGS:
        title = one.title[0].upper() + one.title[1:]
        what = f"*It says:* {one.says}. *It is silent* {one.silent}."
        assert f"- **{title}**, {one.place}. {what} *Assumed here:* {one.assumed}. *Why:* {one.why}." in words
    listed = re.findall(r"^- \*\*", PAGE.read_text(), re.MULTILINE)
    assert len(listed) == len(READINGS)


@pytest.mark.parametrize("reading", READINGS, ids=[one.title for one in READINGS])
def test_a_reading_is_complete(reading):
    assert all(reading) and all(text.count("$") % 2 == 0 for text in reading)
    assert not any(text.endswith(".") for text in reading), "pages add the full stop"
    assert any(erratum.source.startswith(f"{reading.source}, ") for erratum in ERRATA.values())
