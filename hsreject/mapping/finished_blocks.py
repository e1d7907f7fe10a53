"""Finished blocks of a map, kept on disk until all are: work that was stopped goes on from them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import dask.array as da
import numpy as np
import xarray as xr
from dask.base import compute, tokenize
from dask.delayed import delayed

from hsreject.files import replacing, unfinished_folder
from hsreject.io.remote import as_path, state_of
from hsreject.keys import key_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@contextmanager
def finished_blocks(
    out: str | PathLike[str], model: object, scene: object, options: object
) -> Iterator[Path]:
    """Give the folder of the blocks that the same work has finished before.

    Files count as the same when path, size and time of change are.
    """
    work = [_identity(given) for given in (model, scene)]
    # work that has no key begins anew every time
    with unfinished_folder(Path(out).absolute(), key_of(work, options) or uuid4().hex) as folder:
        yield folder


def _identity(given: object) -> object:
    """Return what tells a file or an object from others."""
    if isinstance(given, str | PathLike):
        return str(given), *state_of(as_path(given))
    return tokenize(given) if isinstance(given, xr.DataArray) else given


def stored_blocks(ranked: Any, folder: Path) -> Any:
    """Compute the blocks that are not in `folder` yet, and return all of them, read lazily."""
    rows, columns = map(range, ranked.numblocks)
    paths = {(row, column): folder / f"{row}-{column}.npy" for row in rows for column in columns}
    missing = [
        ranked.blocks[place].map_blocks(
            _store_block, path, chunks=(1, 1), dtype=bool, meta=np.empty((0, 0), bool)
        )
        for place, path in paths.items()
        if not path.exists()
    ]
    compute(*missing)

    def stored(row: int, column: int) -> Any:
        shape = ranked.chunks[0][row], ranked.chunks[1][column]
        block = delayed(np.load)(paths[row, column])
        return da.from_delayed(
            block, shape, dtype=ranked.dtype, meta=np.empty((0, 0), ranked.dtype)
        )

    return da.block([[stored(row, column) for column in columns] for row in rows])


def _store_block(block: NDArray[Any], path: Path) -> NDArray[np.bool_]:
    with replacing(path, overwrite=True) as part:
        np.save(part, block)
    return np.ones((1, 1), dtype=bool)
