"""The edge graph of a scene, the linear systems of its Laplacian, and features diffused on it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import splu

from hsreject.features.pixels import cube_moments, feature_dtype, on_the_grid_of
from hsreject.features.transformer import SceneTransformer
from hsreject.features.windows import on_windows
from hsreject.registry import check_number
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

_CONTRAST = 3.0
N_GUIDES = 10

_LEAST_WEIGHT = 1e-6  # across the sharpest edge: keeps every region of pixels connected
_LEAF = 24  # pixels of a rectangle that is not dissected any further

HALO = 32
"""Pixels around a window that decide its features at t = 300 to a ten-thousandth."""

Solver = Callable[["NDArray[Any]"], "NDArray[Any]"]
"""A function from right-hand sides (node, column) to the solutions of a linear system."""


@dataclass(frozen=True)
class EdgeGraph:
    r"""Pixels with data as nodes; edges to the four neighbours, stronger between similar pixels.

    With guides f (a few features), the edge between neighbours i and j weighs

    .. math:: w_{ij} = \exp(-c \, d_{ij}^2 / \overline{d^2}) + 10^{-6},
              \quad d_{ij}^2 = \|f_i - f_j\|^2

    or, with several sets of guides, the mean over the sets; the Laplacian is L = D - W. The
    mean squared step is that of these guides, unless it is given: windows of one scene, and scenes
    that a model is carried to, share one. Nodes are numbered by nested dissection of the image: a
    factor of L in this order stays sparse.
    """

    pixels: NDArray[np.intp]  # (node,): positions in the flattened image
    laplacian: sparse.csr_array  # (node, node)

    @classmethod
    def of(
        cls, *guides: NDArray[Any], contrast: float, mean_steps: Sequence[float] | None = None
    ) -> EdgeGraph:
        """Return the graph of one or more sets of guides (band, y, x), in which NaN is no data."""
        valid = np.logical_and.reduce([np.isfinite(one).all(axis=0) for one in guides])
        pixels = data_pixels(valid)
        node = np.full(valid.size, -1)
        node[pixels] = np.arange(pixels.size)
        node = node.reshape(valid.shape)
        ends = []
        distances: list[list[NDArray[np.float64]]] = [[] for _ in guides]
        for first, second in (
            (np.s_[:, :-1], np.s_[:, 1:]),
            (np.s_[:-1, :], np.s_[1:, :]),
        ):
            joined = valid[first] & valid[second]
            ends.append((node[first][joined], node[second][joined]))
            for one, squared in zip(guides, distances, strict=True):
                step = one[:, *first][:, joined] - one[:, *second][:, joined]
                squared.append(np.einsum("ij,ij->j", step, step, dtype=np.float64))
        start, stop = (np.concatenate(side) for side in zip(*ends, strict=True))
        steps = [np.concatenate(squared) for squared in distances]
        if mean_steps is None:
            mean_steps = [float(squared.mean()) if squared.size else 0.0 for squared in steps]
        alike = [
            # a scene without any difference: all neighbours are alike
            np.exp(-contrast * squared / (mean if mean > 0 else 1.0))
            for squared, mean in zip(steps, mean_steps, strict=True)
        ]
        weight = np.mean(alike, axis=0) + _LEAST_WEIGHT
        return cls(pixels, _laplacian(start, stop, weight, pixels.size))


def squared_steps(guides: xr.DataArray) -> tuple[float, int]:
    """Return the sum of |f_i - f_j|^2 over four-neighbours of guides (band, y, x), and how many."""
    _, *moments = cube_moments(guides, (0, 1), (1, 0))
    # moments are of differences: squares about 0 are those about the mean, plus n mean^2
    total = sum(float(one.scatter.trace() + one.count * one.mean @ one.mean) for one in moments)
    return total, sum(one.count for one in moments)


def _laplacian(
    start: NDArray[np.intp], stop: NDArray[np.intp], weight: NDArray[np.float64], count: int
) -> sparse.csr_array:
    degree = np.bincount(start, weight, count) + np.bincount(stop, weight, count)
    nodes = np.arange(count)
    rows, columns = np.concatenate([start, stop, nodes]), np.concatenate([stop, start, nodes])
    values = np.concatenate([-weight, -weight, degree])
    return sparse.csr_array((values, (rows, columns)), shape=(count, count))


def data_pixels(valid: NDArray[np.bool_]) -> NDArray[np.intp]:
    """Return the pixels of a mask (y, x), flattened, in the order in which graphs number them."""
    order = dissection_order(*valid.shape)
    return order[valid.ravel()[order]]


def dissection_order(n_rows: int, n_columns: int) -> NDArray[np.intp]:
    """Return the pixels of an image, flattened, in the order of nested dissection (George 1973).

    A line across the middle splits a rectangle into two parts that do not touch. The parts come
    first, each dissected in the same way, and the line last: eliminating nodes in this order
    connects few of them.
    """
    positions = np.arange(n_rows * n_columns).reshape(n_rows, n_columns)
    parts: list[NDArray[np.intp]] = []
    waiting = [positions]  # taken from the end, so the order comes out reversed
    while waiting:
        part = waiting.pop()
        if part.size <= _LEAF:
            parts.append(part.ravel())
            continue
        tall = part if part.shape[0] >= part.shape[1] else part.T
        middle = len(tall) // 2
        parts.append(tall[middle])
        waiting += [tall[:middle], tall[middle + 1 :]]
    return np.concatenate(parts)[::-1]


def linear_solver(matrix: sparse.csr_array) -> Solver:
    """Return the solver of a system M x = b, M symmetric, positive definite, in dissection order.

    Solutions have the precision of M; in single precision its factor takes 0.7 to 0.9 kB per node.
    """
    # Nodes come in dissection order already, and a positive definite matrix needs no pivots: the
    # elimination is kept to that order, so that the factor fills up no more than planned.
    factor = splu(
        matrix.tocsc(),
        permc_spec="NATURAL",
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return lambda sides: factor.solve(sides.astype(matrix.dtype, order="F", copy=False))


def diffused(
    features: NDArray[Any], times: Sequence[float], *, mean_step: float
) -> list[NDArray[Any]]:
    """Return for each t the array (I + t L)^-1 X of features X (band, y, x).

    They are NaN where any feature is. The graph of all times is that of the first 10 features.
    """
    dtype = feature_dtype(features.dtype)
    valid = np.isfinite(features).all(axis=0)
    guides = np.where(valid, features[:N_GUIDES], np.nan).astype(dtype)
    graph = EdgeGraph.of(guides, contrast=_CONTRAST, mean_steps=[mean_step])
    samples = features.reshape(len(features), -1)[:, graph.pixels].T.astype(dtype)
    flowed = [np.full((len(features), valid.size), np.nan, dtype=dtype) for _ in times]
    with one_blas_thread():
        for place, t in zip(flowed, times, strict=True):
            if samples.size:
                place[:, graph.pixels] = diffuse(graph, samples, t).T
    return [place.reshape(features.shape) for place in flowed]


def diffuse(graph: EdgeGraph, features: NDArray[Any], t: float) -> NDArray[Any]:
    """Return (I + t L)^-1 X of features X (node, feature) on a graph."""
    if t == 0:
        return features
    system = sparse.csr_array(sparse.eye_array(graph.pixels.size) + t * graph.laplacian)
    return linear_solver(system.astype(features.dtype))(features)


class Diffuse(SceneTransformer):
    r"""Features smoothed within the regions of a scene, but not across their edges.

    Each feature X flows for a time t over the edge graph of the scene, in one implicit step:

    .. math:: F_t = (I + t L)^{-1} X, \quad L = D - W, \quad
              w_{ij} = \exp(-3 \, \|f_i - f_j\|^2 / \overline{d^2}) + 10^{-6}

    over pairs of four-neighbours i, j that both have data. f are the first 10 features and
    :math:`\overline{d^2}` is the mean of their squared distance over all edges. The sum over a
    region that is not connected to the rest stays the same; pixels without data are left out. Put
    it after components, such as ``features=[hr.MNF(30), hr.Diffuse(30)]``.

    The graph is made of the scene that is transformed; the mean squared distance is that of the
    scene it was fitted on. Scenes of more than half a million pixels are cut into windows that
    overlap by 32 pixels, far more than features flow at t = 300.

    Parameters
    ----------
    t : float, default 30.0
        How long features flow, 0 or larger: 0 changes nothing, 3 reaches the neighbours, 300
        whole fields.

    Attributes
    ----------
    mean_step_ : float
        The mean squared distance of neighbours.

    See Also
    --------
    hsreject.Smooth : blurs across edges, too.
    hsreject.RandomWalker : walks on the same graph.

    References
    ----------
    L. Grady, "Random walks for image segmentation", IEEE TPAMI 28(11), 2006, for the graph.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Diffuse
    >>> import xarray as xr
    >>> values = np.array([[[0.0, 1.0, 9.0, 8.0]]])
    >>> cube = xr.DataArray(values, dims=("band", "y", "x"))
    >>> Diffuse(30.0).fit_transform(cube).values.round(1)
    array([[[0.5, 0.5, 8.5, 8.5]]])
    """

    def __init__(self, t: float = 30.0) -> None:
        self.t = t

    def _learn_scene(self, cube: xr.DataArray) -> None:
        check_number("t", self.t, least=0)
        total, count = squared_steps(cube[:N_GUIDES])
        self.mean_step_ = total / max(count, 1)

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        def kernel(values: NDArray[Any]) -> NDArray[Any]:
            return diffused(values, [self.t], mean_step=self.mean_step_)[0]

        dtype = feature_dtype(cube.dtype)
        data = on_windows(cube, kernel, halo=HALO, n_outputs=len(cube), dtype=dtype)
        return on_the_grid_of(cube, data)
