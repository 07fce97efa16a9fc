"""Results on disk: read back with everything they had, and gone on from.

A folder holds one run's Dataset, or a store of sweeps: `units/`, immutable files of finished runs, each under
its address, and for every sweep a plan that says which addresses belong to which cell. So a killed sweep loses
nothing that was finished, several processes may write into one folder, and what one sweep has computed the next
need not compute again.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from featlab.core.validation import InputError
from featlab.sweeps.files import NAME, SUM, checksum, read, reason, sweep_away, write_whole

_UNITS, _PLAN = "units", "sweep-*.npz"
_WIDTH = 16  # bytes of an address


class Damaged(UserWarning):
    """A file of a store cannot be read, or is not featlab's; what it should hold counts as not computed."""


def load(folder: str | Path) -> xr.Dataset:
    """The Dataset in a folder that `save`, `featlab run --out` or `sweep(out=)` wrote, finished or not.

    Of several sweeps in one folder, the one begun last; the others are listed in `attrs["also_here"]`.
    """
    path = Path(folder)
    plans = sorted(path.glob(_PLAN), key=_begun) if path.is_dir() else []
    if plans and not (path / NAME).exists():
        return Store(path).filled(plans[-1], others=plans[:-1])
    if path.match(_PLAN) and path.is_file():
        return Store(path.parent).filled(path)
    path = path / NAME if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"There are no results in {str(folder)!r}: no file {str(path)!r}.")
    return read(path)


def last_sweep(folder: Path) -> Path:
    """What `load` takes for the sweep begun last: the folder, or its plan where a run's results are too."""
    return max(folder.glob(_PLAN), key=_begun) if (folder / NAME).exists() else folder


class Store:
    """A folder of finished runs, each under its address."""

    def __init__(self, folder: str | Path):
        self.folder = Path(folder)
        self._known: set[str] = set()  # files that were looked at
        self._units: list[dict[str, np.ndarray]] = []

    def put(self, addresses: np.ndarray, values: Mapping[str, np.ndarray]) -> Path:
        """Keep finished runs, one address and one value of each variable for each. When it returns, they last."""
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, addresses=addresses, **{f"value_{k}": v for k, v in values.items()})
        whole = content.getvalue()
        path = write_whole(self.folder / _UNITS / _unit_name(addresses), whole + checksum(whole))
        self._known.add(path.name)
        self._units.append({"addresses": addresses, **values})
        return path

    def expect(self, addresses: np.ndarray) -> None:
        """Mark runs that this process is about to write, so that `look` does not report them as new."""
        self._known.add(_unit_name(addresses))

    def look(self) -> int:
        """Read what has come into the folder since the last look; how many files that were."""
        found = 0
        try:
            names = sorted(os.listdir(self.folder / _UNITS))
        except FileNotFoundError:
            return 0
        except OSError as error:
            raise InputError(f"{str(self.folder / _UNITS)!r} cannot be read: {reason(error)}.") from None
        for name in names:
            if name in self._known or name.startswith("."):
                continue
            self._known.add(name)
            unit = self._read(self.folder / _UNITS / name)
            if unit is not None:
                self._units.append(unit)
                found += 1
        return found

    def get(self, addresses: np.ndarray) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Which of the runs are here, and their values; NaN (or 0) for those that are not."""
        wanted = _sortable(addresses)
        order = np.argsort(wanted)
        here, values = np.zeros(len(wanted), bool), dict[str, np.ndarray]()
        for unit in self._units:
            names = _sortable(unit["addresses"])
            low, high = (
                np.searchsorted(wanted[order], names, "left"),
                np.searchsorted(wanted[order], names, "right"),
            )
            rows = np.repeat(np.arange(len(names)), high - low)  # the same run may be wanted by several cells
            if not len(rows):
                continue
            within = np.arange(len(rows)) - np.repeat(np.cumsum(high - low) - (high - low), high - low)
            places = order[np.repeat(low, high - low) + within]
            here[places] = True
            for name, value in unit.items():
                if name != "addresses":
                    values.setdefault(name, _empty(len(wanted), value.dtype))[places] = value[rows]
        return here, values

    def plan(self, addresses: np.ndarray, empty: xr.Dataset) -> Path:
        """Say which runs a sweep is made of: (cell, seed) addresses, and the Dataset they are to fill."""
        header = {
            "order": 1 + max((_order(one) for one in self.folder.glob(_PLAN)), default=0),
            "dims": list(empty.sizes),
            "coords": {str(name): [coord.values.tolist(), coord.attrs] for name, coord in empty.coords.items()},
            "variables": {str(name): [v.dtype.str, v.attrs] for name, v in empty.data_vars.items()},
            "attrs": empty.attrs,
        }
        sweep_away(self.folder)
        sweep_away(self.folder / _UNITS)
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, addresses=addresses, header=np.array(json.dumps(header)))
        axes = json.dumps([[dim, empty[dim].values.tolist()] for dim in header["dims"]])
        name = hashlib.blake2b(addresses.tobytes() + axes.encode(), digest_size=8).hexdigest()
        return write_whole(self.folder / f"sweep-{name}.npz", content.getvalue())

    def other_code(self, addresses: np.ndarray, empty: xr.Dataset) -> bool:
        """Whether the same sweep is here as other code made it, and not as this one does."""
        said = {dim: empty[dim].values.tolist() for dim in empty.sizes}
        for plan in self.folder.glob(_PLAN):
            try:
                there, header = _plan_in(plan)
                axes = {dim: header["coords"][dim][0] for dim in header["dims"]}
            except Exception:  # a damaged archive may raise anything; loading it says so
                continue
            if axes == said and header["attrs"].get("experiment") == empty.attrs.get("experiment"):
                if there.shape == addresses.shape and not np.isin(_sortable(there), _sortable(addresses)).any():
                    return True
        return False

    def filled(self, plan: Path, others: list[Path] | None = None) -> xr.Dataset:
        """The Dataset of a sweep, as far as its runs are here."""
        try:
            addresses, header = _plan_in(plan)
            dims = header["dims"]
            coords = {name: (name, values, attrs) for name, (values, attrs) in header["coords"].items()}
        except Exception as error:  # a damaged archive may raise anything
            raise InputError(f"{str(plan)!r} is not the plan of a sweep: {error}.") from None
        self.look()
        here, values = self.get(addresses)
        shape = [len(header["coords"][dim][0]) for dim in dims]
        variables: dict[str, Any] = {"done": (dims, here.reshape(shape), {"long_name": "run carried out"})}
        for name, (dtype, attrs) in header["variables"].items():
            if name != "done":
                value = _empty(len(here), np.dtype(dtype))
                value[here] = values[name][here] if name in values else value[here]
                variables[name] = (dims, value.reshape(shape), attrs)
        attrs = header["attrs"] | ({"also_here": " ".join(other.name for other in others)} if others else {})
        return xr.Dataset(variables, coords, attrs | {"unfinished": int(not here.all())})

    def _read(self, path: Path) -> dict[str, np.ndarray] | None:
        """A unit; None, with a warning that names it, for a file that is damaged or something else."""
        try:
            if not path.is_file():
                raise ValueError("it is no file")
            content = path.read_bytes()
            if checksum(content[:-SUM]) != content[-SUM:]:
                raise ValueError("it is not what was written")
            with np.load(io.BytesIO(content[:-SUM]), allow_pickle=False) as file:
                unit = {name.removeprefix("value_"): file[name] for name in file.files}
            if _unit_name(unit["addresses"]) != path.name:
                raise ValueError("its name does not belong to its content")
            if unit["addresses"].shape[1:] != (_WIDTH,) or len({len(value) for value in unit.values()}) != 1:
                raise ValueError("it holds other arrays than a unit does")
        except FileNotFoundError:
            return None  # another process moved it
        except Exception as error:  # a damaged archive may raise anything
            warnings.warn(
                f"{str(path)!r} is no unit of results that can be read ({error or type(error).__name__}): "
                "what it should hold counts as not computed.",
                Damaged,
                stacklevel=3,
            )
            return None
        return unit


def _plan_in(path: Path) -> tuple[np.ndarray, dict[str, Any]]:
    with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
        return file["addresses"], json.loads(str(file["header"]))


def _order(plan: Path) -> int:
    """Which of the sweeps in a folder this is, in the order they were begun; 0 for those of older featlabs."""
    try:
        return int(_plan_in(plan)[1].get("order", 0))
    except Exception:  # a damaged archive may raise anything
        return 0


def _begun(plan: Path) -> tuple[int, int]:
    return _order(plan), plan.stat().st_mtime_ns


def _unit_name(addresses: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(addresses).tobytes(), digest_size=_WIDTH).hexdigest() + ".npz"


def _sortable(addresses: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(addresses).view(f"S{_WIDTH}").ravel()


def _empty(count: int, dtype: np.dtype) -> np.ndarray:
    return np.full(count, np.nan if dtype.kind == "f" else 0, dtype)
