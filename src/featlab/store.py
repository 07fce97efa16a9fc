"""Results on disk: written whole or not at all, read back with everything they had."""

from __future__ import annotations

import os
from pathlib import Path

import xarray as xr

from featlab.fields import InputError

_NAME = "results.nc"


def save(dataset: xr.Dataset, folder: str | Path) -> Path:
    """Write a Dataset into a folder; a reader or a crash never sees half of it."""
    folder = Path(folder)
    path, temporary = folder / _NAME, folder / f".{_NAME}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with open(temporary, "wb") as file:
            file.write(bytes(dataset.to_netcdf(engine="scipy")))
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except (OSError, ValueError, TypeError) as error:
        temporary.unlink(missing_ok=True) if folder.is_dir() else None
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"Results cannot be written to {str(folder)!r}: {reason}.") from None
    return path


def load(folder: str | Path) -> xr.Dataset:
    """The Dataset in a folder that `save` or `featlab run --out` wrote."""
    path = Path(folder)
    path = path / _NAME if path.is_dir() else path
    if not path.is_file():
        raise InputError(f"There are no results in {str(folder)!r}: no file {str(path)!r}.")
    try:
        with xr.open_dataset(path, engine="scipy") as dataset:
            return dataset.load()
    except (TypeError, ValueError, OSError) as error:
        raise InputError(f"{str(path)!r} holds no results that can be read: {error}.") from None
