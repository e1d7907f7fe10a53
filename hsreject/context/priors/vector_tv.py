"""Vector total variation: neighboring pixels share their hidden field, except at sharp borders."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cached_property, partial
from threading import get_ident
from typing import Any

import numpy as np
import xarray as xr
from numpy.typing import NDArray

from hsreject.context.preconditioned_admm import Iteration
from hsreject.context.prior import LAYER, Grid, Prior, Term
from hsreject.context.problem import Array
from hsreject.context.site_kernels import Steps, new_multipliers
from hsreject.context.solver import cached_rows, data_and_bound
from hsreject.context.sweep_kernels import (
    JOINING,
    SWEEPING,
    Sweep,
    SweepScratch,
    add_pull_rows,
    new_sweep_scratch,
    sweep_bands,
    update_dual_rows,
)
from hsreject.errors import InputError
from hsreject.registry import check_number
from hsreject.schema import BAND, X, Y, good_bands, real_array
from hsreject.threads import Threads

Edges = str | NDArray[np.floating[Any]] | None

ROWS_OF_A_BAND = 8  # at least
MOST_BANDS = 16  # whatever the number of threads, on which the result must not depend


class VectorTV(Prior):
    r"""Isotropic vector total variation, with Neumann borders and optional edge weights.

    .. math:: weight \sum_i \sqrt{ \sum_k (d_{ki\to}^2 + d_{ki\downarrow}^2) }

    .. math:: d_{ki\to} = w_{i\to} (z_{k,right(i)} - z_{ki})

    .. math:: d_{ki\downarrow} = w_{i\downarrow} (z_{k,below(i)} - z_{ki})

    The square root is over all classes and both directions, so that all classes share their
    borders, which have no preferred direction. Edge weights multiply the differences, inside the
    root: an edge of weight 0 is not there, whichever way it runs.

    Parameters
    ----------
    weight : float, at least 0
        How strongly neighbors are tied. On Indian Pines 1 to 4.
    edges : None, "image", or array (y, 2, x), optional
        Edge weights. None: all 1. "image": from the first principal component of the image,
        :math:`w = \exp(-d^2 / (2\,\overline{d^2}))` with d the difference across the edge, so that
        borders fall where the image changes. An array: the weights, ``[:, 0]`` to the right
        neighbor and ``[:, 1]`` to the lower one.

    See Also
    --------
    hsreject.StructureTensor : looks at patches.
    hsreject.GraphTV : ties the pixels of segments.
    hsreject.SegSALSA : solves with it.

    References
    ----------
    J. Bioucas-Dias, F. Condessa, J. Kovacevic, "Alternating direction optimization for image
    segmentation using hidden Markov measure field models", Proc. SPIE 9019, 2014.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Grid, VectorTV
    >>> grid = Grid(np.ones((1, 3), bool), n_classes=2, dtype=np.dtype(float))
    >>> term = VectorTV(weight=2.0).bind(grid)
    >>> field = np.array([[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    >>> round(term.value(term.forward(field)), 6)
    2.828427
    """

    def __init__(self, weight: float = 1.0, *, edges: Edges = None) -> None:
        self.weight = check_number("weight", weight, least=0)
        is_array = isinstance(edges, np.ndarray) and edges.ndim == 3
        if not (edges is None or is_array or (isinstance(edges, str) and edges == "image")):
            raise InputError(
                f"edges must be None, 'image' or weights (y, 2, x) (got {edges!r:.60})."
            )
        self.edges = real_array(edges, name="edges", fill="0") if is_array else edges

    def bind(self, grid: Grid) -> VectorTVTerm:
        """Return the term of this prior on `grid`."""
        return VectorTVTerm(grid, self.weight, edge_weights(self.edges, grid))

    @property
    def halo(self) -> int:
        """8 pixels per unit of weight, and at least 16: see `weight_halo` for what that gives."""
        return weight_halo(self.weight)

    @property
    def working_size(self) -> int:
        """Two for the dual, and as many for temporaries."""
        return 4

    @property
    def n_guide_layers(self) -> int:
        """Edge weights to the right and down, if there are any."""
        return 0 if self.edges is None else 2

    def guide(self, image: xr.DataArray) -> xr.DataArray:
        """Return the edge weights of a whole scene: to the right, down."""
        return scene_edge_weights(self.edges, image)

    def in_block(self, layers: NDArray[np.floating[Any]]) -> VectorTV:
        """Return this prior with the edge weights of a block, if it has any."""
        return self if self.edges is None else VectorTV(self.weight, edges=layers.swapaxes(0, 1))


# Edge weights: how strongly a pixel is tied to its right and its lower neighbor.


def weight_halo(weight: float) -> int:
    """Return the halo of a total variation: 8 pixels per unit of weight, and at least 16.

    Measured on noisy synthetic scenes (`python -m benchmarks.halo`): where fields are at least 8
    pixels wide per unit of weight, blocks with such halos have 99.98 % of the labels of the whole
    scene and more (weights 0.5 to 16). Where they are 3 to 4 wide, an undecided field may fall
    either way: 99.7 % and more on average up to weight 8, in the worst scene 98.6; of the few
    scenes of weights 16 and 32 one had 93.6, the others 99.6 and more. Narrower fields are lost to
    such a weight, and no halo saves them.
    """
    return max(math.ceil(8 * weight), 16)


def falling_weights(squared: Any, mean: float) -> Any:
    r"""Return :math:`\exp(-d^2 / (2\,\overline{d^2}))` of squared differences and their mean.

    They are an array or a DataArray; an image without any difference has weights of 1.
    """
    return np.exp(-squared / (2 * mean)) if mean > 0 else squared + 1.0


def edge_weights(edges: Edges, grid: Grid) -> NDArray[np.float64]:
    """Return the edge weights, (y, direction, x), that the option `edges` of a prior asks for."""
    valid = grid.valid
    exists = np.zeros((valid.shape[0], 2, valid.shape[1]), dtype=bool)
    exists[:, 0, :-1] = valid[:, :-1] & valid[:, 1:]
    exists[:-1, 1] = valid[:-1] & valid[1:]
    if edges is None:
        return exists.astype(np.float64)
    if isinstance(edges, np.ndarray):
        if edges.shape != exists.shape:
            raise InputError(
                f"Edge weights must have the shape (y, 2, x) = {exists.shape} (got {edges.shape}): "
                "[:, 0] to the right neighbor, [:, 1] to the lower one."
            )
        if not (np.isfinite(edges[exists]).all() and (edges[exists] >= 0).all()):
            raise InputError("Edge weights must be finite and at least 0 between pixels with data.")
        return np.where(exists, edges.astype(np.float64), 0.0)
    (layer,) = grid.components(1, wanted_by="A prior with edges from the image")
    squared = np.zeros(exists.shape)
    squared[:, 0, :-1] = np.diff(layer, axis=1) ** 2
    squared[:-1, 1] = np.diff(layer, axis=0) ** 2
    mean = squared[exists].mean() if exists.any() else 0.0
    return np.where(exists, falling_weights(squared, mean), 0.0)


def scene_edge_weights(edges: Edges, image: xr.DataArray) -> xr.DataArray:
    """Return the edge weights of a whole scene, (layer, y, x): to the right, down.

    They are lazy if the image is. The principal component and the mean of the squared differences
    are gathered now, chunk by chunk, in two passes over the image.
    """
    from hsreject.features.components import principal_axes  # noqa: PLC0415 (see Grid.components)
    from hsreject.features.pixels import cube_moments, map_pixels, on_the_grid_of  # noqa: PLC0415

    if not isinstance(edges, str):
        raise InputError(
            "A prior whose edge weights are an array belongs to one scene and cannot be used on "
            "another, or in blocks. Take edges='image'."
        )
    good = image.isel({BAND: np.flatnonzero(good_bands(image))})
    (moments,) = cube_moments(good, needed_by="A prior with edges from the image")
    axis = principal_axes(moments)[1][:1]
    layers = map_pixels(good, lambda spectra: spectra @ axis.T, n_outputs=1, dtype=np.float64)
    layer = on_the_grid_of(image, layers, dim=LAYER, coords={}).isel({LAYER: 0})
    squared = xr.concat([(layer.shift({dim: -1}) - layer) ** 2 for dim in (X, Y)], dim=LAYER)
    weights: xr.DataArray = falling_weights(squared, float(squared.mean()))
    return weights.fillna(0.0).astype(np.float32)  # NaN: an edge that does not exist


class VectorTVTerm(Term):
    """Vector TV on a grid. Coefficients are (y, direction, category, x): to the right, down.

    `edge_weight` (y, direction, x) is 0 where there is no edge: at the lower and right border and
    at pixels without data.
    """

    def __init__(self, grid: Grid, weight: float, edge_weight: NDArray[np.float64]) -> None:
        super().__init__(grid)
        self.weight = weight
        self.edge_weight = edge_weight.astype(grid.dtype)

    @cached_property
    def squared_norm(self) -> float:
        """The largest sum, over the two ends of an edge, of the squared weights that meet there.

        H'H is the Laplacian of the grid with weights w^2, and this is the bound of Anderson and
        Morley (1985): 8 on a grid, 4 on a line.
        """
        squared = np.square(self.edge_weight)
        degree = squared[:, 0] + squared[:, 1]
        degree[:, 1:] += squared[:, 0, :-1]
        degree[1:] += squared[:-1, 1]
        across = (degree[:, :-1] + degree[:, 1:]) * (squared[:, 0, :-1] > 0)
        down = (degree[:-1] + degree[1:]) * (squared[:-1, 1] > 0)
        rounding = 1 + 8 * float(np.finfo(squared.dtype).eps)
        return rounding * float(max(across.max(initial=0.0), down.max(initial=0.0)))

    @cached_property
    def strength(self) -> float:
        """The weight times the mean edge weight."""
        n_edges = np.count_nonzero(self.edge_weight)
        total = float(self.edge_weight.sum(dtype=np.float64))
        return self.weight * total / n_edges if n_edges else 0.0

    def new_dual(self) -> Array:
        """Return zeros of the shape of H Z."""
        n_rows, n_classes, n_columns = self.grid.shape
        return np.zeros((n_rows, 2, n_classes, n_columns), self.grid.dtype)

    def forward(self, field: Array) -> Array:
        """Return the weighted differences, (y, direction, category, x)."""
        n_rows, n_classes, n_columns = field.shape
        difference = np.zeros((n_rows, 2, n_classes, n_columns), field.dtype)
        np.subtract(field[..., 1:], field[..., :-1], out=difference[:, 0, :, :-1])
        np.subtract(field[1:], field[:-1], out=difference[:-1, 1])
        difference *= self.edge_weight[:, :, np.newaxis]
        return difference

    def adjoint(self, coefficients: Array) -> Array:
        """Return minus the weighted divergence."""
        return adjoint_rows(coefficients, self.edge_weight)

    def value(self, coefficients: Array) -> float:
        """Return weight times the sum of the pixels' norms."""
        return self.weight * float(_pixel_norms(coefficients).sum(dtype=np.float64))

    def prox(self, coefficients: Array, step: float) -> Array:
        """Shrink the norm of each pixel by step times weight."""
        shrunk: Array = coefficients * (1 - _limit(coefficients, step * self.weight))
        return shrunk

    def conjugate(self, dual: Array) -> float:
        """Return 0 if no pixel's norm exceeds the weight (up to rounding), else infinity."""
        rounding = 16 * np.finfo(dual.dtype).eps
        largest = float(_pixel_norms(dual).max(initial=0.0))
        return 0.0 if largest <= self.weight * (1 + rounding) else np.inf

    def prox_conjugate(self, dual: Array, step: float) -> Array:  # a projection, whatever the step
        """Project each pixel onto the ball of radius weight."""
        projected: Array = dual * _limit(dual, self.weight)
        return projected

    def gram_spectrum(self) -> Array | None:
        """Return 4 - 2 cos(pi j / n_rows) - 2 cos(pi k / n_columns) if every edge has weight 1."""
        plain = edge_weights(None, self.grid)
        if not (self.grid.valid.all() and np.array_equal(self.edge_weight, plain)):
            return None
        row, column = (2 - 2 * np.cos(np.pi * np.arange(n) / n) for n in self.grid.valid.shape)
        spectrum: Array = row[:, np.newaxis] + column
        return spectrum

    def add_adjoint(self, dual: Array, field: Array, threads: Threads) -> None:
        """Add H'Y to `field` in place."""
        add = partial(add_pull_rows, dual, self.edge_weight, field)
        threads.share(len(field), add)

    def update_dual(
        self, dual: Array, field: Array, *, step: float, relaxation: float, threads: Threads
    ) -> None:
        """Move Y in place towards the projection of Y + step H Z."""
        steps = Steps(primal=0.0, dual=step, relaxation=relaxation, site_tolerance=0.0)

        def update(first: int, last: int) -> None:
            room = np.empty((3, field.shape[2]), field.dtype)
            update_dual_rows(dual, field, self.edge_weight, self.weight, steps, room, first, last)

        threads.share(len(field), update)

    def value_of_field(self, field: Array, threads: Threads) -> float:
        """Return g(H Z) in double precision, summed per row: the same for any threads."""
        return self.value_of_rows(lambda a, b: field[a:b].astype(np.float64), threads)

    def value_of_rows(self, rows: Callable[[int, int], Array], threads: Threads) -> float:
        """Return g(H Z) of a field that is made some rows at a time, in double precision."""
        n_rows = len(self.edge_weight)
        sums = np.empty(n_rows)

        def write(first: int, last: int) -> None:
            here = rows(first, min(last + 1, n_rows))  # and the row below
            right, down = self.edge_weight[first:last].astype(np.float64).swapaxes(0, 1)
            across = np.diff(here[: last - first], axis=-1)
            below = np.diff(here, axis=0)  # a row less at the lower border
            squared = np.zeros_like(right)
            squared[:, :-1] = np.einsum("ykx,ykx->yx", across, across) * right[:, :-1] ** 2
            squared[: len(below)] += (
                np.einsum("ykx,ykx->yx", below, below) * down[: len(below)] ** 2
            )
            sums[first:last] = np.sqrt(squared).sum(axis=-1)

        threads.share(n_rows, write, most=cached_rows(self.grid.shape))
        return self.weight * float(sums.sum())

    def fuse(self, probability: Array, field: Array, dual: Array) -> Iteration:
        """Return the iteration that passes over the memory once."""
        return VectorTVIteration(self, probability, field, dual)


def adjoint_rows(dual: Array, edge_weight: Array) -> Array:
    """Return rows of H'Y, but for the pull of a row above the first on that."""
    weighted = dual * edge_weight[:, :, np.newaxis]
    right, down = weighted[:, 0], weighted[:, 1]
    field: Array = np.negative(right)
    field -= down
    field[..., 1:] += right[..., :-1]
    field[1:] += down[:-1]
    return field


def _pixel_norms(coefficients: Array) -> Array:
    """Return the norm over directions and classes, (y, 1, 1, x)."""
    squared: Array = np.einsum("ydkx,ydkx->yx", coefficients, coefficients)
    return np.sqrt(squared)[:, np.newaxis, np.newaxis]


def _limit(coefficients: Array, radius: float) -> Array:
    """Return the factor of each pixel, at most 1, that brings its norm down to `radius`."""
    norm = _pixel_norms(coefficients)
    tiny = float(np.finfo(norm.dtype).tiny)  # a radius of 0 must not divide by 0
    limit: Array = radius / np.maximum(norm, max(radius, tiny))
    return limit


class VectorTVIteration(Iteration):
    """Z and Y of a problem whose only prior is vector TV; see the kernels for the order of work."""

    kernel = sweep_bands

    def __init__(self, term: VectorTVTerm, probability: Array, field: Array, dual: Array) -> None:
        n_rows, n_classes, n_columns = field.shape
        self.term = term
        self.n_bands = min(max(n_rows // ROWS_OF_A_BAND, 1), MOST_BANDS)
        self.scratches: dict[int, SweepScratch] = {}
        self.arrays = Sweep(
            field=field,
            dual=dual,
            probability=probability,
            edge_weight=term.edge_weight,
            multipliers=new_multipliers(field.shape, field.dtype),
            borders=np.zeros((self.n_bands, 2, n_classes, n_columns), field.dtype),
            bands=np.arange(self.n_bands + 1) * n_rows // self.n_bands,
        )
        self.other_multipliers = new_multipliers(field.shape, field.dtype)

    def step(self, steps: Steps, threads: Threads) -> None:
        """Update Z and Y in place."""
        # two sets in turn: the guess of a pixel is from the iteration before last (see step_chunk)
        before_last, self.other_multipliers = self.other_multipliers, self.arrays.multipliers
        self.arrays = self.arrays._replace(multipliers=before_last)
        threads.share(self.n_bands, partial(self._sweep, steps, SWEEPING))
        self._sweep(steps, JOINING, 0, self.n_bands)  # few rows: not worth the threads

    def objective_and_bound(self, threads: Threads) -> tuple[float, float]:
        """Return F(Z) and the lower bound of min F by Y, some rows at a time."""
        field, dual, term = self.arrays.field, self.arrays.dual, self.term

        def pull(first: int, last: int) -> Array:
            above = max(first - 1, 0)
            rows = dual[above:last].astype(np.float64)
            inside = _limit(rows, term.weight)[:, 0]  # so that g* is 0
            return adjoint_rows(rows, term.edge_weight[above:last] * inside)[first - above :]

        def on_simplex(first: int, last: int) -> Array:
            rows = field[first:last].astype(np.float64)
            rows /= rows.sum(axis=1, keepdims=True)
            return rows

        data, bound = data_and_bound(self.arrays.probability, field, pull, threads)
        return data + term.value_of_rows(on_simplex, threads), bound

    def _sweep(self, steps: Steps, phase: int, first: int, last: int) -> None:
        thread = get_ident()
        if thread not in self.scratches:
            self.scratches[thread] = new_sweep_scratch(self.arrays.field)
        scratch = self.scratches[thread]
        sweep_bands(self.arrays, self.term.weight, steps, scratch, first, last, phase)
