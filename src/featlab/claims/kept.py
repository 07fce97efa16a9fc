"""Verdicts of deciding runs, kept with the package: what a reader sees before anything is repeated."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from featlab.claims.claim import SIZES, Claim
from featlab.claims.deciding import EXPLORING, deciding_runs, usual_base_seed

KEPT = Path(__file__).parent / "theorems" / "verdicts.json"
OTHER = KEPT.with_name("other_seeds.jsonl")  # outcomes on seeds that nothing was decided on


def kept_verdicts() -> dict[str, dict[str, Any]]:
    """The records of deciding runs, by claim."""
    return {one["id"]: one for one in json.loads(KEPT.read_text("utf-8"))}


def on_other_seeds() -> dict[str, Counter[str]]:
    """How often each status came out on other sets of seeds, by claim."""
    found: dict[str, Counter[str]] = {}
    for one in map(json.loads, OTHER.read_text("utf-8").splitlines()):
        found.setdefault(one["id"], Counter())[one["status"]] += 1
    return found


def decided(claim: Claim, record: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """What was decided of a claim, with its `date` and how `other_seeds` came out, where a record says less.

    Not where the claim has changed since, or another setting of it is asked for, nor beside a run as large.
    """
    kept = kept_verdicts().get(claim.id)
    if kept is None or claim.knobs != type(claim)().knobs or usual_base_seed(claim) == EXPLORING:
        return None
    if record is not None and record.get("size") not in SIZES[: SIZES.index(kept["size"])]:
        return None
    dates = {run["base_seed"]: run["date"] for run in deciding_runs(claim)}
    other = on_other_seeds().get(claim.id, Counter())
    return kept | {"date": dates.get(kept["base_seed"], ""), "other_seeds": other}


class Repetition(NamedTuple):
    """How a smaller run compares with the kept one."""

    contradicted: tuple[str, ...]  # checks that one of them supports and the other refutes
    inside: int  # checks whose number lies where theory allows
    common: int


def compared(kept: Mapping[str, Any], record: Mapping[str, Any]) -> Repetition:
    """The checks that both have, by their names."""
    again = {check["name"]: check for check in record["checks"]}
    both = [(check, again[check["name"]]) for check in kept["checks"] if check["name"] in again]
    opposite = [one["name"] for one, two in both if {one["status"], two["status"]} == {"supported", "refuted"}]
    return Repetition(tuple(opposite), sum(_inside(two) for _, two in both), len(both))


def _inside(check: Mapping[str, Any]) -> bool:
    measured, low, high = (check.get(name) for name in ("measured", "lower", "upper"))
    return measured is not None and (low is None or measured >= low) and (high is None or measured <= high)
