"""The edge graph of a scene, the linear systems of its Laplacian, and features diffused on it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, cg, splu

from hsreject import schema
from hsreject.features.pixels import feature_dtype, on_the_grid_of
from hsreject.features.transformer import SceneTransformer
from hsreject.registry import check_count, check_number
from hsreject.threads import one_blas_thread

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

CONTRAST = 3.0
N_GUIDES = 10

_LEAST_WEIGHT = 1e-6  # across the sharpest edge: keeps every region of pixels connected
_LARGEST_FACTORISED = 4_000_000  # pixels: the factor of one graph takes about 4 GB
_LEAF = 24  # pixels of a rectangle that is not dissected any further
_RELATIVE_RESIDUAL = 1e-5  # of conjugate gradients: far below what a probability shows

Solver = Callable[["NDArray[Any]"], "NDArray[Any]"]
"""A function from right-hand sides (node, column) to the solutions of a linear system."""


@dataclass(frozen=True)
class EdgeGraph:
    r"""Pixels with data as nodes, joined to their four neighbours the more the more alike they are.

    With guides f (a few features), the edge between neighbours i and j weighs

    .. math:: w_{ij} = \exp(-c \, d_{ij}^2 / \overline{d^2}) + 10^{-6},
              \quad d_{ij}^2 = \|f_i - f_j\|^2

    or, with several sets of guides, the mean of what each says; the Laplacian is L = D - W. Nodes
    are numbered by nested dissection of the image: a factor of L in this order stays sparse.
    """

    pixels: NDArray[np.intp]  # (node,): positions in the flattened image
    laplacian: sparse.csr_array  # (node, node)

    @classmethod
    def of(cls, *guides: NDArray[Any], contrast: float) -> EdgeGraph:
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
        alike = [_likeness(np.concatenate(squared), contrast) for squared in distances]
        weight = np.mean(alike, axis=0) + _LEAST_WEIGHT
        return cls(pixels, _laplacian(start, stop, weight, pixels.size))


def _likeness(squared: NDArray[np.float64], contrast: float) -> NDArray[np.float64]:
    mean = squared.mean() if squared.size else 0.0
    likeness: NDArray[np.float64] = np.exp(-contrast * squared / (mean if mean > 0 else 1.0))
    return likeness


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

    A line across the middle parts a rectangle into two that do not touch. They come first, each
    dissected likewise, and the line last: eliminating nodes in this order joins few of them.
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

    Solutions have the precision of M. Up to four million nodes M is factorised, in single precision
    in 0.7 to 0.9 kB per node; beyond, conjugate gradients with an algebraic multigrid
    preconditioner solve one column after the other. They need a third of the memory but, edges
    being sharp, a hundred iterations: a million nodes take 4 s per column, and 0.06 s by a factor.
    """
    if matrix.shape[0] <= _LARGEST_FACTORISED:
        factor = splu(
            matrix.tocsc(),
            permc_spec="NATURAL",
            diag_pivot_thresh=0.0,
            options={"SymmetricMode": True},
        )
        return lambda sides: factor.solve(sides.astype(matrix.dtype, order="F", copy=False))
    return _multigrid(matrix)


def _multigrid(matrix: sparse.csr_array) -> Solver:
    import pyamg  # noqa: PLC0415  # slow to import, rarely used

    double = sparse.csr_matrix(matrix, dtype=np.float64)
    hierarchy = pyamg.smoothed_aggregation_solver(
        double,
        strength=("symmetric", {"theta": 0.08}),  # aggregates that stay within sharp edges
        max_coarse=500,
        coarse_solver="splu",
    )
    preconditioner: LinearOperator = hierarchy.aspreconditioner(cycle="V")

    def solve(sides: NDArray[Any]) -> NDArray[Any]:
        columns = [
            cg(double, side, rtol=_RELATIVE_RESIDUAL, maxiter=200, M=preconditioner)[0]
            for side in sides.T.astype(np.float64)
        ]
        return np.stack(columns, axis=1, dtype=matrix.dtype)

    return solve


def diffuse(graph: EdgeGraph, features: NDArray[Any], t: float) -> NDArray[Any]:
    """Return (I + t L)^-1 X of features X (node, feature) on a graph."""
    if t == 0:
        return features
    system = sparse.csr_array(sparse.eye_array(graph.pixels.size) + t * graph.laplacian)
    return linear_solver(system.astype(features.dtype))(features)


class Diffuse(SceneTransformer):
    r"""Features smoothed along the scene, but not across its edges.

    Each feature X flows for a time t over the edge graph of the scene, in one implicit step:

    .. math:: F_t = (I + t L)^{-1} X, \quad L = D - W, \quad
              w_{ij} = \exp(-c \, \|f_i - f_j\|^2 / \overline{d^2}) + 10^{-6}

    over pairs of four-neighbours i, j that both have data. f are the first `n_guides` features and
    :math:`\overline{d^2}` is the mean of their squared distance over all edges, so that c has no
    unit. Sums over a region that nothing joins to the rest are kept; pixels without data take part
    in nothing. Put it after components, such as ``features=[hr.MNF(30), hr.Diffuse(30)]``.

    The graph is made of the scene that is transformed, and all of it is needed at once. Up to
    four million pixels the system is factorised; beyond, conjugate gradients with a multigrid
    preconditioner solve it.

    Parameters
    ----------
    t : float, default 30.0
        How long features flow, 0 or larger: 0 changes nothing, 3 reaches the neighbours, 300
        whole fields.
    contrast : float, default 3.0
        c, 0 or larger: how much an edge of average height holds back; 0 ignores edges.
    n_guides : int, default 10
        How many features, from the first on, say where the edges are.

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
    >>> Diffuse(30.0, contrast=9.0).fit_transform(cube).values.round(1)
    array([[[0.5, 0.5, 8.5, 8.5]]])
    """

    def __init__(
        self, t: float = 30.0, *, contrast: float = CONTRAST, n_guides: int = N_GUIDES
    ) -> None:
        self.t = t
        self.contrast = contrast
        self.n_guides = n_guides

    def _learn_scene(self, cube: xr.DataArray) -> None:
        check_number("t", self.t, least=0)
        check_number("contrast", self.contrast, least=0)
        check_count("n_guides", self.n_guides, least=1)

    def _transform_scene(self, cube: xr.DataArray) -> xr.DataArray:
        dtype = feature_dtype(cube.dtype)
        kernel = partial(
            _diffuse_block, t=self.t, contrast=self.contrast, n_guides=self.n_guides, dtype=dtype
        )
        data: Any = cube.data
        if cube.chunks is None:
            diffused = kernel(data)
        else:
            diffused = data.rechunk(-1).map_blocks(
                kernel, dtype=dtype, meta=np.empty((0, 0, 0), dtype=dtype)
            )
        coords = {str(name): c for name, c in cube.coords.items() if schema.BAND in c.dims}
        return on_the_grid_of(cube, diffused, dim=schema.BAND, coords=coords)


def _diffuse_block(
    values: NDArray[Any], *, t: float, contrast: float, n_guides: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    valid = np.isfinite(values).all(axis=0)
    guides = np.where(valid, values[:n_guides], np.nan).astype(dtype)
    graph = EdgeGraph.of(guides, contrast=contrast)
    diffused = np.full((len(values), valid.size), np.nan, dtype=dtype)
    if graph.pixels.size:
        features = values.reshape(len(values), -1)[:, graph.pixels].T.astype(dtype)
        with one_blas_thread():
            diffused[:, graph.pixels] = diffuse(graph, features, t).T
    return diffused.reshape(values.shape)
