"""Partitions: which pixels form a segment, given or found by SLIC."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.context.priors.segments import Segments
from hsreject.errors import InputError
from hsreject.schema import MAP_DIMS, check_dims

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hsreject.context.grid import Grid

Labels = np.ndarray[tuple[int, ...], np.dtype[np.integer[Any]]]
PIXELS_OF_A_SEGMENT = (180, 60, 20)  # on average, of the default scales


def given_partitions(partitions: object) -> tuple[Labels, ...]:
    """Return one or several label arrays (y, x), NumPy or xarray, as a tuple of NumPy arrays."""
    single = isinstance(partitions, xr.DataArray | np.ndarray) and partitions.ndim == 2
    if not single and not isinstance(partitions, Sequence | np.ndarray):
        raise InputError(
            "partitions must be an array of segment labels (y, x) or a list of such arrays "
            f"(got {type(partitions).__name__})."
        )
    arrays: Sequence[Any] = [partitions] if single else list(partitions)  # type: ignore[call-overload]  # checked above
    if not arrays:
        raise InputError("partitions is empty. Give at least one array of segment labels (y, x).")
    return tuple(_checked(array) for array in arrays)


def _checked(partition: Any) -> Labels:
    if isinstance(partition, xr.DataArray):
        partition = check_dims(partition, MAP_DIMS, name="partition").values
    labels = np.asarray(partition)
    if labels.ndim != 2 or labels.dtype.kind not in "iu":
        raise InputError(
            "A partition must be an array of whole numbers with the axes (y, x), one number a "
            f"segment (got {labels.dtype} of shape {labels.shape})."
        )
    return labels


def fitting_partitions(partitions: Sequence[Labels], grid: Grid) -> list[Segments]:
    """Return given partitions as segments of `grid`, if they have its shape."""
    for labels in partitions:
        if labels.shape != grid.valid.shape:
            raise InputError(
                f"A partition must have the shape (y, x) of the scene, {grid.valid.shape} "
                f"(got {labels.shape}). Cut or resample it to the scene first."
            )
    return [Segments.from_labels(labels, grid.valid) for labels in partitions]


def superpixels(
    grid: Grid, n_segments: Sequence[int] | None, *, n_components: int, compactness: float
) -> list[Segments]:
    """Return SLIC segments of the leading components of the image, one partition a scale."""
    components = grid.components(n_components, wanted_by="A prior over superpixels")
    if n_segments is None:
        n_pixels = int(grid.valid.sum())
        n_segments = [max(1, round(n_pixels / size)) for size in PIXELS_OF_A_SEGMENT]
    return [
        Segments.from_labels(slic_partition(components, grid.valid, count, compactness), grid.valid)
        for count in n_segments
    ]


def slic_partition(
    components: NDArray[np.float64], valid: NDArray[np.bool_], n_segments: int, compactness: float
) -> Labels:
    """Return about `n_segments` superpixels, (y, x), 0 where there is no data.

    Parameters
    ----------
    components : array, (component, y, x)
    valid : array of bool, (y, x)
    n_segments : int
    compactness : float
        The difference of spectra, in standard deviations of the first component, that counts as
        much as the distance between two neighbouring segments.
    """
    n_pixels = int(valid.sum())
    if n_segments == 1:  # SLIC needs the distance between two
        return valid.astype(np.int64)
    if n_segments >= n_pixels:
        return np.where(valid, np.cumsum(valid).reshape(valid.shape), 0)
    rows, columns = (np.flatnonzero(valid.any(axis=axis)) for axis in (1, 0))
    box = np.s_[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]  # crops give the same answer
    image = np.moveaxis(components[:, *box], 0, -1)
    spectra = image[valid[box]]
    spread, extent = spectra[:, 0].std(), np.ptp(spectra)
    labels = np.zeros(valid.shape, np.int64)
    labels[box] = _slic(
        image,
        n_segments,
        compactness * (spread / extent if spread > 0 else 1.0),  # slic divides by the extent
        None if valid[box].all() else valid[box],
    )
    return labels


def _slic(
    image: NDArray[np.float64], n_segments: int, compactness: float, mask: NDArray[np.bool_] | None
) -> Any:
    from skimage.segmentation import slic  # noqa: PLC0415 (slow to import, and often not needed)

    with warnings.catch_warnings():
        # on odd footprints some of the seeds that a mask asks for end up without pixels
        warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
        return slic(
            image,
            n_segments,
            compactness,
            convert2lab=False,
            start_label=1,
            mask=mask,
            channel_axis=-1,
        )
