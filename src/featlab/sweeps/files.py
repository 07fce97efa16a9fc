"""Files of results: written whole or not at all, and read only if they are what was written."""

from __future__ import annotations

import hashlib
import io
import itertools
import os
import re
import shutil
import tempfile
import time
from pathlib import Path

import xarray as xr

from featlab.core.validation import InputError
from featlab.core.words import shortened

NAME = "results.nc"
SUM = 16  # bytes of a checksum
_CHECKED = "checksum"  # attribute of a file that has one
_MARK = b"featlab checksum"
_TAIL = len(_MARK) + SUM
_BEGUN = re.compile(r"\.\d+-[0-9a-f]{8}\.")  # a file that is being written: process and chance


def writable(folder: str | Path) -> Path:
    """A folder that can be written to, made if it is not there: asked before anything is computed for it."""
    try:
        Path(folder).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise InputError(f"{str(folder)!r} cannot be written: {reason(error)}.") from None
    sweep_away(Path(folder))
    return Path(folder)


def save(dataset: xr.Dataset, folder: str | Path) -> Path:
    """Write a Dataset into a folder; a reader or a crash never sees half of it, and damage is noticed.

    The file is netCDF with its checksum behind it, and says inside that there is one.
    """
    try:
        told = dataset.copy()
        told.attrs = {_CHECKED: "blake2b, behind the data", **dataset.attrs}  # first: no hole can begin before it
        content = bytes(told.to_netcdf(engine="scipy"))
    except (ValueError, TypeError) as error:
        raise InputError(f"Results cannot be written to {str(folder)!r}: {error}.") from None
    return write_whole(Path(folder) / NAME, content + _MARK + checksum(content))


def set_aside(dataset: xr.Dataset, folder: str | Path) -> Path | None:
    """Rename the results in a folder if they are of something else than this Dataset, or cannot be read."""
    path = Path(folder) / NAME
    if not path.exists():
        return None
    try:
        there = read(path)
    except InputError:
        there = xr.Dataset()
    if _question(there) == _question(dataset):
        return None
    kept = next(p for p in (path.with_name(f"results-{i}.nc") for i in itertools.count(1)) if not p.exists())
    os.replace(path, kept)
    return kept


def _question(dataset: xr.Dataset) -> tuple:
    """What was asked: the experiment, the seeds, what is swept or compared."""
    coords = {str(name): coord for name, coord in dataset.coords.items()}
    swept = {k: v.values.tolist() for k, v in coords.items() if not any("step" in str(dim) for dim in v.dims)}
    return dataset.attrs.get("experiment"), swept


def read(path: Path) -> xr.Dataset:
    """The Dataset in a file, if it is what was written."""
    try:
        content = path.read_bytes()
        plain, mark, total = content[:-_TAIL], content[-_TAIL:-SUM], content[-SUM:]
        marked = mark == _MARK
        if marked and checksum(plain) != total:
            raise ValueError("it is not what was written")
        with xr.open_dataset(io.BytesIO(plain if marked else content), engine="scipy") as dataset:
            found = dataset.load()
        if not marked and (_CHECKED in found.attrs or not found.variables):
            raise ValueError("its end is missing, or another program has written it")
    except Exception as error:  # a damaged file may raise anything
        said = shortened(" ".join(str(error).split()), 150) or type(error).__name__
        raise InputError(f"{str(path)!r} holds no results that can be read: {said}.") from None
    found.attrs.pop(_CHECKED, None)
    return found


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
            return write_whole(path, bytes(plain.to_netcdf(engine="scipy")))
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
        raise InputError(f"{str(path)!r} cannot be written: {reason(error)}.") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return path


def write_whole(path: Path, content: bytes) -> Path:
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
            f"Results cannot be written to {str(path.parent)!r}: {reason(error)}; "
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


def sweep_away(folder: Path) -> None:
    """Remove what killed writers have left in a folder: beginnings of files, untouched for an hour."""
    try:
        for path in folder.glob(".*"):
            if _BEGUN.match(path.name) and time.time() - path.stat().st_mtime > 3600:
                _forget(path)
    except OSError:
        pass


def reason(error: Exception) -> str:
    """Why a file could not be read or written, in the system's words."""
    return getattr(error, "strerror", None) or str(error)


def checksum(content: bytes) -> bytes:
    """Stands at the end of a unit, and tells whether the rest is whole."""
    return hashlib.blake2b(content, digest_size=SUM).digest()
