"""A wrong theory: a claim in which one thing is changed so that its checks must not come out supported."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

from featlab.claims import Claim, Lab, Size, find_claim
from featlab.claims.judge import TOGETHER
from featlab.claims.replay import followed


class Rival(NamedTuple):
    """What is wrong with it, and the checks that must notice."""

    claim: str
    words: str
    change: Callable[[Claim], Claim]  # the claim as its file has it -> the same with the wrong theory
    checks: str  # pattern of the names of the checks that must not be supported
    seeds: int = 24
    size: dict[str, Any] | None = None  # in place of the values of the laptop size, where smaller ones do
    base_seed: int = 1_400_000_000


def wrong(claim: Claim, **methods: Any) -> Claim:
    """The same claim with methods or class facts of another theory: `wrong(claim, experiment=...)`."""
    changed = type(type(claim).__name__, (type(claim),), {"__module__": type(claim).__module__, **methods})
    return changed(**claim.knobs)


def statuses(rival: Rival, pattern: Callable[[str], bool]) -> dict[str, str]:
    """How the checks whose names fit came out."""
    claim = rival.change(find_claim(rival.claim))
    laptop = claim.sizes["laptop"]
    size = Size(rival.seeds, **(laptop.values | (rival.size or {})))
    seeds = range(rival.base_seed, rival.base_seed + rival.seeds)
    lab = Lab(size, seeds, trained=claim.trained, growing=claim.growing)
    checks = followed(claim.checks, lab, list(claim.checks(lab)))
    return {check.name: check.status(TOGETHER) for check in checks if pattern(check.name)}


def replaced(claim: Claim, **knobs: Any) -> Claim:
    """The same claim with other numbers in its setting."""
    return dataclasses.replace(claim, **knobs)
