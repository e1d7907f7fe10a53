"""How a lazily opened scene is cut into blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from dask.array.core import normalize_chunks

from hsreject.errors import InputError
from hsreject.schema import CUBE_DIMS

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_BLOCK = "64MiB"


def block_sizes(
    chunks: Any, *, shape: tuple[int, ...], dtype: DTypeLike
) -> tuple[tuple[int, ...], ...]:
    """Return the sizes of the blocks along (band, y, x).

    Classifiers and features work pixel by pixel on whole spectra: "auto" and True make blocks that
    hold all bands of some pixels, and so does a mapping that does not name the bands.

    Examples
    --------
    >>> block_sizes("auto", shape=(224, 100, 100), dtype="float32")
    ((224,), (100,), (100,))
    >>> block_sizes({"y": 50}, shape=(224, 100, 100), dtype="float32")
    ((224,), (50, 50), (100,))
    """
    if chunks is True or (isinstance(chunks, str) and chunks == "auto"):
        chunks = (-1, "auto", "auto")
    elif isinstance(chunks, Mapping):
        unknown = [str(dim) for dim in chunks if dim not in CUBE_DIMS]
        if unknown:
            raise InputError(
                f"chunks names {', '.join(unknown)}, which a cube does not have. "
                f"It has {', '.join(CUBE_DIMS)}."
            )
        chunks = tuple(chunks.get(dim, -1) for dim in CUBE_DIMS)
    try:
        sizes: tuple[tuple[int, ...], ...] = normalize_chunks(  # type: ignore[no-untyped-call]
            chunks, shape=shape, dtype=np.dtype(dtype), limit=_BLOCK
        )
    except (TypeError, ValueError) as error:
        raise InputError(
            f"chunks={chunks!r} does not fit a cube of {shape} (band, y, x): {error}."
        ) from error
    return sizes
