"""Finished stages on disk: a run that was stopped goes on where it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import xarray as xr

from hsreject import __version__
from hsreject.errors import FileError
from hsreject.fingerprint import fingerprint
from hsreject.io.netcdf import open_dataset, write_dataset


class StageStore:
    """Results of finished stages, each a NetCDF file named after the stage and its key.

    The key is a fingerprint of everything that the stage depends on; the version of hsreject is
    added to it here.

    Parameters
    ----------
    folder : path or None
        Where the files are kept; None keeps nothing and computes every stage.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder

    def recall(self, stage: str, key: str, compute: Callable[[], xr.Dataset]) -> xr.Dataset:
        """Return the result kept for `stage` and `key`, or compute it and keep it.

        A file is there whole or not at all, so a killed run leaves nothing to be mistrusted. What
        was just computed is read back too: a run that goes on sees the very same objects.
        """
        if self.folder is None:
            return compute()
        path = self.folder / f"{stage}-{fingerprint(__version__, key)[:20]}.nc"
        try:
            return open_dataset(path).load()
        except FileError:  # not there, or damaged by something else than a run
            pass
        result = compute()
        self.folder.mkdir(parents=True, exist_ok=True)
        write_dataset(result, path, overwrite=True)
        return open_dataset(path).load()
