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
from dask.base import tokenize
from dask.delayed import delayed

from hsreject.files import replacing, unfinished_folder
from hsreject.io.products.remote import as_path, state_of
from hsreject.keys import key_of

if TYPE_CHECKING:
    from numpy.typing import NDArray


@contextmanager
def finished_blocks(
    out: str | PathLike[str] | None, model: object, scene: object, options: object
) -> Iterator[Path | None]:
    """Give the folder of the blocks that the same work has finished before, if there is an `out`.

    Files count as the same when path, size and time of change are.
    """
    if out is None:
        yield None
        return
    what = [_identity(given) for given in (model, scene)]
    # work that has no key begins anew every time
    with unfinished_folder(Path(out).absolute(), key_of(what, options) or uuid4().hex) as folder:
        yield folder


def _identity(given: object) -> object:
    """Return what tells a file or an object from others."""
    if isinstance(given, str | PathLike):
        return str(given), *state_of(as_path(given))
    return tokenize(given) if isinstance(given, xr.DataArray) else given


def keeping_blocks(ranked: Any, folder: Path) -> Any:
    """Return the same blocks, each stored when it is computed, or read if it is stored already."""

    def keeping(row: int, column: int) -> Any:
        block = ranked.blocks[row, column]
        path = folder / f"{row}-{column}.npy"
        if path.exists():
            return da.from_delayed(delayed(np.load)(path), block.shape, dtype=block.dtype)
        return block.map_blocks(_store_block, path, dtype=block.dtype, meta=block._meta)  # noqa: SLF001

    rows, columns = map(range, ranked.numblocks)
    return da.block([[keeping(row, column) for column in columns] for row in rows])


def _store_block(block: NDArray[Any], path: Path) -> NDArray[Any]:
    with replacing(path, overwrite=True) as part:
        np.save(part, block)
    return block
