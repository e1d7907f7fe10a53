"""From the numbers in a file to the quantity they stand for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import FileError
from hsreject.io.envi_header import band_numbers

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from hsreject.io.raster_file import RasterInfo

REFLECTANCE_SCALE_FACTOR = "reflectance scale factor"


@dataclass(frozen=True)
class Scale:
    """True value = (value in the file * gain + offset) / divisor, band by band."""

    gain: NDArray[np.float64]
    offset: NDArray[np.float64]
    divisor: float = 1.0

    @property
    def trivial(self) -> bool:
        """Whether the file holds the true values."""
        return self.divisor == 1 and bool(np.all(self.gain == 1) and np.all(self.offset == 0))

    def __str__(self) -> str:
        if self.divisor != 1:
            return f"divided by {self.divisor:g}"
        parts = ((self.gain, "times"), (self.offset, "plus"))
        return ", ".join(
            f"{word} {v.min():g}" if v.min() == v.max() else f"{word} {v.min():g} to {v.max():g}"
            for v, word in parts
        )


def stated_scale(
    info: RasterInfo,
    fields: Mapping[str, str],
    *,
    header: Mapping[str, str],
    where: str,
    guesses: list[str],
) -> Scale:
    """Return the scale that a file states: in its bands, or in the `header` beside it.

    A file with band gains and a `reflectance scale factor` says the same thing twice: the factor
    counts and the gains are left out, so that nothing is scaled two times.
    """
    scale = Scale(np.array(info.scales), np.array(info.offsets))
    if scale.trivial:  # GDAL reads the header of an ENVI file, not the one beside a TIFF
        scale = _header_scale(header, info.n_bands, where=where)
    if not (np.all(scale.gain != 0) and np.isfinite([scale.gain, scale.offset]).all()):
        raise FileError(
            f"{where}: the scale of a band must be a number other than 0 and its offset a number "
            f"(found: {scale}). Correct them, or remove them."
        )
    text = fields.get(REFLECTANCE_SCALE_FACTOR)
    if not text:
        return scale
    try:
        factor = float(text)
    except ValueError:
        factor = np.nan
    if not (np.isfinite(factor) and factor > 0):
        raise FileError(
            f"{where}: '{REFLECTANCE_SCALE_FACTOR} = {text[:40]}' must be a number above 0."
        )
    if not scale.trivial:
        guesses.append(
            f"The file has band gains or offsets and a {REFLECTANCE_SCALE_FACTOR} ({factor:g}): "
            "only the factor was applied."
        )
    n_bands = info.n_bands
    return Scale(np.ones(n_bands), np.zeros(n_bands), factor)


def _header_scale(header: Mapping[str, str], n_bands: int, *, where: str) -> Scale:
    gain, offset = (
        band_numbers(header, name, n_bands=n_bands, where=where)
        for name in ("data gain values", "data offset values")
    )
    return Scale(np.array(gain or [1.0] * n_bands), np.array(offset or [0.0] * n_bands))


def scale_pixels(pixels: Any, scale: Scale) -> Any:
    """Return scaled pixels (band, y, x) as float; NumPy in, NumPy out, and dask likewise.

    No data is NaN before the scale is applied and stays so.
    """
    if scale.trivial:
        return pixels
    wanted = np.result_type(pixels.dtype, np.float32 if pixels.dtype.itemsize < 4 else np.float16)
    gain, offset = scale.gain[:, None, None], scale.offset[:, None, None]
    if not isinstance(pixels, np.ndarray):
        return ((pixels * gain + offset) / scale.divisor).astype(wanted)
    scaled = np.empty(pixels.shape, dtype=wanted)
    for band in range(pixels.shape[0]):  # band by band: double precision for one band at a time
        scaled[band] = (pixels[band] * gain[band] + offset[band]) / scale.divisor
    return scaled
