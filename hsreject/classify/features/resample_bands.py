"""Matching by wavelength: the bands of one instrument from those of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import numpy as np

from hsreject import schema
from hsreject.classify.features.contract import SceneTransformer
from hsreject.classify.pixels import feature_dtype, map_pixels, on_the_grid_of
from hsreject.errors import InputError

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

METHODS = ("nearest", "interpolate")


class ResampleBands(SceneTransformer):
    """The bands of the fitted scene, taken from a scene with other bands.

    Parameters
    ----------
    method : {"nearest", "interpolate"}, default "nearest"
        "nearest" takes the band whose wavelength is nearest; "interpolate" goes linearly between
        the two neighbouring bands, never beyond the first and last. Bands marked bad in the new
        scene are not used. Band widths are not modelled: a broad band is not a mean of narrow ones.
    tolerance : float, optional
        How far (nm) the nearest used wavelength may lie from the wanted one; by default the median
        spacing of the wanted wavelengths.

    Attributes
    ----------
    wavelength_ : ndarray (n_bands,)
        The wavelengths (nm) that every transformed scene will have.

    Examples
    --------
    >>> import xarray as xr
    >>> def scene(wavelength):
    ...     values = np.reshape(np.array(wavelength) / 100.0, (-1, 1, 1))
    ...     coords = {"wavelength": ("band", np.array(wavelength))}
    ...     return xr.DataArray(values, dims=("band", "y", "x"), coords=coords)
    >>> resample = ResampleBands(method="interpolate").fit(scene([500.0, 600.0]))
    >>> resample.transform(scene([490.0, 530.0, 620.0])).values.ravel()
    array([5., 6.])
    """

    def __init__(self, *, method: str = "nearest", tolerance: float | None = None) -> None:
        self.method = method
        self.tolerance = tolerance

    @property
    def reach(self) -> int:
        """None of its neighbours matter to a pixel."""
        return 0

    def _learn_scene(self, cube: xr.DataArray) -> None:
        self.fit_wavelengths(
            _wavelengths(cube), needed=np.ones(cube.sizes[schema.BAND], dtype=bool)
        )

    def fit_wavelengths(
        self, wavelength: NDArray[np.float64], *, needed: NDArray[np.bool_]
    ) -> Self:
        """Learn the wanted bands from a list of wavelengths (nm) and which of them matter."""
        if self.method not in METHODS:
            raise InputError(f"method must be one of {', '.join(METHODS)} (got {self.method!r}).")
        self.wavelength_ = np.asarray(wavelength, dtype=np.float64)
        self.needed_ = np.asarray(needed, dtype=bool)
        self.n_features_in_ = self.wavelength_.size
        self.bands_used_ = np.arange(self.n_features_in_)
        return self

    def transform(self, X: xr.DataArray) -> xr.DataArray:
        """Return the scene with the fitted wavelengths; the number of its bands is free."""
        cube = schema.check_dims(X, schema.CUBE_DIMS, name="cube")
        cube = cube.isel({schema.BAND: np.flatnonzero(schema.good_bands(cube))})
        return self._transform_scene(cube)

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        weights = self._weights(_wavelengths(cube))
        taking_part = np.flatnonzero(weights.any(axis=0))
        weights = weights[:, taking_part]
        data = map_pixels(
            cube.isel({schema.BAND: taking_part}),
            lambda samples: samples @ weights.T,
            n_outputs=len(weights),
            dtype=feature_dtype(cube.dtype),
        )
        coords: dict[str, Any] = {
            schema.WAVELENGTH: (schema.BAND, self.wavelength_, {"units": "nm"}),
            schema.GOOD_BAND: (schema.BAND, self.needed_),
        }
        return on_the_grid_of(cube, data, dim=schema.BAND, coords=coords)

    def _weights(self, found: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the matrix (wanted band, found band) that resamples; 0 for unneeded bands."""
        self._check_coverage(found)
        order = np.argsort(found, kind="stable")
        ordered = found[order]
        weights = np.zeros((self.wavelength_.size, found.size))
        rows = np.flatnonzero(self.needed_)
        wanted = self.wavelength_[rows]
        right = np.clip(np.searchsorted(ordered, wanted), min(1, found.size - 1), found.size - 1)
        left = np.maximum(right - 1, 0)
        width = ordered[right] - ordered[left]
        share = np.divide(wanted - ordered[left], width, out=np.zeros(rows.size), where=width > 0)
        share = np.clip(share, 0.0, 1.0)
        if self.method == "nearest":
            share = np.round(share)
        weights[rows, order[left]] += 1.0 - share
        weights[rows, order[right]] += share
        return weights

    def _check_coverage(self, found: NDArray[np.float64]) -> None:
        wanted = self.wavelength_[self.needed_]
        spacing = np.diff(np.sort(wanted))
        tolerance = self.tolerance
        if tolerance is None:
            tolerance = float(np.median(spacing)) if spacing.size else 0.0
        apart = np.abs(wanted[:, None] - found).min(axis=1)
        missing = wanted[~(apart <= tolerance)]
        if missing.size:
            raise InputError(
                f"The scene has no band within {tolerance:g} nm of {missing.size} of the "
                f"{wanted.size} wanted wavelengths, from {missing.min():.1f} to "
                f"{missing.max():.1f} nm (its own reach from {found.min():.1f} to "
                f"{found.max():.1f} nm). Raise tolerance, or train on the bands both scenes have."
            )


def _wavelengths(cube: xr.DataArray) -> NDArray[np.float64]:
    if schema.WAVELENGTH not in cube.coords:
        raise InputError(
            "Bands can be matched by wavelength only in a scene with the coordinate 'wavelength' "
            "(nm) along 'band'. Assign it with cube.assign_coords(wavelength=('band', [...]))."
        )
    wavelength = np.asarray(cube.coords[schema.WAVELENGTH].values, dtype=np.float64)
    if not np.isfinite(wavelength).all():
        raise InputError(
            "The coordinate 'wavelength' must be finite in every good band to match bands by it. "
            "Mark the bands without one as bad with the coordinate 'good_band'."
        )
    return wavelength
