"""Embeddings of Earth observation models: codes of one byte that mean numbers.

A scene of such codes is nearly right as it stands, and wrong all the same: read as numbers, codes
are not in proportion to what they mean. They are decoded here, or refused.

- *AlphaEarth* (C. F. Brown et al., AlphaEarth Foundations, arXiv:2507.22291, 2025): 64 bands
  A00 to A63; a code v means sign(v) (v / 127.5)^2, and -128 no data.
- *TESSERA* (Z. Feng et al., TESSERA, arXiv:2506.20380, 2025): 128 bands; a code is times the scale
  of its pixel, which lies in an array of its own. A scale that is not finite means no data.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import FileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

ALPHA_EARTH, TESSERA = "AlphaEarth embedding", "TESSERA embedding"
_ALPHA_EARTH_BANDS = tuple(f"A{number:02}" for number in range(64))
_N_TESSERA_BANDS = 128
_NO_DATA = -128


def alpha_earth_values() -> NDArray[np.float32]:
    """Return what the codes -128 to 127 of AlphaEarth mean; NaN is no data."""
    codes = np.arange(-128, 128, dtype=np.float64)
    values = np.sign(codes) * (codes / 127.5) ** 2
    values[codes == _NO_DATA] = np.nan
    return values.astype(np.float32)


def is_alpha_earth(dtype: np.dtype[Any], names: Sequence[str], nodata: float | None) -> bool:
    """Tell whether the bands of a file are codes of AlphaEarth, by their names or their nodata."""
    if dtype != np.int8 or len(names) != len(_ALPHA_EARTH_BANDS):
        return False
    return tuple(names) == _ALPHA_EARTH_BANDS or (not any(names) and nodata == _NO_DATA)


def scales_beside(path: Path) -> Path:
    """Return where the scales of the codes in a .npy file are kept."""
    return path.with_name(f"{path.stem}_scales.npy")


def may_be_tessera(dtype: np.dtype[Any], n_bands: int) -> bool:
    """Tell whether bands are of the type and number of those of TESSERA."""
    return bool(dtype == np.int8) and n_bands == _N_TESSERA_BANDS


def check_scaled(path: Path, dtype: np.dtype[Any], n_bands: int, *, looked_for: str) -> None:
    """Raise if bands without scales are codes of TESSERA."""
    if may_be_tessera(dtype, n_bands):
        raise FileError(
            f"{path} holds 128 bands of one byte, as TESSERA does, but not the scale of each pixel "
            f"that makes numbers of them (looked for {looked_for}). Put it there, or save the "
            "decoded numbers as float32."
        )
