"""What the playground offers, and the way from a setting that a browser sends to an experiment.

A setting is flat: {"claim": "cao2022_phase", "data": "SignalNoise", "data.n": 100, ...}. Its words are looked up
in the catalogue and its numbers are checked by the parts they belong to; nothing of it is ever executed.
"""

from __future__ import annotations

import dataclasses
import math
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp

import featlab
from featlab import algorithms, data, networks, objectives
from featlab.atlas.formulas import lines, mathml
from featlab.atlas.words import EMPHASIS
from featlab.claims import Claim, along_the_way, find_claims
from featlab.claims.citation import paper_of
from featlab.core.validation import InputError, Kind, Part, did_you_mean, whole_if_exact
from featlab.experiment import Experiment
from featlab.networks import TwoLayerCNN, erf, hermite_series, identity, leaky_relu, relu, relu_power, shifted
from featlab.probes import until
from featlab.text import changed, describe
from featlab.web._fields import Field, field_of, plain_symbol

SECTIONS = ("data", "network", "algorithm")
LIMITS = {"n": 4096, "width": 1024, "steps": 20_000, "seeds": 16}
_USUAL_STEPS = 400
_OWN = Experiment(
    data=data.SignalNoise(n=50, d=1e6, snr=0.2, noise_scale=1e-3),
    network=TwoLayerCNN(width=16, activation=relu, init_scale=1e-3),
    algorithm=algorithms.GradientDescent(10.0),
    steps=_USUAL_STEPS,
)
_OFFERED: dict[str, tuple[Part, ...]] = {
    "data": (
        _OWN.data,
        data.XorSignalNoise(n=50, d=1e6, snr=0.5, noise_scale=1e-3),
        data.SparseSignalNoise(n=20, d=1000, sparsity=30, noise_scale=0.2, feature_noise=0.3),
        data.SingleIndex(n=100, d=50, link=jnp.tanh),
    ),
    "network": (_OWN.network, networks.TwoLayer(width=64, activation=jnp.tanh, centred=True)),
    "algorithm": (
        _OWN.algorithm,
        algorithms.PacedDescent(0.2),
        algorithms.SAM(10.0, radius=0.1),
        algorithms.LabelNoiseDescent(1.0, flip=0.1),
        algorithms.SignDescent(1e-3),
        algorithms.Adam(1e-3),
        algorithms.Mixup(10.0),
    ),
}
_LOSSES = {"logistic": objectives.logistic, "squared": objectives.squared}
_ACTIVATIONS = {
    "relu": relu,
    "relu_power": relu_power(3),
    "leaky_relu": leaky_relu(0.1),
    "identity": identity,
    "tanh": jnp.tanh,
    "erf": erf,
}


class Request(NamedTuple):
    """What a setting asks for."""

    experiment: Experiment
    seeds: int
    claim: Claim | None


class Catalogue:
    """All that can be chosen: theorems, with those of a user's folder, and parts for a task of one's own."""

    def __init__(self, folder: str | Path | None = None):
        self.claims = find_claims(folder)
        self.scenes = {name: claim.scene() for name, claim in self.claims.items()}
        self.activations: dict[str, Any] = dict(_ACTIVATIONS)
        self.kinds: dict[str, dict[str, Any]] = {section: {} for section in SECTIONS}
        for section in SECTIONS:
            for part in (*_OFFERED[section], *(getattr(scene, section) for scene in self.scenes.values())):
                self.kinds[section].setdefault(_kind_name(part), part)

    def page(self) -> dict[str, Any]:
        """All of it for the browser, as plain data."""
        kinds: dict[str, Any] = {
            section: {
                name: {"words": _words(part), "fields": [one._asdict() for one in self._fields(part)]}
                for name, part in parts.items()
            }
            for section, parts in self.kinds.items()
        }
        kinds["objective"] = {name: {"words": _words(loss), "fields": []} for name, loss in _LOSSES.items()}
        claims = [self._entry(name, self.claims[name]) for name in self.pictured()]
        # Last, since the theorems' own functions are named while their settings are written.
        kinds["activation"] = {
            name: {
                "words": "",
                "fields": [one._asdict() for one in self._fields(function)] if name in _ACTIVATIONS else [],
            }
            for name, function in self.activations.items()
        }
        (steps,) = [field_of(*one) for one in _own_fields(_OWN) if one[0] == "steps"]
        page = {"version": featlab.__version__, "limits": LIMITS, "steps": steps._asdict()}
        return {**page, "claims": claims, "kinds": kinds}

    def pictured(self) -> list[str]:
        """The theorems, those that divide a plane first."""
        return sorted(self.claims, key=lambda name: self.claims[name].picture() is None)

    def setting(self, name: str) -> dict[str, Any]:
        """A theorem's own setting."""
        scene = self.scenes[name]
        flat: dict[str, Any] = {"claim": name, "objective": _loss_name(scene)}
        for section in SECTIONS:
            part = getattr(scene, section)
            flat[section] = _kind_name(part)
            flat |= {f"{section}.{path}": value for path, value in self._values(part)}
        return flat | {"steps": min(scene.last_step, LIMITS["steps"]), "seeds": 4}

    def read(self, setting: Any) -> Request:
        """The experiment that a setting describes, or one sentence that says what is wrong with it."""
        if not isinstance(setting, Mapping) or not all(isinstance(key, str) for key in setting):
            raise InputError("A setting must be an object of names and values.")
        if len(setting) > 200:
            raise InputError(f"A setting has at most 200 fields, got {len(setting)}.")
        claim = self._claim(setting.get("claim"))
        base = along_the_way(_OWN) if claim is None else self.scenes[claim.id]
        taken = {"claim", "objective", "steps", "seeds", *SECTIONS}
        parts: dict[str, Any] = {}
        for section in SECTIONS:
            own = {key: value for key, value in setting.items() if key.startswith(f"{section}.")}
            taken |= set(own)
            parts[section] = self._part(section, setting.get(section), own, base)
        unknown = sorted(set(setting) - taken)
        if unknown:
            raise InputError(f"A setting has no field {unknown[0][:80]!r}; {did_you_mean(unknown[0], taken)}")
        if "objective" in setting:
            parts["objective"] = _looked_up("loss", setting["objective"], _LOSSES | _own_loss(base))
        steps: Any = _number("steps", setting.get("steps", base.last_step), Kind("whole", 0, LIMITS["steps"]))
        if isinstance(base.steps, until):
            steps = dataclasses.replace(base.steps, at_most=max(steps, 1))
        seeds = _number("seeds", setting.get("seeds", 4), Kind("whole", 1, LIMITS["seeds"]))
        experiment = dataclasses.replace(base, **parts, steps=steps)
        if claim is None:
            experiment = along_the_way(experiment, LIMITS["steps"])
        _within_limits(experiment)
        return Request(experiment, seeds, claim)

    def _claim(self, name: Any) -> Claim | None:
        if name in (None, ""):
            return None
        return _looked_up("theorem", name, self.claims)

    def _part(self, section: str, name: Any, given: Mapping[str, Any], base: Experiment) -> Any:
        """A part of the kind that is named, with the values that are given; other fields are as in its example."""
        usual = getattr(base, section)
        part = usual if name in (None, _kind_name(usual)) else _looked_up(section, name, self.kinds[section])
        fields = {f"{section}.{one.name}": one for one in self._fields(part)}
        functions = {
            key: value for key, value in given.items() if key in fields and fields[key].kind == "activation"
        }
        chosen = {key: self._activation(key, value) for key, value in functions.items()}
        part = changed(part, {_inside(key): value for key, value in chosen.items()}) if chosen else part
        fields = {f"{section}.{one.name}": one for one in self._fields(part)}
        # Who gives all that must be given has also said what is not; a link may name a few fields alone.
        whole = all(key in given for key, one in fields.items() if not one.optional)
        silent = [key for key, one in fields.items() if whole and one.optional and key not in given]
        made: dict[str, Any] = dict.fromkeys(map(_inside, silent))
        for key, value in given.items():
            if key not in fields:
                known = ", ".join(sorted(fields))
                raise InputError(f"{type(part).__name__} has no field {key[:80]!r}; its fields are {known}.")
            field = fields[key]
            if field.kind == "activation":
                continue
            if field.optional and value in (None, ""):
                made[_inside(key)] = None
            else:
                made[_inside(key)] = _number(key, value, Kind(field.kind))
        return changed(part, made) if made else part

    def _activation(self, key: str, name: Any) -> Any:
        return _looked_up(key, name, self.activations)

    def _values(self, part: Any, path: str = "") -> Iterator[tuple[str, Any]]:
        """Paths and values of the fields of a part, and of the parts in it, that a page can show."""
        for name, kind, value in _own_fields(part):
            if kind.name == "part":
                yield from self._values(value, f"{path}{name}.")
            elif kind.name == "function":
                yield f"{path}{name}", self._function_name(value)
                if _is_plain(value):
                    yield from self._values(value, f"{path}{name}.")
            elif value is not None:
                yield (
                    f"{path}{name}",
                    value if not isinstance(value, float) or math.isfinite(value) else str(value),
                )

    def _fields(self, part: Any, path: str = "") -> list[Field]:
        found = []
        for name, kind, value in _own_fields(part):
            if kind.name == "part":
                found += self._fields(value, f"{path}{name}.")
            elif kind.name == "function":
                found.append(field_of(f"{path}{name}", kind, self._function_name(value)))
                found += self._fields(value, f"{path}{name}.") if path == "" and _is_plain(value) else []
            else:
                found.append(field_of(f"{path}{name}", kind, value))
        return found

    def _function_name(self, function: Any) -> str:
        """The name of an activation; one that only a theorem uses gets its own."""
        if _is_plain(function):
            return type(function).__name__
        for name, known in self.activations.items():
            if known is function or (isinstance(known, Part) and known == function):
                return name
        name = _short_name(function)
        self.activations[name] = function
        return name

    def _entry(self, name: str, claim: Claim) -> dict[str, Any]:
        picture, setting = claim.picture(), self.setting(name)
        axes = plane(claim, self.scenes[name])
        return {
            "id": name,
            "title": claim.title,
            "paper": paper_of(claim.reference),
            "statement": _formula(claim.statement),
            "words": _prose((sys.modules[type(claim).__module__].__doc__ or "").strip()),
            "symbol": plain_symbol(picture.symbol) if picture is not None else "",
            "slider": picture.slider if picture is not None else axes[1] if axes else "",
            "across": picture.across if picture is not None else axes[0] if axes else "",
            "shows": picture.shows if picture is not None else "",
            "has_diagram": axes is not None,
            "setting": setting,
            "hidden": [
                key for key in setting if key.endswith((".average_patches", ".uniform_start", ".random_slot"))
            ],
        }


def plane(claim: Claim | None, experiment: Experiment) -> tuple[str, str] | None:
    """The two fields of a phase diagram: the theorem's, or the number of samples and the signal."""
    picture = None if claim is None else claim.picture()
    if picture is not None:
        return (picture.across, picture.slider) if picture.across else None
    for name in ("snr", "signal_norm"):
        if isinstance(getattr(experiment.data, name, None), float):
            return "data.n", f"data.{name}"
    return None


def _own_fields(part: Any) -> Iterator[tuple[str, Kind, Any]]:
    for field in dataclasses.fields(part) if dataclasses.is_dataclass(part) else ():
        kind = field.metadata.get("kind")
        if kind is not None:
            yield field.name, kind, getattr(part, field.name)


def _is_plain(function: Any) -> bool:
    """Whether an activation is one of a kind that differs in numbers alone, such as relu_power(3)."""
    return isinstance(function, relu_power | leaky_relu)


def _short_name(function: Any) -> str:
    if isinstance(function, shifted):
        return f"{_short_name(function.activation)} {function.shift:+.3g}"
    if isinstance(function, hermite_series):
        terms = [(c, f"H{k}") for k, c in enumerate(function.coefficients) if c]
        return " + ".join(name if c == 1 else f"{c:.3g} {name}" for c, name in terms)
    text = describe(function)
    return text if "(" in text else text.rpartition(".")[2]


def _kind_name(part: Any) -> str:
    if isinstance(part, algorithms.Then):
        return f"{_kind_name(part.first)}, then {_kind_name(part.second)}"
    if isinstance(part, data.AbstractBatching):
        return f"{type(part).__name__} of {_kind_name(part.data)}"
    return type(part).__name__


def _loss_name(experiment: Experiment) -> str:
    for name, loss in (_LOSSES | _own_loss(experiment)).items():
        if loss is experiment.objective:
            return name
    raise AssertionError


def _own_loss(experiment: Experiment) -> dict[str, Any]:
    known = any(experiment.objective is loss for loss in _LOSSES.values())
    return {} if known else {describe(experiment.objective): experiment.objective}


def _looked_up(what: str, name: Any, known: Mapping[str, Any]) -> Any:
    if not isinstance(name, str) or name not in known:
        hint = (
            did_you_mean(name[:80], known) if isinstance(name, str) else f"known are {', '.join(sorted(known))}."
        )
        raise InputError(f"There is no {what} {str(name)[:80]!r}; {hint}")
    return known[name]


def _number(key: str, value: Any, kind: Kind) -> Any:
    """A number of a setting, from JSON or from an address; its part checks the rest."""
    if kind.name == "flag":
        truth = {"true": True, "false": False}.get(str(value).lower())
        if truth is None:
            raise InputError(f"{key} must be true or false, got {str(value)[:80]!r}.")
        return truth
    try:
        if isinstance(value, bool) or not isinstance(value, int | float | str):
            raise ValueError
        number = float(value)
    except (ValueError, OverflowError):
        raise InputError(f"{key} must be a number, got {str(value)[:80]!r}.") from None
    if math.isnan(number):
        raise InputError(f"{key} must be a number, got nan.")
    number = whole_if_exact(number) if kind.name == "whole" or float(number).is_integer() else number
    if kind.name == "whole" and not isinstance(number, int):
        raise InputError(f"{key} must be a whole number, got {value!r}.")
    if not kind.low <= number <= kind.high:
        raise InputError(f"{key} must be from {kind.low:g} to {kind.high:g}, got {number:g}.")
    return number


def _within_limits(experiment: Experiment) -> None:
    for name, value in (("n", experiment.data.n), ("width", getattr(experiment.network, "width", 1))):
        if value > LIMITS[name]:
            raise InputError(
                f"{name} is at most {LIMITS[name]} here, got {value}; `featlab run` has no such limit."
            )
    experiment.empty_space()  # refuses what cannot be stored


def _inside(key: str) -> str:
    return key.partition(".")[2]


def _words(thing: Any) -> str:
    text = (
        getattr(thing, "__doc__", "") if callable(thing) and not isinstance(thing, Part) else type(thing).__doc__
    )
    return (text or "").strip().splitlines()[0] if text else ""


def _formula(latex: str) -> str:
    """A statement as MathML, a line for each of its parts; nothing where that cannot be."""
    try:
        return "".join(mathml(part, block=True) for part in lines(latex))
    except (InputError, ImportError):
        return ""


def _prose(text: str) -> list[list[str]]:
    """Paragraphs of words and formulas in turn; stars that mark emphasis are left out, those of lists are dots."""

    def formula(latex: str) -> str:
        try:
            return mathml(latex)
        except (InputError, ImportError):
            return latex

    def pieces(paragraph: str) -> list[str]:
        return [formula(one) if k % 2 else one for k, one in enumerate(re.split(r"\$([^$]+)\$", paragraph))]

    text = re.sub(r"(^|\n)\* ", r"\1• ", re.sub(EMPHASIS, r"\1", text))
    return [pieces(paragraph) for paragraph in re.split(r"\n\s*\n", text)]
