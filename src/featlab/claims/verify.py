"""`verify`: put a theorem to the test and say what came of it."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import platform
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax

import featlab
from featlab.claims import Assumption, Check, Claim, Lab, find_claim
from featlab.claims.claim import SIZES, clauses_of
from featlab.claims.deciding import STRIDE, log_decision, open_decision, registration, usual_base_seed
from featlab.claims.judge import TOGETHER
from featlab.claims.replay import followed
from featlab.claims.verdict import Verdict
from featlab.core.validation import InputError, whole_if_exact
from featlab.engine.progress import progress_bar
from featlab.text import describe, rebuild

DECIDING_SIZES = ("laptop", "full")


def verify(
    claim: str | Claim,
    size: str = "laptop",
    *,
    seeds: int | None = None,
    base_seed: int | None = None,
    claims: str | Path | None = None,
    perturb: bool = False,
    progress: bool | None = None,
    judged: int = TOGETHER,
    decide: bool = False,
) -> Verdict:
    """Measure what the theorem speaks about, judge it, and return the verdict.

    `claim` is an id or a claim; `claims` a folder with claim files of your own. With `perturb` the claim is
    verified again with one knob of its setting changed at a time: a theorem stays, a tuned corner does not.
    The seeds are those the claim was decided on, or others while its source has changed since; with `decide` they
    are fresh, and the outcome enters the log of deciding runs. `judged` is the number of checks that refutation is
    corrected for: at least those of the atlas.
    """
    claim = find_claim(claim, claims) if isinstance(claim, str) else claim
    if not isinstance(claim, Claim):
        raise InputError(f"verify(claim) must be the id of a claim or a claim, got {claim!r}.")
    if size not in SIZES:
        raise InputError(f"verify(size=) must be one of {', '.join(SIZES)}, got {size!r}.")
    count = claim.sizes[size].seeds if seeds is None else whole_if_exact(seeds)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"verify(seeds=) must be a whole number of at least 1, got {seeds!r}.")
    if decide and (base_seed is not None or size not in DECIDING_SIZES or seeds is not None):
        raise InputError(
            "verify(decide=True) takes fresh seeds, as many as the claim says, at laptop size or full."
        )
    if not isinstance(judged, int) or judged < 1:
        raise InputError(f"verify(judged=) must be a whole number of at least 1, got {judged!r}.")
    if decide and (judged != TOGETHER or claim.knobs != type(claim)().knobs):
        raise InputError(
            f"verify(decide=True) decides {claim.id} as it is registered: with the knobs of its file and "
            f"judged={TOGETHER}."
        )
    if base_seed is None:
        base_seed = open_decision(claim, size, count) if decide else usual_base_seed(claim)
    if not isinstance(base_seed, int) or not 0 <= base_seed <= 2**31 - 1 - count:
        raise InputError(
            f"verify(base_seed=) must be a whole number from 0 to 2^31 - 1 - seeds, got {base_seed!r}."
        )
    variants = claim.perturbed() if perturb else {}
    with progress_bar(f"verifying {claim.id}", None, shown=progress, unit="checks") as tell:
        verdict = _judged(claim, size, count, base_seed, judged, tell)
        perturbed = {}
        for change, variant in variants.items():
            perturbed[change] = _judged(variant, size, count, base_seed, judged, tell).status
        if perturb:
            apart = max(STRIDE, count)
            other = base_seed - apart if base_seed >= apart else base_seed + apart
            perturbed["other seeds"] = _judged(claim, size, count, other, judged, tell).status
    verdict = dataclasses.replace(verdict, perturbed=perturbed)
    if decide:
        log_decision(claim, verdict.record())
    return dataclasses.replace(verdict, registered=registration(claim, base_seed, size, count, verdict.status))


def verify_again(record: Mapping[str, Any], claims: str | Path | None = None, **options) -> Verdict:
    """Repeat a verdict from its own record: the same setting, seeds and size give the same numbers."""
    claim, same = read_job(record, claims)
    return verify(claim, claims=claims, **same, **options)


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """The records in a JSON file: one, or a list as `featlab verify --json` prints."""
    try:
        found = json.loads(Path(path).read_text("utf-8"))
    except OSError:
        raise InputError(
            f"There is no file {str(path)!r}; give a file that `featlab verify --json` wrote."
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} is not JSON: {error}.") from None
    found = found if isinstance(found, list) else [found]
    if not found or not all(isinstance(one, dict) and "id" in one for one in found):
        raise InputError(f"{str(path)!r} holds no verdicts; give a file that `featlab verify --json` wrote.")
    return found


def read_job(record: Mapping[str, Any], claims: str | Path | None = None) -> tuple[Claim, dict[str, Any]]:
    """The claim of a record with its knobs, and the arguments of `verify` that give the same numbers again."""
    kinds = {"id": str, "setting": Mapping, "size": str, "seeds": int, "base_seed": int, "judged": int}
    for name, kind in kinds.items():
        if not isinstance(record, Mapping) or not isinstance(record.get(name), kind):
            raise InputError(f"This is not the record of a verdict: {name!r} is missing or of the wrong kind.")
    knobs = {name: rebuild(str(value)) for name, value in record["setting"].items()}
    claim = dataclasses.replace(find_claim(record["id"], claims), **knobs)
    return claim, {name: record[name] for name in ("size", "seeds", "base_seed", "judged")}


def _judged(claim: Claim, size: str, count: int, base_seed: int, judged: int, tell: Callable) -> Verdict:
    begun, made_by = time.perf_counter(), versions(claim)
    checks = []
    lab = Lab(
        claim.sizes[size],
        range(base_seed, base_seed + count),
        lambda trainings: tell(len(checks), f"({trainings} trainings)"),
        trained=claim.trained,
        growing=claim.growing,
    )
    for check in claim.checks(lab):
        checks.append(_check(check, f"{claim.id}.checks"))
        tell(len(checks))
    names = [check.name for check in checks]
    if not checks or len(set(names)) < len(names):
        raise InputError(f"{claim.id} must yield checks, each with a name of its own; it yields {names}.")
    about = [] if claim.rival else [claim.typical()]  # a formula has no setting
    deciding, fraction = list(lab.deciding) or about, lab.trained_fraction
    control = _check(claim.control(lab), f"{claim.id}.control")
    *checks, control = followed(claim.judgements, lab, [*checks, control])
    tell(len(checks) + 1)
    return Verdict(
        id=claim.id,
        title=claim.title,
        size=size,
        seconds=time.perf_counter() - begun,
        checks=tuple(checks),
        control=control,
        control_changes=claim.control_changes,
        clauses=tuple(clauses_of(claim, names)),
        algebra=claim.algebra,
        rival=claim.rival,
        exploratory=claim.exploratory,
        assumptions=tuple(_worst([claim.assumptions(experiment) for experiment in deciding])),
        seeds=count,
        base_seed=base_seed,
        trained_fraction=fraction,
        setting={name: describe(value) for name, value in claim.knobs.items()},
        versions=made_by,
        judged=judged,
    )


def _check(found: Any, owner: str) -> Check:
    if not isinstance(found, Check):
        raise InputError(f"{owner} must give a check, as at_most(...) is one, and gives {type(found).__name__}.")
    return found


def versions(claim: Claim) -> dict[str, str]:
    """What the numbers depend on beside setting and seed."""
    return {
        "featlab": featlab.__version__,
        "source": _source(sys.modules[type(claim).__module__].__file__),
        "jax": jax.__version__,
        "python": platform.python_version(),
        "device": jax.default_backend(),
    }


@functools.cache
def _source(claim_file: str | None) -> str:
    """A fingerprint of featlab's code and of the claim's file."""
    files = sorted(Path(featlab.__file__).parent.rglob("*.py"))
    files += [Path(claim_file)] if claim_file is not None else []
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _worst(found: list[list[Assumption]]) -> list[Assumption]:
    """Each assumption at the deciding cell where it is closest to failing, of those it is made of."""
    by_sentence: dict[str, list[Assumption]] = {}
    for one in (one for same in found for one in same):
        by_sentence.setdefault(one.sentence, []).append(one)
    return [min(same, key=lambda one: one.room) for same in by_sentence.values()]
