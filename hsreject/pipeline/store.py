"""Finished stages on disk: a run that was stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import xarray as xr

from hsreject import __version__
from hsreject.errors import FileError
from hsreject.io.netcdf import open_dataset, write_dataset


def fingerprint(*parts: object) -> str:
    """Return a hash of everything that a stage depends on, this version of hsreject included.

    Arrays count by their values and coordinates, objects by their state.

    Examples
    --------
    >>> fingerprint("context", 2.0) == fingerprint("context", 2.0)
    True
    >>> fingerprint("context", 2.0) == fingerprint("context", 4.0)
    False
    """
    return str(joblib.hash([__version__, *(_hashable(part) for part in parts)], hash_name="sha1"))


def _hashable(part: object) -> object:
    if isinstance(part, xr.Dataset):
        return {str(name): _hashable(part[name]) for name in part.variables}
    if isinstance(part, xr.DataArray):
        coords = {str(name): np.asarray(coord.values) for name, coord in part.coords.items()}
        return (part.dims, np.asarray(part.values), coords, _plain(part.attrs))
    return part


def _plain(attrs: dict[Any, Any]) -> dict[str, str]:
    return {str(key): str(value) for key, value in attrs.items()}


class StageStore:
    """Results of finished stages, each a NetCDF file named after the stage and its fingerprint.

    Parameters
    ----------
    folder : path or None
        Where the files are kept; None keeps nothing and computes every stage.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def recall(self, stage: str, key: str, compute: Callable[[], xr.Dataset]) -> xr.Dataset:
        """Return the result kept for `stage` and `key`, or compute it and keep it.

        A file is there whole or not at all, so a killed run leaves nothing to be mistrusted. What
        was just computed is read back too: a run that goes on sees the very same objects.
        """
        if self._folder is None:
            return compute()
        path = self._folder / f"{stage}-{key[:20]}.nc"
        try:
            return open_dataset(path).load()
        except FileError:  # not there, or damaged by something else than a run
            pass
        result = compute()
        self._folder.mkdir(parents=True, exist_ok=True)
        write_dataset(result, path, overwrite=True)
        return open_dataset(path).load()
