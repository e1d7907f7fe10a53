"""The bands that a trained model needs, and what to do with a scene that has others."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import schema
from hsreject.classify.features.resample_bands import METHODS, ResampleBands
from hsreject.errors import GuessWarning, InputError

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

# Two band lists of one instrument differ by rounding; bands of another one by nanometres.
_SAME_WAVELENGTH = 0.1

_REMEDY = "Pass match_bands='nearest' or 'interpolate' to match bands by wavelength."


@dataclass(frozen=True, eq=False)
class BandRequirements:
    """Number, wavelengths and widths of the bands of a training scene, and which are needed.

    Parameters
    ----------
    count : int
        Number of bands, bad ones included.
    needed : ndarray of bool (count,)
        Which of them the model looks at: good ones that its features have chosen.
    wavelength, fwhm : ndarray (count,) or None
        Centres and full widths at half maximum in nm, if the scene said so.
    """

    count: int
    needed: NDArray[np.bool_]
    wavelength: NDArray[np.float64] | None
    fwhm: NDArray[np.float64] | None

    @classmethod
    def of(cls, cube: xr.DataArray, bands: NDArray[np.intp]) -> BandRequirements:
        """Return the requirements of a model fitted to `cube` that looks at these `bands`."""
        count = cube.sizes[schema.BAND]
        return cls(
            count,
            np.isin(np.arange(count), bands),
            _along_band(cube, schema.WAVELENGTH),
            _along_band(cube, schema.FWHM),
        )

    def match(
        self, cube: xr.DataArray, *, how: str = "exact", tolerance: float | None = None
    ) -> xr.DataArray:
        """Return `cube` with the required bands, or raise an error that names the difference."""
        if how == "exact":
            self._check(cube)
            # the model's own choice of bands counts, whatever else this scene calls good
            return cube.assign_coords({schema.GOOD_BAND: (schema.BAND, self.needed)})
        if how not in METHODS:
            raise InputError(
                f"match_bands must be one of exact, {', '.join(METHODS)} (got {how!r})."
            )
        if self.wavelength is None:
            raise InputError(
                f"match_bands='{how}' needs wavelengths, but the scene that the model was trained "
                "on had none. Give a scene with the same bands and match_bands='exact'."
            )
        resample = ResampleBands(method=how, tolerance=tolerance)
        return resample.fit_wavelengths(self.wavelength, needed=self.needed).transform(cube)

    def _check(self, cube: xr.DataArray) -> None:
        count = cube.sizes[schema.BAND]
        if count != self.count:
            raise InputError(
                f"The model was trained on {self.count} bands{_span(self.wavelength)} but the "
                f"scene has {count}{_span(_along_band(cube, schema.WAVELENGTH))}. {_REMEDY}"
            )
        self._check_good(cube)
        wavelength = _along_band(cube, schema.WAVELENGTH)
        if self.wavelength is None:
            return
        if wavelength is None:
            warnings.warn(
                f"The scene does not say its wavelengths; its {count} bands were taken to be those "
                "that the model was trained on.",
                GuessWarning,
                stacklevel=5,
            )
            return
        apart = np.abs(wavelength - self.wavelength)[self.needed]
        if not (apart <= _SAME_WAVELENGTH).all():
            raise InputError(_difference(self.wavelength[self.needed], wavelength[self.needed]))

    def _check_good(self, cube: xr.DataArray) -> None:
        lost = np.flatnonzero(self.needed & ~schema.good_bands(cube))
        if lost.size:
            raise InputError(
                f"The scene marks bands as bad that the model needs: {_listed(lost + 1)} (counted "
                "from 1). Mark them bad in the training scene too and train again, or drop the "
                "coordinate 'good_band' if their values can be trusted."
            )


def _along_band(cube: xr.DataArray, name: str) -> NDArray[np.float64] | None:
    if name not in cube.coords:
        return None
    return np.asarray(cube.coords[name].values, dtype=np.float64)


def _difference(wanted: NDArray[np.float64], found: NDArray[np.float64]) -> str:
    apart = np.abs(found - wanted)
    differing = np.flatnonzero(~(apart <= _SAME_WAVELENGTH))
    first = [f"{wanted[band]:.1f} nm (scene: {found[band]:.1f})" for band in differing[:3]]
    more = f" and {differing.size - 3} more" if differing.size > 3 else ""
    return (
        f"The wavelengths of the scene are not those that the model was trained on: "
        f"{differing.size} of {wanted.size} bands differ, by up to {np.nanmax(apart):.1f} nm: "
        f"{', '.join(first)}{more}. {_REMEDY}"
    )


def _listed(numbers: NDArray[Any]) -> str:
    shown = ", ".join(str(number) for number in numbers[:5])
    return f"{shown} and {numbers.size - 5} more" if numbers.size > 5 else shown


def _span(wavelength: NDArray[np.float64] | None) -> str:
    if wavelength is None:
        return ""
    return f" ({np.nanmin(wavelength):.0f} to {np.nanmax(wavelength):.0f} nm)"
