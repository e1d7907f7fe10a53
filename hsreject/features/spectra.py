"""Features of single spectra, and the bands that a model needs of a scene."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject import schema
from hsreject.errors import GuessWarning, InputError
from hsreject.features.pixels import cube_moments, feature_dtype, map_pixels, on_the_grid_of
from hsreject.features.transformer import SampleTransformer, SceneTransformer
from hsreject.registry import check_choice

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

Range = Sequence[float]

# Two band lists of one instrument differ by rounding; bands of another one by nanometres.
_SAME_WAVELENGTH = 0.1

_REMEDY = (
    "To match bands by wavelength, say --match-bands nearest or interpolate (in Python "
    "match_bands='nearest')."
)


class Normalize(SampleTransformer):
    """Spectra scaled to unit length: x / ||x||_2.

    This removes illumination (shade, slope) and keeps the spectral angle. A spectrum of zeros
    stays zero.

    See Also
    --------
    hsreject.Scale : scales bands instead of spectra.

    Examples
    --------
    >>> import xarray as xr
    >>> from hsreject import Normalize
    >>> cube = xr.DataArray([[[3.0, 0.0]], [[4.0, 0.0]]], dims=("band", "y", "x"))
    >>> Normalize().fit_transform(cube).values[:, 0]
    array([[0.6, 0. ],
           [0.8, 0. ]])
    """

    def _learn_scene(self, cube: xr.DataArray) -> None:
        """Nothing to learn."""

    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        # lengths of tiny or huge values would under- or overflow when squared
        samples = samples.astype(np.float64)
        largest = np.abs(samples).max(axis=1, keepdims=True)
        unit: NDArray[Any] = np.divide(
            samples, largest, out=np.zeros_like(samples), where=largest > 0
        )
        length = np.sqrt((unit**2).sum(axis=1, keepdims=True))
        unit /= np.where(length > 0, length, 1.0)
        return unit


class Scale(SampleTransformer):
    """Bands shifted to mean 0 and scaled to standard deviation 1.

    x becomes (x - m) / s, with mean m and standard deviation s (divisor n - 1) of each band over
    all pixels that have data. A band that is constant becomes 0.

    Attributes
    ----------
    mean_, scale_ : ndarray (n_features,)
        What is subtracted, and what is divided by (1 for constant bands).

    See Also
    --------
    hsreject.Normalize : scales spectra instead of bands.
    hsreject.PCA : components of scaled bands.

    Examples
    --------
    >>> import xarray as xr
    >>> from hsreject import Scale
    >>> cube = xr.DataArray([[[1.0, 2.0, 3.0]], [[5.0, 5.0, 5.0]]], dims=("band", "y", "x"))
    >>> Scale().fit_transform(cube).values[:, 0]
    array([[-1.,  0.,  1.],
           [ 0.,  0.,  0.]])
    """

    def _learn_scene(self, cube: xr.DataArray) -> None:
        (statistics,) = cube_moments(cube, needed_by="Scale")
        deviation = np.sqrt(statistics.variance)
        # the deviation of a constant band is the rounding error of its mean, or 0
        constant = deviation <= 1e-12 * np.abs(statistics.mean)
        self.mean_ = statistics.mean
        self.scale_ = np.where(constant, 1.0, deviation)

    def _transform_samples(self, samples: NDArray[Any]) -> NDArray[Any]:
        scaled: NDArray[Any] = (samples - self.mean_) / self.scale_
        return scaled


class SelectBands(SceneTransformer):
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

    See Also
    --------
    hsreject.Normalize : scales what is left.
    hsreject.open_scene : marks bad bands.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import SelectBands
    >>> import xarray as xr
    >>> coords = {
    ...     "wavelength": ("band", [450.0, 650.0, 850.0]),
    ...     "good_band": ("band", [True, False, True]),
    ... }
    >>> cube = xr.DataArray(np.ones((3, 2, 2)), dims=("band", "y", "x"), coords=coords)
    >>> SelectBands(wavelengths=(400, 700)).fit_transform(cube).wavelength.values
    array([450.])
    """

    halo = 0

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
        wavelength = _wavelengths(cube)
        if wavelength is None:
            raise InputError(
                "Bands can be selected by wavelength only in a cube with the coordinate "
                "'wavelength' (nm) along 'band'. Assign it, or leave out the ranges."
            )
        selected = np.ones(wavelength.size, dtype=bool)
        if self.wavelengths is not None:
            selected &= _inside(wavelength, self.wavelengths, name="wavelengths")
        if self.exclude is not None:
            selected &= ~_inside(wavelength, self.exclude, name="exclude")
        if not selected.any():
            raise InputError(
                f"No good band is left: wavelengths={self.wavelengths}, exclude={self.exclude}, "
                f"and the scene has {wavelength.min():.0f} to {wavelength.max():.0f} nm."
            )
        self.bands_used_ = self.bands_used_[selected]

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


@dataclass(frozen=True, eq=False)
class BandRequirements:
    """The bands of a training scene, and which of them a model needs in any other scene."""

    count: int  # bands, bad ones included
    needed: NDArray[np.bool_]  # (count,): good bands that the features have chosen
    wavelength: NDArray[np.float64] | None  # (count,): centers in nm, if the scene said so

    @classmethod
    def of(cls, cube: xr.DataArray, bands: NDArray[np.intp]) -> BandRequirements:
        """Return the requirements of a model fitted to `cube` that looks at these `bands`."""
        count = cube.sizes[schema.BAND]
        needed = np.isin(np.arange(count), bands)
        return cls(count, needed, _wavelengths(cube))

    def match(self, cube: xr.DataArray, *, how: str = "exact") -> xr.DataArray:
        """Return `cube` with the bands of the training scene, or say what is different.

        "exact" needs the same wavelengths, in whatever order. "nearest" takes the band nearest to
        each needed wavelength; "interpolate" goes linearly between the two bands around it, never
        beyond the first and last. The nearest band may be as far away as the needed wavelengths
        are from each other, in the median. Widths are ignored: a broad band is not a mean of narrow
        ones.
        """
        check_choice("match_bands", how, ("exact", "nearest", "interpolate"))
        if how == "exact":
            cube = self.ordered(cube)
            self._check_same(cube)
            # the model's own choice of bands counts, whatever else this scene calls good
            return cube.assign_coords({schema.GOOD_BAND: (schema.BAND, self.needed)})
        if self.wavelength is None:
            raise InputError(
                f"Bands cannot be matched (--match-bands {how}, in Python match_bands='{how}'): "
                "the scene that the model was trained on had no wavelengths. Give a scene with "
                "the same bands, and leave that out."
            )
        good = cube.isel({schema.BAND: np.flatnonzero(schema.good_bands(cube))})
        needed, available = self.wavelength[self.needed], _wavelengths(good)
        if available is None or not np.isfinite(available).all():
            raise InputError(
                "Bands can be matched by wavelength only if every good band of the scene has one. "
                "State them in its file or header, and mark bands without one as bad (in Python "
                "with the coordinates 'wavelength', in nm, and 'good_band' along 'band')."
            )
        tol = float(np.median(np.diff(np.sort(needed)))) if needed.size > 1 else _SAME_WAVELENGTH
        missing = needed[~(np.abs(needed[:, None] - available).min(axis=1) <= tol)]
        if missing.size:
            raise InputError(
                f"The scene has no band within {tol:g} nm of {missing.size} of the {needed.size} "
                f"wanted wavelengths, from {missing.min():.1f} to {missing.max():.1f} nm (its own "
                f"go from {available.min():.1f} to {available.max():.1f} nm). Train on the bands "
                "that both scenes have (feature select_bands)."
            )
        weights = np.zeros((self.count, available.size))
        weights[self.needed] = _resampling(needed, available, how)
        used = np.flatnonzero(weights.any(axis=0))  # no other band matters, not even its NaN
        data = map_pixels(
            good.isel({schema.BAND: used}),
            lambda samples: samples @ weights[:, used].T,
            n_outputs=self.count,
            dtype=feature_dtype(cube.dtype),
        )
        coords: dict[str, Any] = {
            schema.WAVELENGTH: (schema.BAND, self.wavelength, {"units": "nm"}),
            schema.GOOD_BAND: (schema.BAND, self.needed),
        }
        return on_the_grid_of(good, data, dim=schema.BAND, coords=coords)

    def ordered(self, cube: xr.DataArray) -> xr.DataArray:
        """Return `cube` with its bands in the order of the training scene, if that is certain.

        It is if every needed wavelength has a band of its own; other bands do not matter.
        """
        available = _wavelengths(cube)
        if self.wavelength is None or available is None:
            return cube
        needed = self.wavelength[self.needed]
        if cube.sizes[schema.BAND] == self.count and _same(needed, available[self.needed]).all():
            return cube
        apart = np.abs(needed[:, None] - np.nan_to_num(available, nan=np.inf))
        nearest = apart.argmin(axis=1)
        if not _same(needed, available[nearest]).all() or np.unique(nearest).size < nearest.size:
            return cube
        # places of other bands hold a needed one, so that positions stay those of the training
        # scene; it is marked bad there, or edges of the image would count it many times
        places = np.full(self.count, nearest[0])
        places[self.needed] = nearest
        cube = cube.isel({schema.BAND: places})
        good = schema.good_bands(cube) & self.needed
        return cube.assign_coords({schema.GOOD_BAND: (schema.BAND, good)})

    def _check_same(self, cube: xr.DataArray) -> None:
        """Raise unless the scene has the needed bands of the training scene in the same places."""
        count, wavelength = cube.sizes[schema.BAND], _wavelengths(cube)
        if count != self.count:
            raise InputError(
                f"The model was trained on {self.count} bands{_span(self.wavelength)} but the "
                f"scene has {count}{_span(wavelength)}. {_REMEDY}"
            )
        lost = np.flatnonzero(self.needed & ~schema.good_bands(cube))
        if lost.size:
            shown = ", ".join(str(band + 1) for band in lost[:5]) + " ..." * (lost.size > 5)
            raise InputError(
                f"The scene marks bands as bad that the model needs: {shown} (counted from 1). "
                "Mark them bad in the training scene too and train again, or drop the "
                "coordinate 'good_band' if their values can be trusted."
            )
        if self.wavelength is None:
            return
        if wavelength is None:
            warnings.warn(
                f"The scene does not say its wavelengths; its {count} bands were taken to be those "
                "that the model was trained on.",
                GuessWarning,
                stacklevel=5,  # the caller of predict_proba
            )
            return
        needed, available = self.wavelength[self.needed], wavelength[self.needed]
        differing = np.flatnonzero(~_same(needed, available))
        if differing.size:
            apart = np.nanmax(np.abs(available - needed))
            first = [f"{needed[i]:.1f} nm (scene: {available[i]:.1f})" for i in differing[:3]]
            raise InputError(
                f"The wavelengths of the scene are not those that the model was trained on: "
                f"{differing.size} of {needed.size} bands differ, by up to {apart:.1f} nm: "
                f"{', '.join(first)}{' ...' if differing.size > 3 else ''}. {_REMEDY}"
            )


def _resampling(
    targets: NDArray[np.float64], available: NDArray[np.float64], how: str
) -> NDArray[np.float64]:
    """Return the weights (target band, available band) of the bands nearest to each target.

    The available bands may come in any order, as those of overlapping spectrometers do.
    """
    units = np.eye(available.size)
    if how == "nearest":
        return np.asarray(units[np.abs(targets[:, None] - available).argmin(axis=1)])
    # Interpolation is linear in the values, so what it makes of a unit vector is the weight of that
    # band. Beyond the first and last band it takes these as they are.
    order = np.argsort(available, kind="stable")
    weights = np.empty((targets.size, available.size))
    weights[:, order] = np.stack([np.interp(targets, available[order], u) for u in units], axis=1)
    return weights


def _same(targets: NDArray[np.float64], available: NDArray[np.float64]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(available - targets) <= _SAME_WAVELENGTH)


def _wavelengths(cube: xr.DataArray) -> NDArray[np.float64] | None:
    if schema.WAVELENGTH not in cube.coords:
        return None
    return np.asarray(cube.coords[schema.WAVELENGTH].values, dtype=np.float64)


def _span(wavelength: NDArray[np.float64] | None) -> str:
    if wavelength is None:
        return ""
    return f" ({np.nanmin(wavelength):.0f} to {np.nanmax(wavelength):.0f} nm)"
