"""Results on disk: written whole or not at all, read back with everything they had.

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
import shutil
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from featlab.core.validation import InputError

_NAME = "results.nc"
_UNITS, _PLAN = "units", "sweep-*.npz"
_WIDTH = 16  # bytes of an address


class Damaged(UserWarning):
    """A file of a store cannot be read, or is not featlab's; what it should hold counts as not computed."""


def writable(folder: str | Path) -> Path:
    """A folder that can be written to, made if it is not there: asked before anything is computed for it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be written: {_reason(error)}.") from None
    return Path(folder)


def save(dataset: xr.Dataset, folder: str | Path) -> Path:
    """Write a Dataset into a folder; a reader or a crash never sees half of it."""
    try:
        content = bytes(dataset.to_netcdf(engine="scipy"))
    except (ValueError, TypeError) as error:
        raise InputError(f"Results cannot be written to {str(folder)!r}: {error}.") from None
    return _written(Path(folder) / _NAME, content)


def load(folder: str | Path) -> xr.Dataset:
    """The Dataset in a folder that `save`, `featlab run --out` or `sweep(out=)` wrote, finished or not.

    Of several sweeps in one folder, the one begun last; the others are listed in `attrs["also_here"]`.
    """
    path = Path(folder)
    plans = sorted(path.glob(_PLAN), key=lambda plan: plan.stat().st_mtime_ns) if path.is_dir() else []
    if plans and not (path / _NAME).exists():
        return Store(path).filled(plans[-1], others=plans[:-1])
    if path.match(_PLAN) and path.is_file():
        return Store(path.parent).filled(path)
    path = path / _NAME if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"There are no results in {str(folder)!r}: no file {str(path)!r}.")
    try:
        with xr.open_dataset(path, engine="scipy") as dataset:
            return dataset.load()
    except (TypeError, ValueError, OSError) as error:
        raise InputError(f"{str(path)!r} holds no results that can be read: {error}.") from None


def export(dataset: xr.Dataset, path: str | Path) -> Path:
    """Write a Dataset for other programs, by the ending of the path: .zarr (needs zarr) or .nc (netCDF)."""
    path = Path(path)
    plain = dataset.copy()
    for name, variable in plain.variables.items():
        if variable.dtype == bool:  # netCDF has no truth values
            plain[name] = variable.astype("int8")
        elif variable.dtype.kind in "OU":  # zarr has no strings of a fixed length
            plain[name] = variable.astype(object if path.suffix == ".zarr" else str)
    temporary = path.with_name(f".{os.getpid()}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.suffix == ".nc":
            return _written(path, bytes(plain.to_netcdf(engine="scipy")))
        if path.suffix != ".zarr":
            raise InputError(f"export(path=) must end in .zarr or .nc, got {path.name!r}.")
        if path.exists():
            raise InputError(f"export(path=) never writes over a folder, and {str(path)!r} is there already.")
        plain.to_zarr(temporary, mode="w", consolidated=False)
        os.replace(temporary, path)
    except ModuleNotFoundError as error:
        raise InputError(f"export to {path.suffix} needs the package {error.name}; try .nc.") from None
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"{str(path)!r} cannot be written: {_reason(error)}.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return path


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
        path = _written(self.folder / _UNITS / _unit_name(addresses), whole + _sum(whole))
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
            raise InputError(f"{str(self.folder / _UNITS)!r} cannot be read: {_reason(error)}.") from None
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
            "dims": list(empty.sizes),
            "coords": {str(name): [coord.values.tolist(), coord.attrs] for name, coord in empty.coords.items()},
            "variables": {str(name): [v.dtype.str, v.attrs] for name, v in empty.data_vars.items()},
            "attrs": empty.attrs,
        }
        content = io.BytesIO()
        np.savez(content, allow_pickle=False, addresses=addresses, header=np.array(json.dumps(header)))
        axes = json.dumps([[dim, empty[dim].values.tolist()] for dim in header["dims"]])
        name = hashlib.blake2b(addresses.tobytes() + axes.encode(), digest_size=8).hexdigest()
        return _written(self.folder / f"sweep-{name}.npz", content.getvalue())

    def filled(self, plan: Path, others: list[Path] | None = None) -> xr.Dataset:
        """The Dataset of a sweep, as far as its runs are here."""
        try:
            with np.load(io.BytesIO(plan.read_bytes()), allow_pickle=False) as file:
                addresses, header = file["addresses"], json.loads(str(file["header"]))
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
            content = path.read_bytes()
            if _sum(content[:-_WIDTH]) != content[-_WIDTH:]:
                raise ValueError("it is not what was written")
            with np.load(io.BytesIO(content[:-_WIDTH]), allow_pickle=False) as file:
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


def _unit_name(addresses: np.ndarray) -> str:
    return hashlib.blake2b(np.ascontiguousarray(addresses).tobytes(), digest_size=_WIDTH).hexdigest() + ".npz"


def _sum(content: bytes) -> bytes:
    """Stands at the end of a unit, and tells whether the rest is whole."""
    return hashlib.blake2b(content, digest_size=_WIDTH).digest()


def _sortable(addresses: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(addresses).view(f"S{_WIDTH}").ravel()


def _empty(count: int, dtype: np.dtype) -> np.ndarray:
    return np.full(count, np.nan if dtype.kind == "f" else 0, dtype)


def _written(path: Path, content: bytes) -> Path:
    """Write a file so that it is there whole or not at all, and stays there when power fails."""
    temporary = path.with_name(f".{os.getpid()}-{os.urandom(4).hex()}.{path.name}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync(path.parent)
    except BaseException as error:
        _forget(temporary)
        if not isinstance(error, OSError):
            raise
        raise InputError(
            f"Results cannot be written to {str(path.parent)!r}: {_reason(error)}; "
            "what was finished before is kept."
        ) from None
    return path


def _sync(folder: Path) -> None:
    """Make the renaming last too, where the system can."""
    try:
        handle = os.open(folder, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(handle)
    except OSError:
        pass
    finally:
        os.close(handle)


def _forget(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error)
