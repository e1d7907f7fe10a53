"""Edge weights: how strongly a pixel is tied to its right and its lower neighbor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hsreject.errors import InputError

if TYPE_CHECKING:
    from hsreject.context.prior import Grid
    from hsreject.context.scene_image import SceneImage


PIXELS_PER_WEIGHT = 16
"""How far, in pixels, a unit of weight carries the influence of a pixel on the labels around it.

Measured on Indian Pines and on noisy synthetic scenes: blocks with margins of this width have at
least 99.9 % of the labels of the whole scene, for weights from 0.5 to 8.
"""


@dataclass(frozen=True)
class ImageEdges:
    r"""Edge weights from bands of an image, on the scale of a larger one: the same in every block.

    .. math:: w = \exp(-d^2 / (2\,mean\_squared))

    Parameters
    ----------
    bands : tuple of int
        Bands of the image over which :math:`d^2` sums.
    mean_squared : float
        The mean of :math:`d^2` over all edges of the scene; 0 makes all weights 1.
    """

    bands: tuple[int, ...]
    mean_squared: float


Edges = str | Sequence[int] | NDArray[np.floating[Any]] | ImageEdges | None
"""What the option `edges` of a prior may be; :class:`hsreject.VectorTV` explains it."""


def weight_halo(weight: float) -> int:
    """Return the halo of a total variation: 16 pixels per unit of weight, and at least 16."""
    return int(np.ceil(PIXELS_PER_WEIGHT * max(weight, 1.0)))


def existing_edges(valid: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Return which edges join two valid pixels, (y, direction, x): to the right, down."""
    exists = np.zeros((valid.shape[0], 2, valid.shape[1]), dtype=bool)
    exists[:, 0, :-1] = valid[:, :-1] & valid[:, 1:]
    exists[:-1, 1] = valid[:-1] & valid[1:]
    return exists


def image_edge_weights(
    layers: NDArray[np.floating[Any]],
    exists: NDArray[np.bool_],
    *,
    mean_squared: float | None = None,
) -> NDArray[np.float64]:
    r"""Return :math:`\exp(-d^2 / (2\,\overline{d^2}))` of each edge, d the difference across it.

    Parameters
    ----------
    layers : array, (layer, y, x)
        Bands or components; :math:`d^2` sums over them, and the mean is over existing edges.
    exists : array of bool, (y, direction, x)
    mean_squared : float, optional
        The mean of a larger scene, to be taken instead.

    Returns
    -------
    array, (y, direction, x)
        0 where there is no edge, else in (0, 1].
    """
    squared = np.zeros(exists.shape)
    squared[:, 0, :-1] = (np.diff(layers, axis=2) ** 2).sum(axis=0)
    squared[:-1, 1] = (np.diff(layers, axis=1) ** 2).sum(axis=0)
    mean = mean_squared
    if mean is None:
        mean = squared[exists].mean() if exists.any() else 0.0
    weights = np.exp(-squared / (2 * mean)) if mean > 0 else np.ones(exists.shape)
    return np.where(exists, weights, 0.0)


def chosen_edge_weights(edges: Edges, grid: Grid) -> NDArray[np.float64]:
    """Return the edge weights, (y, direction, x), that the option `edges` of a prior asks for."""
    exists = existing_edges(grid.valid)
    if edges is None:
        return exists.astype(np.float64)
    if isinstance(edges, np.ndarray) and edges.ndim > 1:
        return np.where(exists, _given(edges, exists), 0.0)
    wanted_by = "A prior with edges from the image"
    if isinstance(edges, str):
        return image_edge_weights(grid.components(1, wanted_by=wanted_by), exists)
    image = grid.required_image(wanted_by=wanted_by)
    if isinstance(edges, ImageEdges):
        chosen = image[_band_indices(edges.bands, image.shape[0])]
        layers = np.where(grid.valid, chosen, 0.0)
        return image_edge_weights(layers, exists, mean_squared=edges.mean_squared)
    layers = np.where(grid.valid, image[_band_indices(edges, image.shape[0])], 0.0)
    return image_edge_weights(layers.astype(np.float64), exists)


def edges_on_scene(edges: Edges, scene: SceneImage) -> Edges:
    """Return the option `edges` of a prior with the scale of `scene`, to be used in its blocks."""
    if edges is None or isinstance(edges, ImageEdges):
        return edges
    if isinstance(edges, str):
        return scene.edges_along(scene.first_component())
    if isinstance(edges, np.ndarray) and edges.ndim > 1:
        raise InputError(
            "A prior whose edge weights are an array belongs to one scene and cannot be used on "
            "another, or in blocks. Take edges='image' or the indices of bands."
        )
    return scene.edges_along(scene.bands(_band_indices(edges, scene.n_bands)))


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
