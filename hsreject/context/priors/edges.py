"""Edge weights: how strongly a pixel is tied to its right and its lower neighbor."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.context.prior import LAYER, Grid
from hsreject.errors import InputError
from hsreject.schema import BAND, X, Y, good_bands

Edges = str | Sequence[int] | NDArray[np.floating[Any]] | None
"""What the option `edges` of a prior may be; :class:`hsreject.VectorTV` explains it."""


def weight_halo(weight: float) -> int:
    """Return the halo of a total variation: 8 pixels per unit of weight, and at least 16.

    Measured on Indian Pines and on noisy synthetic scenes: blocks of 97 pixels with halos of this
    width have at least 99.9 % of the labels of the whole scene, for weights from 0.5 to 8.
    """
    return max(math.ceil(8 * weight), 16)


def existing_edges(valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which edges join two valid pixels, (y, direction, x): to the right, down."""
    exists = np.zeros((valid.shape[0], 2, valid.shape[1]), dtype=bool)
    exists[:, 0, :-1] = valid[:, :-1] & valid[:, 1:]
    exists[:-1, 1] = valid[:-1] & valid[1:]
    return exists


def falling_weights(squared: Any, mean: float) -> Any:
    r"""Return :math:`\exp(-d^2 / (2\,\overline{d^2}))` of squared differences and their mean.

    They are an array or a DataArray; an image without any difference has weights of 1.
    """
    return np.exp(-squared / (2 * mean)) if mean > 0 else squared + 1.0


def chosen_edge_weights(edges: Edges, grid: Grid) -> NDArray[np.float64]:
    """Return the edge weights, (y, direction, x), that the option `edges` of a prior asks for."""
    exists = existing_edges(grid.valid)
    if edges is None:
        return exists.astype(np.float64)
    if isinstance(edges, np.ndarray) and edges.ndim > 1:
        return np.where(exists, _given(edges, exists), 0.0)
    wanted_by = "A prior with edges from the image"
    if isinstance(edges, str):
        layers = grid.components(1, wanted_by=wanted_by)
    else:
        image = grid.required_image(wanted_by=wanted_by)
        layers = np.where(grid.valid, image[_band_indices(edges, len(image))], 0.0).astype(float)
    squared = np.zeros(exists.shape)
    squared[:, 0, :-1] = (np.diff(layers, axis=2) ** 2).sum(axis=0)
    squared[:-1, 1] = (np.diff(layers, axis=1) ** 2).sum(axis=0)
    mean = squared[exists].mean() if exists.any() else 0.0
    return np.where(exists, falling_weights(squared, mean), 0.0)


def scene_edge_weights(edges: Edges, image: xr.DataArray) -> xr.DataArray:
    """Return the edge weights of a whole scene, (layer, y, x): to the right, down.

    They are lazy if the image is. The principal component and the mean of the squared differences
    are gathered now, chunk by chunk, in two passes over the image.
    """
    from hsreject.features.components import principal_axes  # noqa: PLC0415 (see Grid.components)
    from hsreject.features.pixels import cube_moments, map_pixels, on_the_grid_of  # noqa: PLC0415

    if edges is None or (isinstance(edges, np.ndarray) and edges.ndim > 1):
        raise InputError(
            "A prior whose edge weights are an array belongs to one scene and cannot be used on "
            "another, or in blocks. Take edges='image' or the indices of bands."
        )
    if isinstance(edges, str):
        good = image.isel({BAND: np.flatnonzero(good_bands(image))})
        (moments,) = cube_moments(good)
        if not moments.count:
            raise InputError("No pixel of the image has data in all its good bands.")
        axis = principal_axes(moments)[1][:1]
        layers = map_pixels(good, lambda spectra: spectra @ axis.T, n_outputs=1, dtype=np.float64)
    else:
        used = image.isel({BAND: _band_indices(edges, image.sizes[BAND])})
        layers = used.data.astype(np.float64)
    layers = on_the_grid_of(image, layers, dim=LAYER, coords={})
    squared = xr.concat(
        [((layers.shift({dim: -1}) - layers) ** 2).sum(LAYER, skipna=False) for dim in (X, Y)],
        dim=LAYER,
    )
    weights: xr.DataArray = falling_weights(squared, float(squared.mean()))
    return weights.fillna(0.0).astype(np.float32)  # NaN: an edge that does not exist


def _given(edges: NDArray[np.floating[Any]], exists: NDArray[np.bool_]) -> NDArray[np.float64]:
    if edges.shape != exists.shape:
        raise InputError(
            f"Edge weights must have the shape (y, 2, x) = {exists.shape} (got {edges.shape}): "
            "[:, 0] to the right neighbor, [:, 1] to the lower one."
        )
    weights = edges.astype(np.float64)
    if not (np.isfinite(weights[exists]).all() and (weights[exists] >= 0).all()):
        raise InputError("Edge weights must be finite and at least 0 between pixels with data.")
    return weights


def _band_indices(
    edges: Sequence[int] | NDArray[np.floating[Any]], n_bands: int
) -> NDArray[np.intp]:
    indices = np.asarray(edges)
    if indices.size == 0 or indices.dtype.kind not in "iu" or indices.min() < 0:
        raise InputError(
            f"edges must be None, 'image', band indices or weights (y, 2, x) (got {edges!r})."
        )
    if indices.max() >= n_bands:
        raise InputError(
            f"edges names band {indices.max()} but the image has {n_bands} bands (0 is the first)."
        )
    return indices.astype(np.intp)
