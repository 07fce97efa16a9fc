"""Verdicts that are kept with the package, and smaller runs beside them."""

import dataclasses

import pytest

from featlab.claims import find_claim, find_claims
from featlab.claims import kept as module
from featlab.claims.deciding import deciding_runs
from featlab.claims.kept import compared, decided, kept_verdicts

NAME = "cao2022_phase"


def test_every_claim_has_a_kept_verdict_and_it_is_that_of_the_log():
    kept = kept_verdicts()
    assert set(kept) == set(find_claims())
    for name, claim in find_claims().items():
        last = deciding_runs(claim)[-1]
        assert (kept[name]["status"], kept[name]["base_seed"]) == (last["status"], last["base_seed"])
        assert {one["name"]: one["status"] for one in kept[name]["checks"]} == last["checks"]


@pytest.mark.parametrize(
    ("size", "shown"),
    [(None, True), ("tiny", True), ("smoke", True), ("laptop", False), ("full", False), ("of mine", False)],
)
def test_what_was_decided_is_shown_where_it_says_more(size, shown):
    found = decided(find_claim(NAME), None if size is None else {"size": size})
    assert (found is not None) == shown
    if found is not None:
        assert found["date"].startswith("20") and found["status"] == kept_verdicts()[NAME]["status"]


def test_what_was_decided_of_another_source_or_setting_is_not_shown(monkeypatch):
    claim = find_claim(NAME)
    assert decided(dataclasses.replace(claim, width=claim.width + 1)) is None
    monkeypatch.setattr(module, "usual_base_seed", lambda claim: module.EXPLORING)
    assert decided(claim) is None


def test_what_was_decided_says_how_other_seeds_came_out():
    found = decided(find_claim("meng2024_xor"))
    assert found is not None and found["status"] == "supported"
    assert found["other_seeds"]["inconclusive"] > found["other_seeds"]["supported"]


def check(name, status, measured=1.0, lower=0.0, upper=2.0):
    return {"name": name, "status": status, "measured": measured, "lower": lower, "upper": upper}


def test_a_smaller_run_is_consistent_unless_it_says_the_opposite():
    statuses = {"a": "supported", "b": "refuted", "c": "supported", "d": "supported"}
    kept = {"checks": [check(name, status) for name, status in statuses.items()]}
    same = {"checks": [check("a", "inconclusive", 3.0), check("b", "inconclusive", None), check("c", "supported")]}
    assert compared(kept, same) == ((), 1, 3)
    other = {"checks": [check("a", "refuted", 3.0), check("b", "supported"), check("c", "supported", -9.0, None)]}
    assert compared(kept, other) == (("a", "b"), 2, 3)
