"""Band selection: by quality flag, by wavelength, or by number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import schema
from hsreject.classify.features.contract import SampleTransformer
from hsreject.errors import InputError

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

    from hsreject.classify.moments import Moments

Range = Sequence[float]


class SelectBands(SampleTransformer):
    """The bands that are good and lie in the given wavelength ranges.

    The choice is made when fitted and is the same for every later scene.

    Parameters
    ----------
    wavelengths : (low, high) or list of them, optional
        Ranges in nm, ends included; a band in any of them is kept. Needs a cube with the coordinate
        `wavelength`. By default all wavelengths.
    exclude : (low, high) or list of them, optional
        Ranges in nm to leave out, such as ``[(1350, 1430), (1800, 1960)]`` (water vapour).

    Attributes
    ----------
    bands_used_ : ndarray of int
        Positions of the chosen bands; bands marked bad by `good_band` are never among them.

    Examples
    --------
    >>> import xarray as xr
    >>> coords = {
    ...     "wavelength": ("band", [450.0, 650.0, 850.0]),
    ...     "good_band": ("band", [True, False, True]),
    ... }
    >>> cube = xr.DataArray(np.ones((3, 2, 2)), dims=("band", "y", "x"), coords=coords)
    >>> SelectBands(wavelengths=(400, 700)).fit_transform(cube).wavelength.values
    array([450.])
    """

    def __init__(
        self,
        *,
        wavelengths: Range | Sequence[Range] | None = None,
        exclude: Range | Sequence[Range] | None = None,
    ) -> None:
        self.wavelengths = wavelengths
        self.exclude = exclude

    def _learn_scene(self, cube: xr.DataArray) -> None:
        if self.wavelengths is None and self.exclude is None:
            return
        if schema.WAVELENGTH not in cube.coords:
            raise InputError(
                "Bands can be selected by wavelength only in a cube with the coordinate "
                "'wavelength' (nm) along 'band'. Assign it, or leave out the ranges."
            )
        wavelength = np.asarray(cube.coords[schema.WAVELENGTH].values, dtype=np.float64)
        kept = np.ones(wavelength.size, dtype=bool)
        if self.wavelengths is not None:
            kept &= _inside(wavelength, self.wavelengths, name="wavelengths")
        if self.exclude is not None:
            kept &= ~_inside(wavelength, self.exclude, name="exclude")
        if not kept.any():
            raise InputError(
                f"No good band is left: wavelengths={self.wavelengths}, exclude={self.exclude}, "
                f"and the scene has {wavelength.min():.0f} to {wavelength.max():.0f} nm."
            )
        self.bands_used_ = self.bands_used_[kept]

    def _learn(self, moments: Callable[[], Moments]) -> None:
        if self.wavelengths is not None or self.exclude is not None:
            raise InputError(
                "Samples have no wavelengths: fit SelectBands to a cube, or leave out its ranges."
            )

    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        return samples

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        return cube


def _inside(
    wavelength: NDArray[np.float64], ranges: Range | Sequence[Range], *, name: str
) -> NDArray[np.bool_]:
    pairs = np.atleast_2d(np.asarray(ranges, dtype=np.float64))
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not (pairs[:, 0] <= pairs[:, 1]).all():
        raise InputError(
            f"{name} must be a pair (low, high) in nm or a list of pairs (got {ranges!r})."
        )
    low, high = pairs[:, :1], pairs[:, 1:]
    return np.asarray(((wavelength >= low) & (wavelength <= high)).any(axis=0))
