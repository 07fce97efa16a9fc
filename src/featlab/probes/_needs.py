"""What a part needs of the rest of an experiment, declared as kinds: `of=(SparseCoding, SymmetricReLU)`."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from featlab.algorithms import AbstractAlgorithm
from featlab.core.validation import InputError
from featlab.data import AbstractDataModel
from featlab.networks import AbstractNetwork
from featlab.objectives import AbstractObjective
from featlab.problem.draw import unbatched

ROLES: dict[str, type] = {
    "data": AbstractDataModel,
    "network": AbstractNetwork,
    "objective": AbstractObjective,
    "algorithm": AbstractAlgorithm,
}
_NAMED = 3  # examples of an abstract kind in a sentence


def role_of(kind: Any) -> str:
    """Which ingredient of an experiment a kind is about."""
    for role, root in ROLES.items():
        if isinstance(kind, type) and issubclass(kind, root):
            return role
    raise InputError(f"of= takes kinds of data, networks, objectives and algorithms, got {kind!r}.")


def misfit(name: str, of: Sequence[type], parts: Mapping[str, Any]) -> str | None:
    """The first need that these parts do not meet, as a sentence: feature_purity needs SparseCoding data."""
    for kind in of:
        role = role_of(kind)
        part = unbatched(parts[role]) if role == "data" else parts[role]
        if isinstance(part, ROLES[role]) and not isinstance(part, kind):
            return f"{name} needs {_wanted(kind, role)}, got {type(part).__name__}."
    return None


def finals(kind: type) -> Iterator[type]:
    """The classes of featlab that are of this kind and can be made, in the order of their definition."""
    if not inspect.isabstract(kind) and "Abstract" not in kind.__name__:
        yield kind
    for below in kind.__subclasses__():
        if below.__module__.startswith("featlab."):
            yield from finals(below)


def _wanted(kind: type, role: str) -> str:
    names = sorted({one.__name__ for one in finals(kind)})[:_NAMED]
    if kind.__name__ in names or not names:
        wanted = f"{kind.__name__} {role}"
        article = "an" if wanted[0] in "AEIOU" else "a"
    else:
        listed = f"{', '.join(names[:-1])} or {names[-1]}" if len(names) > 1 else names[0]
        wanted, article = f"{role} such as {listed}", "an" if role[0] in "ao" else "a"
    return wanted if role == "data" else f"{article} {wanted}"
