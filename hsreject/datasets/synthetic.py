"""A synthetic georeferenced scene whose truth is known in every pixel."""

from __future__ import annotations

import numpy as np
import xarray as xr
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, gaussian_filter1d

from hsreject.errors import InputError
from hsreject.registry import check_count, check_number
from hsreject.schema import BAND, CUBE_DIMS, GOOD_BAND, MAP_DIMS, WAVELENGTH, X, Y, attach_classes
from hsreject.schema.classes import ClassTable

_PIXEL_SIZE = 30.0
_WEST, _NORTH = 368_000.0, 5_808_000.0  # a corner in UTM zone 33 north
_CRS = "EPSG:32633"
_MOST_VALUES = 10**9  # 8 GB while it is drawn


def synthetic_scene(
    *,
    rows: int = 96,
    columns: int = 96,
    n_classes: int = 5,
    n_bands: int = 60,
    noise: float = 0.25,
    seed: int = 0,
    hole: bool = True,
) -> tuple[xr.DataArray, xr.DataArray]:
    """Make a synthetic scene and its labels.

    The classes are smooth patches (the largest of `n_classes` smoothed random fields), the spectra
    smooth random curves, the signal of a pixel a mixture that blurs the class borders, and the
    noise is white in space and correlated along the bands. Pixels near the border of two classes
    carry no reference, as in real reference maps.

    Parameters
    ----------
    rows, columns : int
        Size in pixels, at least 16.
    n_classes, n_bands : int
        How many classes (2 or more) and bands (4 or more).
    noise : float
        Standard deviation of the noise, in units of the spread between class spectra.
    seed : int
        The same seed gives the same scene.
    hole : bool
        Cut a disc without data out of the scene (NaN), as clouds and swath edges do.

    Returns
    -------
    cube : DataArray (band, y, x), float32
        With `wavelength` in nm and a CRS (UTM zone 33 north, 30 m pixels).
    labels : DataArray (y, x), uint8
        1..n_classes; 0 where there is no reference.

    See Also
    --------
    hsreject.load_indian_pines : a real scene.
    hsreject.sample_per_class : draws training pixels.

    Examples
    --------
    >>> from hsreject import synthetic_scene
    >>> cube, labels = synthetic_scene(rows=32, columns=40, n_classes=3)
    >>> cube.sizes["x"], int(labels.max()), cube.rio.crs.to_epsg()
    (40, 3, 32633)
    """
    check_count("rows", rows, least=16)
    check_count("columns", columns, least=16)
    check_count("n_classes", n_classes, least=2)
    check_count("n_bands", n_bands, least=4)
    check_number("noise", noise, least=0)
    if rows * columns * (n_bands + n_classes) > _MOST_VALUES:
        raise InputError(
            f"A synthetic scene of {rows} x {columns} x {n_bands} values with {n_classes} classes "
            "is larger than memory. Ask for fewer of them."
        )
    random = np.random.default_rng(seed)
    fields = random.standard_normal((n_classes, rows, columns))
    fields = gaussian_filter(fields, (0, min(rows, columns) / 14, min(rows, columns) / 14))
    fields /= fields.std(axis=(1, 2), keepdims=True)
    truth = fields.argmax(axis=0)
    values = _spectra_of(truth, n_classes, n_bands, noise, random)
    # where the two largest fields are close, two patches meet: nobody would label such a pixel
    ordered = np.sort(fields, axis=0)
    labels = np.where(ordered[-1] - ordered[-2] > 0.15, truth + 1, 0).astype(np.uint8)
    if hole:
        row, column = np.ogrid[:rows, :columns]
        inside = np.hypot(row - 0.3 * rows, column - 0.7 * columns) < 0.09 * min(rows, columns)
        values[:, inside] = np.nan
    return _labelled(values, labels, n_classes)


def _spectra_of(
    truth: NDArray[np.intp],
    n_classes: int,
    n_bands: int,
    noise: float,
    random: np.random.Generator,
) -> NDArray[np.float32]:
    spectra = gaussian_filter1d(random.standard_normal((n_classes, n_bands)), n_bands / 10, axis=1)
    spectra /= spectra.std(axis=0).mean()
    # a pixel sees its neighbours, too: blurred memberships are the shares of a mixed pixel
    members = (truth == np.arange(n_classes)[:, None, None]).astype(np.float64)
    mixture = gaussian_filter(members, (0, 0.7, 0.7))
    signal = np.tensordot(spectra.T, mixture, axes=1)
    speckle = gaussian_filter1d(random.standard_normal(signal.shape), n_bands / 20, axis=0)
    # more bands average more noise away: the root keeps `noise` equally hard for every count
    speckle *= noise * np.sqrt(n_bands) / 2 / speckle.std()
    return np.asarray(0.3 + 0.05 * (signal + speckle), dtype=np.float32)


def _labelled(
    values: NDArray[np.float32], labels: NDArray[np.uint8], n_classes: int
) -> tuple[xr.DataArray, xr.DataArray]:
    import rioxarray  # noqa: F401, PLC0415  (adds the .rio accessor; slow)

    n_bands, rows, columns = values.shape
    place = {
        Y: _NORTH - _PIXEL_SIZE * (np.arange(rows) + 0.5),
        X: _WEST + _PIXEL_SIZE * (np.arange(columns) + 0.5),
    }
    spectral = {
        BAND: np.arange(1, n_bands + 1),
        WAVELENGTH: (BAND, np.linspace(420.0, 2450.0, n_bands), {"units": "nm"}),
        GOOD_BAND: (BAND, np.ones(n_bands, dtype=bool)),
    }
    cube = xr.DataArray(values, dims=CUBE_DIMS, coords=place | spectral, name="reflectance")
    reference = xr.DataArray(labels, dims=MAP_DIMS, coords=place, name="labels")
    classes = ClassTable.from_names([f"cover {number}" for number in range(1, n_classes + 1)])
    return cube.rio.write_crs(_CRS), attach_classes(reference.rio.write_crs(_CRS), classes)
