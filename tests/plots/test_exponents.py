"""The figure of all rates by its structure, from the verdicts that are kept and from some that are made up."""

import pytest

import featlab as fl
from featlab import plots
from featlab.claims.kept import kept_verdicts
from featlab.plots._forest import REACH

KEPT = list(kept_verdicts().values())
RATES = [
    check
    for one in KEPT
    for check in one["checks"]
    if check["kind"] in ("scales_as", "switches_at") and None not in (check["lower"], check["upper"])
]


def rate(name="exponent of T in n", at=-1.0, low=-1.02, high=-0.98, kind="scales_as", status="supported"):
    measured = {"measured": at, "low": low, "high": high, "lower": -1.1, "upper": -0.9}
    return {"name": name, "kind": kind, "expected": -1.0, "margin": 0.1, "status": status, **measured}


def record(*checks, id="one", status="supported"):
    return {"id": id, "status": status, "checks": list(checks)}


def marks(axes):
    return [line for line in axes.lines if line.get_gid() == "measured"]


def words(axes):
    return [text.get_text() for text in axes.texts]


@pytest.fixture(scope="module")
def everything():
    return plots.exponents(KEPT)


def test_every_rate_has_a_row_at_its_true_value(everything):
    values, strips = everything.axes[::2], everything.axes[1::2]
    assert len(values) == 2  # columns
    found = [float(mark.get_xdata()[0]) for axes in values for mark in marks(axes)]
    assert found == [check["measured"] for check in RATES]
    theory = [line.get_xdata()[0] for axes in values for line in axes.lines if line.get_gid() == "theory"]
    assert theory == [check["expected"] for check in RATES]
    magnified = [float(mark.get_xdata()[0]) for axes in strips for mark in marks(axes)]
    margins = [(check["measured"] - check["expected"]) / check["margin"] for check in RATES]
    near = [k for k, off in enumerate(margins) if abs(off) <= REACH]  # the others have an arrow
    assert len(near) > 20 and [magnified[k] for k in near] == pytest.approx([margins[k] for k in near])
    claims = sum(any(check in RATES for check in one["checks"]) for one in KEPT)
    assert everything.texts[0].get_text() == f"{len(RATES)} measured rates of {claims} claims"
    assert {axes.get_xlabel() for axes in values} == {"exponent"}
    assert {axes.get_xlim() for axes in values} == {values[0].get_xlim()}  # one true axis


def test_rows_are_grouped_by_claim_with_its_verdict_and_the_numbers(everything):
    said = [text for axes in everything.axes for text in words(axes)]
    shown = [one for one in KEPT if any(check in RATES for check in one["checks"])]
    assert {one["word"] for one in shown} >= {"supported"} and len(shown) > 5
    assert {f"{one['id']}:  {one['word']}" for one in shown} <= set(said)
    (cao,) = [one["checks"][0] for one in shown if one["id"] == "cao2022_phase"]
    numbers = f"{cao['measured']:.4f} [{cao['low']:.4f}, {cao['high']:.4f}]"
    assert f"{numbers}\ntheory -1/3 ± 0.028" in said
    assert "SNR* in n, q\xa0=\xa03, test loss 0.1" in said


def test_no_row_is_on_another_and_no_text_leaves_the_figure(everything):
    with plots.house_style():
        everything.draw_without_rendering()
    boxes = [text.get_window_extent() for axes in everything.axes for text in axes.texts]
    boxes += [text.get_window_extent() for text in everything.texts]
    crossing = [
        (one, other)
        for k, one in enumerate(boxes)
        for other in boxes[k + 1 :]
        if one.shrunk(0.96, 0.96).overlaps(other.shrunk(0.96, 0.96))
    ]
    assert not crossing
    assert all(everything.bbox.padded(1).contains(*corner) for box in boxes for corner in box.corners())


def test_few_rows_are_one_column_and_the_status_is_a_shape():
    refuted = rate("b", -1.5, -1.6, -1.4, status="refuted")
    figure = plots.exponents([record(rate(), refuted, rate("c", status="inconclusive"))])
    value, strip = figure.axes
    assert [mark.get_marker() for mark in marks(value)] == ["o", "X", "D"]
    assert strip.get_xlim()[1] == pytest.approx(1.02 * REACH)  # five margins off: the wide strip, with an arrow
    assert any(line.get_marker() == "<" for line in strip.lines)
    near = plots.exponents([record(rate())]).axes[1]
    assert near.get_xlim()[1] == pytest.approx(1.02 * REACH / 2)


def test_a_threshold_is_not_on_the_axis_of_exponents():
    value, strip = plots.exponents([record(rate("switch", kind="switches_at"))]).axes
    assert not marks(value) and "threshold" in words(value) and len(marks(strip)) == 1


def test_what_was_not_found_is_said():
    value, strip = plots.exponents([record(rate(at=None, low=None, high=None))]).axes
    assert not marks(value) and not marks(strip) and "not measured\ntheory -1 ± 0.1" in words(strip)


def test_the_same_records_give_the_same_file(tmp_path):
    one, other = (plots.save(plots.exponents(KEPT[:6]), tmp_path / f"{k}.svg").read_bytes() for k in (1, 2))
    assert one == other


@pytest.mark.parametrize("records", [None, "cao2022_phase", {"id": "one"}, 3])
def test_only_a_list_of_records_is_drawn(records):
    with pytest.raises(fl.InputError, match="must be a list of verdicts"):
        plots.exponents(records)


@pytest.mark.parametrize("wrong", [{}, {"id": "one", "status": "x", "checks": [{"kind": "scales_as"}]}, None])
def test_what_is_no_record_is_refused(wrong):
    with pytest.raises(fl.InputError, match="no records of verdicts"):
        plots.exponents([wrong])


@pytest.mark.parametrize("records", [[], [record({**rate(), "kind": "equals"})]])
def test_no_rate_is_said(records):
    with pytest.raises(fl.InputError, match="found no exponent or threshold"):
        plots.exponents(records)
