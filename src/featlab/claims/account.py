"""What the lab knows of a check that its numbers do not say: the seeds it should have, the runs behind it."""

from __future__ import annotations

import dataclasses
from typing import Any

from featlab.claims.judge import Check, few_runs
from featlab.claims.lab import Lab
from featlab.core.validation import InputError
from featlab.sweeps.contour import TRAINED


def accounted(check: Any, lab: Lab, owner: str) -> Check:
    """The check as a claim yields it, with what the lab knows of it."""
    if not isinstance(check, Check):
        raise InputError(f"{owner} must give a check, as at_most(...) is one, and gives {type(check).__name__}.")
    # What lost the account of its runs may rest on any that were read.
    doubt = _other_seeds(check, lab) or (untrained_cell(lab) if check.account is None else "")
    return dataclasses.replace(check, growing=lab.growing, doubt=doubt)


def _other_seeds(check: Check, lab: Lab) -> str:
    """Whether it has other seeds than the lab: dropped, chosen, repeated or made of cells."""
    count = check.samples.shape[1]
    if not check.chance or count == len(lab.seeds) and check.seed_labels in (None, tuple(lab.seeds)):
        return ""
    return f"it was given {count} values by seed that are not those of the {len(lab.seeds)} seeds, one for each"


def untrained_cell(lab: Lab) -> str:
    """The cell of all that was read whose runs did not train, in a sentence; support rests on none."""
    return "" if lab.worst.least >= TRAINED else few_runs(*lab.worst)
