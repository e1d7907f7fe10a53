"""The edge graph of a scene, the linear systems of its Laplacian, and features diffused on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.features.elimination import solve_on_image
from hsreject.features.front_kernels import ImageSystem
from hsreject.features.pixels import cube_moments, feature_dtype, on_the_grid_of
from hsreject.features.transformer import SceneTransformer
from hsreject.features.windows import on_windows
from hsreject.registry import check_number

if TYPE_CHECKING:
    import xarray as xr
    from numpy.typing import NDArray

_CONTRAST = 3.0
N_GUIDES = 10

_LEAST_WEIGHT = 1e-6  # across the sharpest edge: keeps every region of pixels connected

HALO = 32
"""Pixels around a window that decide its features at t = 300 to a ten-thousandth."""


@dataclass(frozen=True, eq=False)
class EdgeGraph:
    r"""Pixels with data as nodes; edges to the four neighbours, stronger between similar pixels.

    With guides f (a few features), the edge between neighbours i and j weighs

    .. math:: w_{ij} = \exp(-c \, d_{ij}^2 / \overline{d^2}) + 10^{-6},
              \quad d_{ij}^2 = \|f_i - f_j\|^2

    or, with several sets of guides, the mean over the sets; the Laplacian is L = D - W. The
    mean squared step is that of these guides, unless it is given: windows of one scene, and scenes
    that a model is carried to, share one.
    """

    valid: NDArray[np.bool_]  # (y, x): pixels with data
    across: NDArray[np.float64]  # (y, x - 1): weights of edges to the right, 0 where there is none
    down: NDArray[np.float64]  # (y - 1, x)

    @classmethod
    def of(
        cls, *guides: NDArray[Any], contrast: float, mean_steps: Sequence[float] | None = None
    ) -> EdgeGraph:
        """Return the graph of one or more sets of guides (band, y, x), in which NaN is no data."""
        valid = np.logical_and.reduce([np.isfinite(one).all(axis=0) for one in guides])
        joined = [valid[:, :-1] & valid[:, 1:], valid[:-1] & valid[1:]]
        steps = [(_squares(one, axis=1), _squares(one, axis=0)) for one in guides]
        if mean_steps is None:
            mean_steps = [_mean(pair, joined) for pair in steps]
        weights = []
        for axis, edges in enumerate(joined):
            alike = [
                # a scene without any difference: all neighbours are alike
                np.exp(-contrast * pair[axis] / (mean if mean > 0 else 1.0))
                for pair, mean in zip(steps, mean_steps, strict=True)
            ]
            weights.append(np.where(edges, np.mean(alike, axis=0) + _LEAST_WEIGHT, 0.0))
        return cls(valid, *weights)

    def solve(
        self,
        sides: NDArray[Any],
        *,
        identity: float = 1.0,
        scale: float = 1.0,
        free: NDArray[np.bool_] | None = None,
    ) -> NDArray[Any]:
        """Return (a I + b L)^-1 of sides (side, y, x) on the pixels with data, 0 elsewhere.

        With `free` (y, x), only on these pixels: all others are fixed at 0. a is `identity`, b is
        `scale`; solutions have the precision of the sides.
        """
        degree = np.zeros(self.valid.shape)
        degree[:, :-1] += self.across
        degree[:, 1:] += self.across
        degree[:-1] += self.down
        degree[1:] += self.down
        system = ImageSystem(identity + scale * degree, -scale * self.across, -scale * self.down)
        return solve_on_image(system, self.valid if free is None else free, sides)


def squared_steps(guides: xr.DataArray) -> tuple[float, int]:
    """Return the sum of |f_i - f_j|^2 over four-neighbours of guides (band, y, x), and how many."""
    _, *moments = cube_moments(guides, (0, 1), (1, 0))
    # moments are of differences: squares about 0 are those about the mean, plus n mean^2
    total = sum(float(one.scatter.trace() + one.count * one.mean @ one.mean) for one in moments)
    return total, sum(one.count for one in moments)


def _squares(guides: NDArray[Any], *, axis: int) -> NDArray[np.float64]:
    """Return the squared distances of neighbours along rows (axis 1) or columns (axis 0)."""
    squares = (np.diff(band, axis=axis).astype(np.float64) ** 2 for band in guides)
    return np.asarray(sum(squares))


def _mean(squares: Sequence[NDArray[np.float64]], joined: Sequence[NDArray[np.bool_]]) -> float:
    values = np.concatenate([one[edges] for one, edges in zip(squares, joined, strict=True)])
    return float(values.mean()) if values.size else 0.0


def diffused(
    features: NDArray[Any], times: Sequence[float], *, mean_step: float
) -> list[NDArray[Any]]:
    """Return for each t the array (I + t L)^-1 X of features X (band, y, x).

    They are NaN where any feature is. The graph of all times is that of the first 10 features.
    """
    dtype = feature_dtype(features.dtype)
    valid = np.isfinite(features).all(axis=0)
    known = np.where(valid, features, np.nan).astype(dtype)
    if not valid.any():
        return [known for _ in times]
    graph = EdgeGraph.of(known[:N_GUIDES], contrast=_CONTRAST, mean_steps=[mean_step])
    return [
        known if t == 0 else np.where(valid, graph.solve(known, scale=t), dtype.type(np.nan))
        for t in times
    ]


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
