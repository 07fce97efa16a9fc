"""A verdict says what was measured and why, and can be had again; the built-in claims are complete."""

import dataclasses
import functools
import html
import importlib.util
import json
import math
import re
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

import featlab as fl
from featlab.claims import (
    Assumption,
    Check,
    Claim,
    Lab,
    at_least,
    at_most,
    equals,
    find_claim,
    find_claims,
    identity,
    not_judged,
    scales_as,
)
from featlab.claims.claim import SIZES, clauses_of
from featlab.claims.deciding import (
    BASE_SEED,
    EXPLORING,
    STRIDE,
    deciding_runs,
    fresh_base_seed,
    open_decision,
    registration,
)
from featlab.claims.fingerprint import source_of
from featlab.claims.intervals import FEWEST
from featlab.claims.judge import TOGETHER
from featlab.claims.kept import kept_verdicts
from featlab.claims.replay import followed
from featlab.claims.theorems.cao2022_phase import Phase
from featlab.claims.verdict import COLUMNS, EXIT_CODES, Verdict
from featlab.claims.verify import read_records, verify, verify_again
from featlab.probes.running import as_running
from featlab.problem import unbatched

ROOT = Path(__file__).parents[2]
SEED = 11
CLAIMS = find_claims()
each_claim = pytest.mark.parametrize("claim", CLAIMS.values(), ids=CLAIMS)

PROMISED = {
    "id", "status", "reason", "size", "seconds", "checks", "control", "assumptions", "seeds", "base_seed",
    "trained_fraction", "setting", "versions", "clauses", "exploratory", "registered", "evidence", "word",
}  # fmt: skip
PROMISED_OF_A_CHECK = {
    "name", "kind", "measured", "low", "high", "expected", "margin", "passed", "lower", "upper", "evidence",
    "seeds", "dropped", "deciding_level", "deciding_low", "deciding_high",
}  # fmt: skip


def tiny(claim, folder=None, **options):
    return verify(claim, "tiny", base_seed=SEED, claims=folder, **options)


def as_json(verdict):
    """Through text and back, with nothing in it that is not JSON."""

    def refuse(constant):
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(json.dumps(verdict.record()), parse_constant=refuse)


# ---- What becomes of a claim


@pytest.mark.parametrize(
    "variant, status, reason",
    [
        ("supported", "supported", "every interval lies inside its margin, and the control is refuted"),
        ("refuted", "refuted", r"exponent of the time .* is outside \[-1.65, -1.35\]"),
        (
            "untrained",
            "inconclusive",
            "only 0% of the runs have a value: the others did not train",
        ),
        ("blind control", "inconclusive", r"the control \(.*\) should be refuted and is supported: -(1|0\.9)"),
        ("outside", "inconclusive", r"^seen, but outside the theorem: .* is 5, and should be << 1"),
    ],
    ids=["supported", "refuted", "untrained", "blind control", "outside"],
)
def test_a_claim_is_judged_as_it_deserves(skeleton, variant, status, reason):
    verdict = tiny("mine", skeleton("mine", variant))
    assert verdict.status == status and re.search(reason, verdict.reason), verdict.reason
    assert verdict.trained_fraction == (0 if variant == "untrained" else 1)


def test_a_wrong_law_is_not_refuted_by_runs_that_did_not_train_nor_outside_the_theorem(skeleton):
    verdict = tiny("mine", skeleton("mine", "refuted", "untrained"))
    assert verdict.status == "inconclusive" and "did not train" in verdict.reason
    verdict = tiny("mine", skeleton("mine", "refuted", "outside", folder="other"))
    assert verdict.status == "inconclusive" and verdict.reason.startswith("judged, but outside the theorem")


def test_an_assumption_is_shown_where_it_is_closest_to_failing(skeleton):
    (one,) = tiny("mine", skeleton()).assumptions
    assert one.holds and one.value == pytest.approx(0.8 / 16)  # the largest learning rate
    upside_down = ('self.width, "<< 1"', 'self.width * 100, ">= 1"')
    (one,) = tiny("mine", skeleton("mine", upside_down, folder="other")).assumptions
    assert one.holds and one.value == pytest.approx(0.2 / 16 * 100)  # the smallest


def test_an_assumption_of_some_experiments_only_is_not_forgotten(skeleton):
    fails = (
        '+ [Assumption("only there", 5.0, "<< 1")] * (experiment.algorithm.learning_rate > 0.5)\n\n    def checks'
    )
    some = ('"<< 1")]\n\n    def checks', f'"<< 1")] {fails}')
    first, second = (verdict := tiny("mine", skeleton("mine", some))).assumptions
    assert (first.value, second.value) == (pytest.approx(0.8 / 16), 5.0)
    assert verdict.reason.startswith("seen, but outside the theorem: only there is 5")


def test_refutation_is_corrected_for_no_fewer_checks_than_there_are(skeleton):
    verdict = tiny("mine", skeleton("mine"))
    assert verdict.judged == TOGETHER and tiny("mine", skeleton("mine", folder="b"), judged=3).judged == 3
    assert verdict.record()["checks"][0]["deciding_level"] == pytest.approx(1 - 0.05 / TOGETHER)


def test_a_claim_that_yields_nothing_is_refused(skeleton):
    """Or nothing would be wrong with it."""
    nothing = (
        "        yield self._law(runs.steps_taken)",
        "        yield from ()\n        self._law(runs.steps_taken)",
    )
    twice = ("        yield self._law(runs.steps_taken)", "        yield self._law(runs.steps_taken)\n" * 2)
    for change in (nothing, twice):
        with pytest.raises(fl.InputError, match="mine must yield checks, each with a name of its own"):
            tiny("mine", skeleton("mine", change, folder=str(len(change[1]))))


def test_a_claim_file_that_says_nothing_of_training_rests_on_nothing_untrained(skeleton):
    """Every verb, a wrong law and a right one, without a word about training: untrained runs decide nothing."""
    verbs = {
        "equals": "equals('x', runs.train_loss, {value})",
        "at_most": "at_most('x', runs.train_loss, {value})",
        "at_least": "at_least('x', runs.train_loss, {value})",
        "identity": "identity('x', runs.train_loss - {value}, 0.01)",
        "scales_as": "scales_as('x', runs.train_loss, 'learning_rate', {value})",
    }
    for verb, call in verbs.items():
        for value in ("0.5", "5.0"):
            change = ("        yield self._law(runs.steps_taken)", f"        yield {call.format(value=value)}")
            names = (
                "Assumption, Claim, Size, scales_as",
                "Assumption, Claim, Size, scales_as, equals, at_most, at_least, identity",
            )
            clauses = ("    clauses = {", "    clauses = {} and {")
            folder = skeleton("mine", "untrained", change, names, clauses, folder=f"{verb}{value[0]}")
            verdict = tiny("mine", folder)
            assert verdict.status == "inconclusive" and verdict.trained_fraction == 0, (
                verb,
                value,
                verdict.reason,
            )
            assert verdict.checks[0].status() == "inconclusive"


def test_nothing_is_supported_beside_a_cell_that_did_not_train_however_its_numbers_are_hidden(skeleton):
    """Taken out of its coordinates and put among others: what it might have read changes the check."""
    hidden = (
        "        yield self._law(runs.steps_taken)",
        "        slow = lab.run(self.experiment, learning_rate=1e-6).train_loss\n"
        "        slow = slow.reset_coords(drop=True).fillna(0)\n"
        "        yield self._law(runs.steps_taken + slow)",
    )
    verdict = tiny("mine", skeleton("mine", ("at_most=20_000", "at_most=2000"), hidden))
    assert verdict.status == "inconclusive" and "only 0% of the runs have a value" in verdict.reason


def test_a_claim_says_what_its_runs_must_reach(skeleton):
    criterion = (
        "    def typical(self):",
        "    def trained(self, runs):\n        return runs.train_loss < 0\n\n    def typical(self):",
    )
    verdict = tiny("mine", skeleton("mine", criterion))
    assert verdict.status == "inconclusive" and verdict.trained_fraction == 0


# ---- Clauses, kinds of evidence, the log


def test_clauses_name_checks_that_are_there_or_say_why_none_judges_them(skeleton):
    record = tiny("mine", skeleton()).record()
    assert record["clauses"] == [
        {"clause": "T(L_S <= epsilon) ~ 1 / eta", "checks": ["exponent of the time in the learning rate"],
         "status": "supported", "reason": ""}
    ]  # fmt: skip
    wrong = ('"exponent of the time in the learning rate",\n    }', '"exponent of something",\n    }')
    with pytest.raises(fl.InputError, match="is judged by 'exponent of something', and no check is named so"):
        tiny("mine", skeleton("mine", wrong, folder="b"))

    class Some:
        id = "some"
        clauses = {"a": "x*", "b": ("y [1]", "z"), "c": not_judged("too costly")}

    found = clauses_of(Some, ["x = 1", "x = 2", "y [1]", "z"])
    assert [one.checks for one in found] == [("x = 1", "x = 2"), ("y [1]", "z"), ()] and found[
        2
    ].reason == "too costly"


@pytest.mark.parametrize("judged", [(), [], "", " ", ("x", ""), not_judged(""), not_judged("  ")], ids=repr)
def test_a_clause_without_a_check_or_a_reason_is_refused(judged):
    class Some:
        id = "some"
        clauses = {"a": judged}

    with pytest.raises(fl.InputError, match="needs words, and the names of its checks or not_judged"):
        clauses_of(Some, ["x"])


@pytest.mark.parametrize(
    "change, sentence",
    [
        (("        return self._law(lab.run", "        self._law(lab.run"), "mine.control must give a check"),
        (("        yield self._law(runs.steps_taken)", "        yield runs.steps_taken"), "mine.checks must give"),
    ],
)
def test_what_is_no_check_is_refused_in_one_sentence(skeleton, change, sentence):
    with pytest.raises(fl.InputError, match=sentence):
        tiny("mine", skeleton("mine", change))


def test_shares_are_rounded_down():
    assert "99.9% of runs trained" in str(made(GOOD, trained_fraction=0.99999))
    assert "100% of runs trained" in str(made(GOOD))
    few = at_most("x", np.where(np.arange(29) < 26, 0.5, np.nan), 1.0)  # 89.7 %
    assert "only 89% of the runs" in few.decision()[1]


def test_a_verdict_needs_evidence():
    good = np.linspace(0.99, 1.01, 24)
    only = made(identity("algebra", 0.0), at_most("loose", good, 100.0))
    assert only.status == "inconclusive" and only.reason.startswith("no check is evidence")
    assert only.evidence == [] and only.record()["evidence"] == 0
    assert "holds (identity)" in str(only) and "holds (room to spare)" in str(only)
    assert made(GOOD, identity("algebra", 0.0)).status == "supported"
    formula = made(identity("algebra", 0.0), algebra=True, control=identity("algebra", 1.0))
    assert formula.status == "supported"
    assert made(at_most("loose", good, 100.0), algebra=True).status == "inconclusive"
    assert made(at_most("loose", good, 100.0), rival=True).status == "supported"
    assert made(at_most("loose", good, 100.0), rival=True, control=GOOD).status == "inconclusive"
    assert made(GOOD, identity("algebra", 1.0)).status == "refuted"


def test_a_control_is_judged_as_a_check_is():
    good = np.linspace(0.99, 1.01, 24)
    for control in (at_least("near", good, 2.0), equals("near", good, 2.0), equals("near", 1 + good, 1.0, 0.01)):
        verdict = made(GOOD, control=control)
        assert control.status(10) == "refuted" and verdict.status == "inconclusive"
        assert verdict.reason.startswith("the control is not judged as any of the checks is")
        assert made(GOOD, control=control, rival=True).status == "supported"  # another formula, which fails


def test_too_few_seeds_are_said_to_be_too_small_to_judge():
    few = made(equals("near", [1.0, 1.01, 0.99, 1.0], 1.0))
    assert (few.status, few.word) == ("inconclusive", "too small to judge") and "TOO SMALL TO JUDGE" in str(few)
    assert f"{FEWEST} seeds would do" in few.reason and few.record()["word"] == few.word
    assert made(WIDE).word == "inconclusive"  # seeds enough, and still undecided
    assert made(equals("far", np.linspace(1.99, 2.01, 21), 1.0), judged=1).word == "too small to judge"
    assert made(equals("far", np.linspace(1.99, 2.01, 22), 1.0), judged=1).word == "refuted"
    lost = at_most("lost", np.where(np.arange(24) % 3 == 0, np.nan, 0.5), 1.0)
    assert made(lost).word == "inconclusive"  # seeds enough were asked for


def test_what_was_chosen_after_looking_is_said_where_the_verdict_is_read(skeleton):
    chosen = ("    control_changes", '    exploratory = "the rates"\n    control_changes')
    verdict = tiny("mine", skeleton("mine", chosen))
    assert "exploratory: the rates" in str(verdict) and "exploratory: the rates" in verdict._repr_html_()
    assert verdict.record()["exploratory"] == "the rates"


def test_deciding_runs_are_logged_on_fresh_seeds_and_a_changed_source_is_told(skeleton, monkeypatch):
    monkeypatch.setattr("featlab.claims.deciding.BASE_SEED", 900_000_000)  # the reserved ones are for verdicts
    quick = (
        '"laptop": Size(seeds=24, rates=(0.2, 0.1, 0.05, 0.025))',
        '"laptop": Size(seeds=24, rates=(0.8, 0.4, 0.2))',
    )
    folder = skeleton("mine", quick)
    claim = find_claim("mine", folder)
    before = verify(claim, "laptop")
    assert before.base_seed == EXPLORING and before.registered.startswith("never decided")
    first = verify(claim, "laptop", decide=True)
    assert first.base_seed == 900_000_000 and first.registered.startswith("source as registered")
    (run,) = deciding_runs(claim)
    assert run["source"] == source_of(claim) and run["status"] == first.status == "supported"
    assert verify(claim, "laptop").base_seed == 900_000_000 and fresh_base_seed(claim) == 900_010_000
    path = folder / "mine.py"
    path.write_text("# a comment changes nothing\n" + path.read_text() + "import math  # nor does an import\n")
    log = [json.loads(line) for line in (folder / "deciding.jsonl").read_text().splitlines()]
    assert [("status" in line, line["base_seed"]) for line in log] == [(False, 900_000_000), (True, 900_000_000)]
    assert verify(claim, "laptop").registered.startswith("source as registered")
    path.write_text(path.read_text().replace("-1.0, rivals=(-2.0, -0.5)", "-1.0, rivals=(-3.0, -0.5)"))
    changed = find_claim("mine", folder)
    after = verify(changed, "laptop")
    assert after.base_seed == EXPLORING and after.registered.startswith("source changed since it was decided")
    second = verify(changed, "laptop", decide=True)
    assert second.base_seed == 900_010_000 and len(deciding_runs(changed)) == 2
    assert "another setting" in verify(dataclasses.replace(changed, width=8), "laptop").registered
    for options in ({"base_seed": 5}, {"size": "smoke"}, {"seeds": 30}):
        with pytest.raises(fl.InputError, match="takes fresh seeds"):
            verify(changed, **{"size": "laptop", "decide": True, **options})
    for claim, judged in ((changed, 3), (dataclasses.replace(changed, width=8), TOGETHER)):
        with pytest.raises(fl.InputError, match="as it is registered: with the knobs of its file and judged=300"):
            verify(claim, "laptop", decide=True, judged=judged)
    assert len(deciding_runs(changed)) == 2


def test_a_fingerprint_knows_other_names_and_files_that_are_imported(skeleton):
    folder = skeleton()
    path = folder / "mine.py"
    text = path.read_text()

    def source(change=""):
        path.write_text(text.replace("import featlab as fl", f"import featlab as fl\n{change}", 1))
        return source_of(find_claim("mine", folder))

    plain = source()
    assert source("import json\nfrom featlab.claims import at_most, at_least") == plain
    assert source("from featlab.claims import at_most as at_least, at_least as at_most") != plain
    assert source("import math as cmath") != plain
    (folder / "_bounds.py").write_text("BOUND = 1.0  # the bound\n")
    (folder / "_more.py").write_text("MORE = 1.0\n")
    helped = (
        "import sys, pathlib; sys.path.insert(0, str(pathlib.Path(__file__).parent))\nfrom _bounds import BOUND"
    )
    with_help = source(helped)
    assert with_help != plain
    (folder / "_bounds.py").write_text("BOUND = 1.0  # another comment\n")
    assert source(helped) == with_help
    (folder / "_bounds.py").write_text("BOUND = 0.4\n")
    assert source(helped) != with_help
    (folder / "_bounds.py").write_text("from _more import MORE as BOUND\n")
    twice = source(helped)
    (folder / "_more.py").write_text("MORE = 0.4\n")
    assert source(helped) != twice
    sys.path[:] = [one for one in sys.path if one != str(folder)]


def test_a_deciding_run_takes_its_seeds_before_anything_is_seen_of_them(skeleton, monkeypatch):
    monkeypatch.setattr("featlab.claims.deciding.BASE_SEED", 900_000_000)
    breaks = (
        "        return self._law(lab.run",
        '        raise KeyError("boom")\n        return self._law(lab.run',
    )
    quick = (
        '"laptop": Size(seeds=24, rates=(0.2, 0.1, 0.05, 0.025))',
        '"laptop": Size(seeds=24, rates=(0.8, 0.4, 0.2))',
    )
    claim = find_claim("mine", skeleton("mine", quick, breaks))
    with pytest.raises(KeyError, match="boom"):
        verify(claim, "laptop", decide=True)
    assert deciding_runs(claim) == [] and fresh_base_seed(claim) == 900_000_000 + STRIDE
    assert registration(claim, EXPLORING).endswith("on seeds from 900000000 and not finished")
    taken = []
    threads = [
        threading.Thread(target=lambda: taken.append(open_decision(claim, "laptop", 20_000))) for _ in "123"
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [900_000_000 + STRIDE + k * 20_000 for k in range(3)]


@pytest.mark.parametrize(
    "line",
    [
        "[]", "3", '{"id": "mine"}', '{"id": "mine", "source": "x"', "",
        '{"date": "d", "id": "mine", "source": "x", "seeds": 24, "base_seed": "abc"}',
        '{"date": "d", "id": "mine", "source": "x", "seeds": 24, "base_seed": -5}',
        '{"date": "d", "id": "mine", "source": "x", "seeds": 24, "base_seed": 2147483640}',
        '{"date": "d", "id": "mine", "source": "x", "seeds": 24, "base_seed": 1.5}',
        '{"date": "d", "id": "mine", "source": "x", "seeds": true, "base_seed": 5}',
        '{"date": "d", "id": "mine", "source": "x", "seeds": 24, "base_seed": 5, "status": 3}',
    ],
)  # fmt: skip
def test_a_damaged_log_is_named_with_its_line(skeleton, line):
    folder = skeleton()
    good = '{"date": "d", "id": "other", "source": "x", "seeds": 24, "base_seed": 5, "status": "refuted"}'
    (folder / "deciding.jsonl").write_text(f"{good}\n{line}\n")
    claim = find_claim("mine", folder)
    if not line:
        assert deciding_runs(claim) == []
        return
    for ask in (deciding_runs, fresh_base_seed, lambda claim: open_decision(claim, "laptop", 24)):
        with pytest.raises(fl.InputError, match="is damaged in line 2"):
            ask(claim)


# ---- The record


@pytest.mark.parametrize("variant", ["supported", "untrained"])
def test_the_record_has_what_is_promised_and_is_json(skeleton, variant):
    verdict = tiny("mine", skeleton("mine", variant))
    record = as_json(verdict)
    assert PROMISED | {"judged", "title", "perturbed"} == set(record)
    (check,) = record["checks"]
    assert PROMISED_OF_A_CHECK <= set(check) and PROMISED_OF_A_CHECK | {"changes"} <= set(record["control"])
    assert check["kind"] == "scales_as" and check["expected"] == -1 and check["margin"] == pytest.approx(0.1)
    assert check["passed"] == (variant == "supported")
    assert (record["id"], record["size"], record["seeds"], record["base_seed"]) == ("mine", "tiny", 24, SEED)
    assert record["status"] == verdict.status and record["reason"] == verdict.reason
    assert record["setting"] == {"width": "16", "loss": "0.5"} and record["seconds"] > 0
    assert set(record["versions"]) == {"featlab", "source", "jax", "python", "device"}
    (assumption,) = record["assumptions"]
    assert assumption == {
        "sentence": "learning rate (small steps)", "value": pytest.approx(0.05), "should": "<< 1", "holds": True,
    }  # fmt: skip
    assert len(check["samples"]) == 24
    if variant == "supported":
        assert check["low"] <= check["measured"] <= check["high"]
        assert check["measured"] == pytest.approx(np.mean(check["samples"]))


def test_what_is_not_finite_is_null():
    nothing = scales_as(
        "nothing", xr.DataArray(np.full((3, 3), np.nan), coords={"n": [1, 2, 3]}, dims=("n", "seed")), "n", 1.0
    )
    partly = equals("partly", [1.0, np.nan, np.inf], 1.0)
    record = as_json(made(nothing, partly))
    for name in ("measured", "low", "high", "drift"):
        assert record["checks"][0][name] is None
    assert record["checks"][0]["samples"] == [None] * 3 and record["checks"][1]["samples"] == [1, None, None]
    assert {check["passed"] for check in record["checks"]} == {False}


def same_numbers(one, other):
    for name in PROMISED - {"seconds"}:
        assert one[name] == other[name], name


def test_a_verdict_repeats_from_its_record(skeleton):
    folder = skeleton()
    first = as_json(tiny("mine", folder))
    same_numbers(as_json(verify_again(first, folder)), first)


def test_a_verdict_with_another_setting_and_other_seeds_repeats_from_its_record(skeleton):
    folder = skeleton()
    changed = dataclasses.replace(find_claim("mine", folder), width=8, loss=0.55)
    first = as_json(verify(changed, "tiny", seeds=4, base_seed=500, claims=folder, judged=5))
    again = as_json(verify_again(first, folder))
    same_numbers(again, first)
    assert again["judged"] == 5 and len(again["checks"][0]["samples"]) == 4
    assert first["setting"] == {"width": "8", "loss": "0.55"}
    other_seeds = as_json(verify(changed, "tiny", seeds=4, base_seed=600, claims=folder))
    assert other_seeds["checks"][0]["samples"] != first["checks"][0]["samples"]


def complete(**changes):
    base = dict(id="mine", setting={"width": "16"}, size="tiny", seeds=3, base_seed=SEED, judged=3)
    return {**base, **changes}


@pytest.mark.parametrize(
    "record, sentence",
    [
        (None, "not the record of a verdict"),
        ([], "not the record of a verdict"),
        ({}, "not the record of a verdict: 'id'"),
        ({"id": "mine"}, "not the record of a verdict: 'setting'"),
        ({"id": "mine", "setting": {}, "size": "tiny"}, "not the record of a verdict: 'seeds'"),
        (complete(id=["mine"]), "not the record of a verdict: 'id'"),
        (complete(setting=3), "not the record of a verdict: 'setting'"),
        (complete(setting=["width"]), "not the record of a verdict"),
        (complete(id="mien"), "There is no claim 'mien'; did you mean 'mine'?"),
        (complete(setting={"widht": "16"}), "mine has no field 'widht'; did you mean 'width'?"),
        (complete(setting={"width": "open('x')"}), "not a name featlab knows"),
        (complete(size="huge"), "verify(size=) must be one of tiny, smoke, laptop, full, got 'huge'."),
        (complete(seeds="3"), "not the record of a verdict: 'seeds'"),
        (complete(base_seed=None), "not the record of a verdict: 'base_seed'"),
        (complete(base_seed=-1), "verify(base_seed=) must be a whole number from 0"),
        (complete(judged=0), "verify(judged=) must be a whole number of at least 1, got 0."),
        (complete(judged="all"), "not the record of a verdict: 'judged'"),
    ],
    ids=str,
)
def test_what_is_no_record_is_refused_in_one_sentence(skeleton, record, sentence):
    with pytest.raises(fl.InputError) as caught:
        verify_again(record, skeleton())
    assert sentence in str(caught.value) and len(str(caught.value).splitlines()) == 1


def test_a_file_of_records_holds_one_or_a_list(tmp_path):
    file = tmp_path / "records.json"
    for text, count in {'{"id": "a"}': 1, '[{"id": "a"}]': 1, '[{"id": "a"}, {"id": "b"}]': 2}.items():
        file.write_text(text)
        assert len(read_records(file)) == count
    for text in ("[]", "3", "null", "[1]", '{"status": "supported"}', '[{"id": "a"}, []]'):
        file.write_text(text)
        with pytest.raises(fl.InputError, match="holds no verdicts"):
            read_records(file)


@pytest.mark.parametrize(
    "options, sentence",
    [
        ({"size": "huge"}, "verify(size=) must be one of tiny, smoke, laptop, full, got 'huge'."),
        ({"seeds": 0}, "verify(seeds=) must be a whole number of at least 1, got 0."),
        ({"seeds": 2.5}, "verify(seeds=) must be a whole number of at least 1, got 2.5."),
        ({"seeds": True}, "verify(seeds=) must be a whole number of at least 1, got True."),
        ({"base_seed": -1}, "verify(base_seed=) must be a whole number from 0 to 2^31 - 1 - seeds, got -1."),
        ({"base_seed": 2**31 - 3}, "verify(base_seed=) must be a whole number from 0 to 2^31 - 1 - seeds"),
        ({"base_seed": 0.5}, "verify(base_seed=) must be a whole number"),
        ({"claim": "kou2023_phse"}, "There is no claim 'kou2023_phse'; did you mean 'kou2023_phase'?"),
        ({"claim": 3}, "verify(claim) must be the id of a claim or a claim, got 3."),
        ({"judged": 0}, "verify(judged=) must be a whole number of at least 1, got 0."),
    ],
    ids=str,
)
def test_bad_arguments_are_answered_with_one_sentence(options, sentence):
    with pytest.raises(fl.InputError) as caught:
        verify(**{"claim": "cao2022_phase", "size": "tiny", "base_seed": SEED, **options})
    assert sentence in str(caught.value) and str(caught.value)[-1] in ".?"


def test_the_largest_base_seed_is_one(skeleton):
    assert verify("mine", "tiny", base_seed=2**31 - 25, claims=skeleton()).base_seed == 2**31 - 25


# ---- Perturbation


@pytest.mark.slow
def test_perturbed_claims_have_statuses_of_their_own(skeleton):
    """A law that holds at width 16 alone is supported there, and refuted at the next width."""
    corner = (" -1.0, rivals=(-2.0, -0.5)", " -1.0 if self.width == 16 else -1.5, rivals=(-2.0, -0.5)")
    verdict = tiny("mine", skeleton("mine", corner), perturb=True)
    assert verdict.status == "supported"
    assert verdict.perturbed == {"width 16 -> 32": "refuted", "other seeds": "supported"}
    assert as_json(verdict)["perturbed"] == verdict.perturbed
    assert "✗ width 16 -> 32: refuted" in str(verdict) and "✓ other seeds: supported" in str(verdict)
    assert "✗ width 16 -&gt; 32: refuted" in verdict._repr_html_()


def test_the_other_seeds_are_others(skeleton, monkeypatch):
    seen = []
    begin = Lab.__init__

    def noted(self, size, seeds, *rest, **options):
        seen.append(set(seeds))
        begin(self, size, seeds, *rest, **options)

    monkeypatch.setattr(Lab, "__init__", noted)
    no_knobs = ("    width: int = 16\n", "    width = 16\n")  # so that only the seeds are changed
    for base_seed in (SEED, 50_000):
        seen.clear()
        verify(
            "mine",
            "tiny",
            base_seed=base_seed,
            claims=skeleton("mine", no_knobs, folder=str(base_seed)),
            perturb=True,
        )
        first, other = seen
        assert first == set(range(base_seed, base_seed + 24)) and len(other) == 24 and not first & other


# ---- The verdict's logic, from measurements that are made up

GOOD = equals("near", np.linspace(0.99, 1.01, 24), 1.0)
BAD = equals("far", np.linspace(1.99, 2.01, 24), 1.0)
WIDE = equals("wide", np.linspace(0.5, 1.5, 24), 1.0)
HOLDS, FAILS = Assumption("n^2 / d", 0.01, "<< 1"), Assumption("m / log n", 0.5, ">= 1")


def made(*checks, control=BAD, assumptions=(HOLDS,), judged=10, **facts):
    base = dict(
        id="mine", title="a law", size="tiny", seconds=1.0, control_changes="one ingredient", seeds=3,
        base_seed=SEED, trained_fraction=1.0, setting={}, versions={},
    )  # fmt: skip
    return Verdict(checks=checks, control=control, assumptions=assumptions, judged=judged, **{**base, **facts})


@pytest.mark.parametrize(
    "verdict, status, reason",
    [
        (made(GOOD), "supported", "every interval"),
        (made(GOOD, GOOD), "supported", "every interval"),
        (made(GOOD, BAD), "refuted", "far: 2 "),
        (made(WIDE, BAD), "refuted", "far: 2 "),
        (made(GOOD, WIDE), "inconclusive", "wide: 1 "),
        (made(BAD, control=GOOD), "refuted", "far: 2 "),
        (made(WIDE, control=GOOD), "inconclusive", "wide: 1 "),
        (
            made(GOOD, control=GOOD),
            "inconclusive",
            "the control (one ingredient) should be refuted and is supported",
        ),
        (made(GOOD, control=WIDE), "inconclusive", "should be refuted and is inconclusive: 1 ["),
        (made(GOOD, assumptions=()), "supported", "every interval"),
        (
            made(GOOD, assumptions=(HOLDS, FAILS)),
            "inconclusive",
            "seen, but outside the theorem: m / log n is 0.5",
        ),
        (made(BAD, assumptions=(FAILS,)), "inconclusive", "judged, but outside the theorem: m / log n is 0.5"),
        (made(GOOD, control=GOOD, assumptions=(FAILS,)), "inconclusive", "seen, but outside the theorem"),
    ],
)
def test_the_worst_of_what_was_seen_decides(verdict, status, reason):
    assert verdict.status == status and reason in verdict.reason
    assert verdict.status in EXIT_CODES


def test_more_checks_make_refutation_harder_and_support_no_easier():
    edge = equals("edge", np.linspace(1.02, 1.14, 24), 1.0)
    assert [made(edge, judged=judged).status for judged in (1, 1000)] == ["refuted", "inconclusive"]
    assert {made(GOOD, judged=judged).status for judged in (1, 10)} == {"supported"}


@pytest.mark.parametrize(
    "one, holds",
    [
        (Assumption("a", 0.1, "<< 1"), True),
        (Assumption("a", 0.11, "<< 1"), False),
        (Assumption("a", 1.0, ">= 1"), True),
        (Assumption("a", 0.99, ">= 1"), False),
        (Assumption("a", math.nan, "<< 1"), False),
        (Assumption("a", math.nan, ">= 1"), False),
    ],
)
def test_when_an_assumption_holds(one, holds):
    assert one.holds == holds
    assert made(GOOD, assumptions=(one,)).record()["assumptions"][0]["holds"] == holds


def test_rivals_are_counted():
    n, seeds = np.array([10.0, 20.0, 40.0]), np.linspace(-1, 1, 24)

    def law(name, values):
        y = xr.DataArray(values, coords={"n": n}, dims=("n", "seed"))
        return scales_as(name, y, "n", 1.0, rivals=(0.5, 2.0))

    sharp = law("sharp", n[:, None] * (1 + 0.1 * seeds))
    blurred = law("blurred", n[:, None] ** (1 + 5 * seeds))
    assert "rival exponents refuted: 2 of 4" in str(made(sharp, blurred))
    assert "rival exponents refuted: 2 of 2" in made(sharp)._repr_html_()
    assert "rival" not in str(made(GOOD))
    rivals = [check["rivals"] for check in made(sharp, blurred).record()["checks"]]
    assert rivals[0] == [{"expected": 0.5, "refuted": True}, {"expected": 2.0, "refuted": True}]
    assert [rival["refuted"] for rival in rivals[1]] == [False, False]


def one_of_each_kind():
    return [
        equals(r"ratio \gamma < \rho", [1.0, 1.01, 0.99], 1.0),
        at_most("error [per sample]", [0.1, 0.2, 0.3], 0.5),
        at_least("loss & more [/of it]", [0.5, 0.6, 0.7], 0.1),
        identity("excess", 0.0),
        scales_as(
            "missing", xr.DataArray(np.full((3, 3), np.nan), coords={"n": [1, 2, 3]}, dims=("n", "seed")), "n", 1.0
        ),
    ]


def shown(verdict):
    checks = [(check.name, f"{check.measured:.4g}") for check in verdict.checks]
    checks += [(f"[{check.interval()[0]:.4g}, ",) for check in verdict.checks if check.chance]
    control = [("control: <b> & [x]", "2", "refuted")]
    facts = [("n^2 / d [small]: 0.01 (should be << 1)",), ("m < n: 0.5 (should be >= 1)",), (verdict.reason,)]
    ranges = [("1 ± 0.05", "≤ 0.5", "≥ 0.1", "≤ 1e-12"), ("[nan, nan]", "mine", "a law of [n]")]
    return [word for row in (*checks, *control, *facts, *ranges) for word in row]


def test_tables_name_everything_whatever_letters_it_has():
    """Brackets are markup to the terminal's table, angles to a browser; neither may be lost or believed."""
    assumptions = (Assumption("n^2 / d [small]", 0.01, "<< 1"), Assumption("m < n", 0.5, ">= 1"))
    verdict = made(*one_of_each_kind(), assumptions=assumptions, control_changes="<b> & [x]", title="a law of [n]")
    page = verdict._repr_html_()
    told = html.unescape(re.sub("<[^>]*>", "\n", page))
    for word in shown(verdict):
        assert word in str(verdict), word
        assert word in told, word
    assert "TOO SMALL TO JUDGE" in str(verdict) and "mine: too small to judge" in told
    assert "<b>" not in page and "&lt;b&gt; &amp; [x]" in page
    assert page.count("<tr>") == page.count("</tr>") == 1 + 5 + 1 and page.count("<td>") == 6 * len(COLUMNS)


def test_a_verdict_as_a_data_frame_has_the_numbers_of_its_record():
    verdict = made(*one_of_each_kind())
    frame, checks = verdict.to_dataframe(), verdict.record()["checks"]
    assert list(frame.index) == [one["name"] for one in checks] and len(checks) == 5
    for one in checks:
        row = frame.loc[one["name"]]
        told = [math.nan if one[name] is None else one[name] for name in ("measured", "low", "high")]
        np.testing.assert_array_equal([row.measured, row.low, row.high], told)
        assert (row.status, row.evidence, row.kind) == (one["status"], one["evidence"], one["kind"])


def test_a_control_that_is_refuted_is_as_it_should_be():
    rows = {row[1]: row for row in made(GOOD, BAD, control=dataclasses.replace(BAD, name="other"))._rows()}
    assert [rows[name][0] for name in ("near", "far", "control: one ingredient")] == ["✓", "✗", "✓"]
    (*_, control) = made(GOOD, control=WIDE)._rows()
    assert control[0] == "?"


# ---- The built-in claims


@each_claim
def test_a_built_in_claim_is_complete(claim):
    assert isinstance(claim, Claim) and CLAIMS[claim.id] is claim and type(claim).problem() is None
    assert sys.modules[type(claim).__module__].__doc__.strip().endswith(".")
    for text in (claim.title, claim.refuted_if, claim.control_changes):
        assert text.strip() == text and "\n" not in text and not text.endswith(".")
    assert "\\" in claim.statement and "$" not in claim.statement and balanced(claim.statement)
    assert claim.statement.count(r"\bigl") == claim.statement.count(r"\bigr")
    entry = re.fullmatch(r"@\w+\{\w+,\n(.*)\n\}", claim.reference, re.DOTALL)
    assert entry and balanced(claim.reference)
    fields = re.findall(r"^ *(\w+) *= *\{.*\},?$", entry[1], re.MULTILINE)
    assert {"title", "author", "year"} <= set(fields) and len(fields) == len(entry[1].splitlines())
    assert tuple(claim.sizes) == SIZES and claim.sizes["laptop"].seeds >= FEWEST and 0 < claim.minutes <= 10
    assert [claim.sizes[size].seeds for size in SIZES] == sorted(claim.sizes[size].seeds for size in SIZES)


def balanced(text):
    depths = np.cumsum([{"{": 1, "}": -1}.get(letter, 0) for letter in text])
    return depths.min() >= 0 and depths[-1] == 0


@each_claim
def test_a_typical_experiment_is_one_the_theorem_speaks_of(claim):
    typical = claim.typical()
    assert isinstance(typical, fl.Experiment)
    conditions = claim.assumptions(typical)
    assert conditions and all(one.holds and one.should in ("<< 1", ">= 1") for one in conditions), conditions


@each_claim
def test_a_perturbed_claim_differs_in_one_knob(claim):
    variants = claim.perturbed()
    assert len(variants) >= 2
    for change, variant in variants.items():
        assert type(variant) is type(claim)
        changed = [name for name, value in variant.knobs.items() if value != claim.knobs[name]]
        assert len(changed) == 1, change


class Rehearsal(Lab):
    """A lab that trains nothing: every run ends with the same made-up numbers."""

    def _read(self, experiment):
        self.deciding.append(experiment)
        made_up = {"steps_taken": ("seed", np.full(len(self.seeds), 500.0))}
        for probe in experiment.probes:
            known = dict(getattr(probe, "settings", {}))
            known.setdefault("direction", [0] * getattr(unbatched(experiment.data), "directions", 2))
            for name, variable in (as_running(probe) or probe).variables:
                dims = [d for d in variable.dims.split() if d not in known or isinstance(known[d], list | tuple)]
                shape = [len(known[dim]) if isinstance(known.get(dim), list | tuple) else 3 for dim in dims]
                value = 500.0 if name.endswith("_time") else 0.1
                made_up[name] = (["seed", *dims], np.full((len(self.seeds), *shape), value))
        for clock in (getattr(probe, "clock", None) for probe in experiment.probes):
            if getattr(clock, "name", None):
                made_up[clock.name] = ("seed", np.full(len(self.seeds), 500.0))
        coords = {"seed": list(self.seeds), "trained": ("seed", np.ones(len(self.seeds), bool))}
        read = xr.Dataset(made_up, coords)
        options = {dim: list(v) for p in experiment.probes for dim, v in dict(getattr(p, "settings", {})).items()
                   if dim in read.dims and isinstance(v, list | tuple)}  # fmt: skip
        return read.assign_coords(options)

    def _searched(self, make, cell, parameter, variable, levels, ends, options):
        middle = math.sqrt(math.prod(ends))
        self.deciding.append(make(**cell, **{parameter: middle}))
        at = np.full((len(levels), len(self.seeds)), middle)
        coords = {
            "level": list(levels),
            "seed": list(self.seeds),
            "trained": ("seed", np.ones(len(self.seeds), bool)),
        }
        return xr.Dataset({parameter: (["level", "seed"], at)}, coords)


@functools.cache
def rehearsed(name, size):
    claim = CLAIMS[name]
    lab = Rehearsal(claim.sizes[size], range(SEED, SEED + 3), growing=claim.growing)
    checks, deciding = list(claim.checks(lab)), list(lab.deciding)
    *checks, control = followed(claim.judgements, lab, [*checks, claim.control(lab)])
    return checks, deciding, control


@pytest.mark.xdist_group("rehearsal")
@each_claim
@pytest.mark.parametrize(
    "size", [size if size == "laptop" else pytest.param(size, marks=pytest.mark.slow) for size in SIZES]
)
def test_the_checks_of_every_size_fit_their_clauses(claim, size):
    """Nothing is trained: the experiments are stated, their conditions computed, the judges called."""
    checks, deciding, control = rehearsed(claim.id, size)
    names = [check.name for check in checks]
    assert len(set(names)) == len(names) > 0
    judges = {(check.name, check.kind, check.expected, check.margin) for check in checks}
    assert (control.name, control.kind, control.expected, control.margin) in judges  # the same judge
    assert not [check.doubt for check in (*checks, control) if check.doubt]  # of seeds and runs
    assert deciding and all(isinstance(one, fl.Experiment) for one in deciding)
    clauses = clauses_of(claim, names)
    assert {name for one in clauses for name in one.checks} == set(names)  # no check without a clause
    if size == "tiny":  # structure only
        return
    for check in (*checks, control):
        assert not check.points.get("local") is not None or len(check.points["x"]) >= 2, check.name
    assert all(one.holds for experiment in deciding for one in claim.assumptions(experiment))


@pytest.mark.xdist_group("rehearsal")
def test_no_more_checks_are_judged_together_than_refutation_is_corrected_for():
    assert sum(len(rehearsed(name, "laptop")[0]) for name in CLAIMS) <= TOGETHER


SOON = {"lazy_or_rich"}  # the others are minutes of compiling


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claim, id=name, marks=[] if name in SOON else pytest.mark.slow)
        for name, claim in CLAIMS.items()
    ],
)
def test_a_built_in_claim_is_verified(claim):
    verdict = tiny(claim)
    assert verdict.checks and isinstance(verdict.control, Check)
    assert verdict.status in EXIT_CODES and verdict.reason and verdict.id == claim.id
    record = as_json(verdict)
    for check in (*record["checks"], record["control"]):
        assert check["status"] in EXIT_CODES and isinstance(check["passed"], bool)
        for name in ("measured", "low", "high"):
            assert check[name] is None or math.isfinite(check[name])
        assert math.isfinite(check["expected"]) and check["margin"] >= 0 and check["samples"]
    assert verdict.trained_fraction is not None or verdict.assumptions
    rebuilt = {name: fl.rebuild(value) for name, value in record["setting"].items()}
    assert rebuilt == claim.knobs


def test_the_base_seed_of_verdicts_is_used_nowhere_else():
    """Nor are those that follow it; the stored verdicts, which are data, may say where they come from."""
    kinds = {".py", ".md", ".toml", ".txt", ".cfg", ""}
    files = [path for name in ("tests", "examples", "benchmarks", "docs") for path in (ROOT / name).rglob("*")]
    files = [
        path for path in [*files, ROOT / "README.md", ROOT / "Makefile"] if path.suffix in kinds and path.is_file()
    ]
    assert len(files) > 20
    for path in files:
        numbers = {int(digits.replace("_", "")) for digits in re.findall(r"\d[\d_]*", path.read_text())}
        assert not any(BASE_SEED <= number < BASE_SEED + 5_000_000 for number in numbers), path


# ---- Slow: verdicts that mean something


class WrongPower(Phase):
    """The law of ReLU^2, asked of ReLU^3."""

    clauses = {}
    control_changes = "judged against -1"

    def checks(self, lab):
        yield self._against(lab, -1 / 2)

    def control(self, lab):
        return self._against(lab, -1.0)

    def _against(self, lab, exponent):
        found = lab.boundary(
            self.experiment, "snr", "test_loss", 0.35, n=lab.size.n, power=3, tolerance=0.02,
            between=lambda n: ((0.25 / n) ** (1 / 3), (32 / n) ** (1 / 3)),
        )  # fmt: skip
        return scales_as("SNR* in n", found.snr.sel(level=0.35), "n", exponent)


@pytest.mark.slow
def test_a_claim_pointed_at_a_wrong_exponent_is_refuted():
    verdict = verify(WrongPower(), "smoke", seeds=24, base_seed=SEED)
    assert verdict.status == "refuted" and "SNR* in n: -0.3" in verdict.reason
    (check,) = verdict.checks
    assert not check.refutes(-1 / 3, verdict.judged)


@pytest.mark.slow
@each_claim
def test_no_other_seeds_say_the_opposite(claim):
    """What some seeds leave open others may decide; `other_seeds.py` counts how often."""
    status = kept_verdicts()[claim.id]["status"]
    verdict = verify(claim, "laptop", base_seed=1_610_010_000)
    assert {status, verdict.status} != {"supported", "refuted"}, verdict.reason


def test_no_kept_outcome_on_other_seeds_says_the_opposite():
    """Of every claim there are some, and those of the claims as they stand."""
    spec = importlib.util.spec_from_file_location("other_seeds", Path(__file__).with_name("other_seeds.py"))
    other_seeds = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(other_seeds)
    for name, (status, counts) in other_seeds.counted().items():
        assert counts.total() > 0, f"run tests/claims/other_seeds.py --only {name}"
        assert not {"supported", "refuted"} <= {status, *counts}, name
