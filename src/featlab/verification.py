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
from featlab.claims import Assumption, Claim, Lab, find_claim, find_claims
from featlab.claims._claim import SIZES
from featlab.description import describe, rebuild
from featlab.fields import InputError, whole_if_exact
from featlab.progress import progress_bar
from featlab.verdict import Verdict

BASE_SEED = 1_600_000_000  # kept for verdicts: no search, example or test uses seeds from here on
_STRIDE = 10_000  # between the base seeds of one verdict's variations


def verify(
    claim: str | Claim,
    size: str = "laptop",
    *,
    seeds: int | None = None,
    base_seed: int = BASE_SEED,
    claims: str | Path | None = None,
    perturb: bool = False,
    progress: bool | None = None,
    judged: int | None = None,
) -> Verdict:
    """Measure what the theorem speaks about, judge it, and return the verdict.

    `claim` is an id or a claim; `claims` a folder with claim files of your own. With `perturb` the claim is
    verified again with one knob of its setting changed at a time: a theorem stays, a tuned corner does not.
    `judged` is the number of checks that refutation is corrected for; all in the atlas, if left out.
    """
    claim = find_claim(claim, claims) if isinstance(claim, str) else claim
    if not isinstance(claim, Claim):
        raise InputError(f"verify(claim) must be the id of a claim or a claim, got {claim!r}.")
    if size not in SIZES:
        raise InputError(f"verify(size=) must be one of {', '.join(SIZES)}, got {size!r}.")
    count = claim.sizes[size].seeds if seeds is None else whole_if_exact(seeds)
    if not isinstance(count, int) or isinstance(count, bool) or count < 1:
        raise InputError(f"verify(seeds=) must be a whole number of at least 1, got {seeds!r}.")
    if not isinstance(base_seed, int) or not 0 <= base_seed <= 2**31 - 1 - count:
        raise InputError(
            f"verify(base_seed=) must be a whole number from 0 to 2^31 - 1 - seeds, got {base_seed!r}."
        )
    if judged is not None and (not isinstance(judged, int) or judged < 1):
        raise InputError(f"verify(judged=) must be a whole number of at least 1, got {judged!r}.")
    judged = checks_in_atlas(claim, claims) if judged is None else judged
    variants = claim.perturbed() if perturb else {}
    total = (1 + len(variants) + perturb) * (claim.number_of_checks + 1)
    with progress_bar(f"verifying {claim.id}", total, shown=progress, unit="checks") as tell:
        verdict = _judged(claim, size, count, base_seed, judged, tell, 0)
        perturbed = {}
        for i, (change, variant) in enumerate(variants.items(), 1):
            one = _judged(variant, size, count, base_seed, judged, tell, i * (claim.number_of_checks + 1))
            perturbed[change] = one.status
        if perturb:
            other = base_seed - _STRIDE if base_seed >= _STRIDE else base_seed + _STRIDE
            done = (1 + len(variants)) * (claim.number_of_checks + 1)
            perturbed["other seeds"] = _judged(claim, size, count, other, judged, tell, done).status
    return dataclasses.replace(verdict, perturbed=perturbed)


def verify_again(record: Mapping[str, Any], claims: str | Path | None = None, **options) -> Verdict:
    """Repeat a verdict from its own record: the same setting, seeds and size give the same numbers."""
    claim, same = read_job(record, claims)
    return verify(claim, claims=claims, **same, **options)


def read_records(path: str | Path) -> list[dict[str, Any]]:
    """The records in a JSON file: one, or a list as `featlab verify --json` prints."""
    try:
        found = json.loads(Path(path).read_text())
    except OSError:
        raise InputError(
            f"There is no file {str(path)!r}; give a file that `featlab verify --json` wrote."
        ) from None
    except ValueError as error:
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


def _judged(
    claim: Claim, size: str, count: int, base_seed: int, judged: int, tell: Callable, done: int
) -> Verdict:
    begun, made_by = time.perf_counter(), versions(claim)
    checks = []
    lab = Lab(
        claim.sizes[size],
        range(base_seed, base_seed + count),
        lambda trainings: tell(done + len(checks), f"({trainings} trainings)"),
    )
    for check in claim.checks(lab):
        checks.append(check)
        tell(done + len(checks))
    if not 1 <= len(checks) == claim.number_of_checks:
        raise InputError(
            f"{claim.id} says number_of_checks = {claim.number_of_checks}, and its checks are {len(checks)}."
        )
    deciding, fraction = list(lab.deciding), lab.trained_fraction
    control = claim.control(lab)
    tell(done + len(checks) + 1)
    return Verdict(
        id=claim.id,
        title=claim.title,
        size=size,
        seconds=time.perf_counter() - begun,
        checks=tuple(checks),
        control=control,
        control_changes=claim.control_changes,
        assumptions=tuple(_worst([claim.assumptions(experiment) for experiment in deciding])),
        seeds=count,
        base_seed=base_seed,
        trained_fraction=fraction,
        setting={name: describe(value) for name, value in claim.knobs.items()},
        versions=made_by,
        judged=judged,
    )


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


def checks_in_atlas(claim: Claim, folder: str | Path | None = None) -> int:
    """How many checks are judged together: those of this claim and of all others there are."""
    others = [one for name, one in find_claims(folder).items() if name != claim.id]
    return sum(one.number_of_checks for one in [claim, *others])


def _worst(found: list[list[Assumption]]) -> list[Assumption]:
    """Each assumption at the deciding cell where it is closest to failing."""
    return [min(same, key=lambda one: one.room) for same in zip(*found)]
