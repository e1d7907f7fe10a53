"""Structure tensor: borders run straight, and fall together for all classes, over whole patches."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from hsreject.context.kernels.site_row import Steps
from hsreject.context.kernels.structure_tensor import (
    Ball,
    Patches,
    add_pull_rows,
    new_patch_scratch,
    update_dual_rows,
)
from hsreject.context.kernels.tensor_norms import norm_rows, tighten_rows
from hsreject.context.priors.base import Prior, Term, check_weight
from hsreject.context.priors.edges import existing_edges, weight_reach
from hsreject.context.priors.patches import (
    gaussian_window,
    padded,
    patch_coupling,
    views,
    without_margin,
)
from hsreject.context.priors.tensors import (
    principal_angle,
    rotate_columns,
    singular_values,
    structure_tensor,
)
from hsreject.context.priors.vector_tv import VectorTVTerm
from hsreject.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from hsreject.context.grid import Grid
    from hsreject.context.workers import Workers

    Array = NDArray[np.floating[Any]]


class StructureTensor(Prior):
    r"""Structure tensor total variation: a Schatten norm of each pixel's patch-based Jacobian.

    .. math:: weight \sum_i \| J_i \|_{S_p}, \qquad
              J_i = \bigl( \omega_s (z_{k,right(i+s)} - z_{k,i+s}),\
                           \omega_s (z_{k,below(i+s)} - z_{k,i+s}) \bigr)_{s,k}

    The Jacobian has a row for each class k and each pixel i + s of the patch around pixel i, and
    two columns. :math:`\omega` is a window whose squares are a Gaussian with sum 1, so that
    :math:`J_i'J_i` is the smoothed structure tensor and its eigenvalues are the squared singular
    values: how much the field changes across and along the border in this patch. Their Schatten-1
    (nuclear) norm makes the smaller one 0: borders of one direction a patch. With Schatten-2, the
    Frobenius norm, and a patch of one pixel this is vector TV.

    Differences that would cross the border of the scene or a pixel without data are 0, and a
    patch sees nothing beyond a gap in the data. Duals take patch**2 times the memory of those of
    vector TV: 72 bytes per pixel and class in single precision for a patch of 3.

    Parameters
    ----------
    weight : float, at least 0
        How strongly changes of the field are punished. On Indian Pines 1 to 4.
    patch : int, odd
        Height and width of the patch in pixels.
    width : float, above 0
        Standard deviation of the Gaussian, in pixels.
    schatten : {1, 2}
        The norm: 1 is nuclear, 2 is Frobenius.

    References
    ----------
    S. Lefkimmiatis, A. Roussos, P. Maragos, M. Unser, "Structure tensor total variation", SIAM J.
    Imaging Sci. 8, 2015; F. Condessa, J. Bioucas-Dias, J. Kovacevic, "SegSALSA-STR: a convex
    formulation to supervised hyperspectral image segmentation using hidden fields and structure
    tensor regularization", Proc. WHISPERS, 2015.

    Examples
    --------
    >>> from hsreject.context.grid import Grid
    >>> grid = Grid(np.ones((1, 3), bool), n_classes=2, dtype=np.dtype(float))
    >>> term = StructureTensor(weight=2.0, patch=1).bind(grid)
    >>> field = np.array([[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    >>> round(term.value(term.forward(field)), 6)
    2.828427
    """

    def __init__(
        self,
        weight: float = 1.0,
        *,
        patch: int = 3,
        width: float = 1.0,
        schatten: Literal[1, 2] = 1,
    ) -> None:
        self.weight = check_weight(weight)
        if isinstance(patch, bool) or not isinstance(patch, int) or patch < 1 or patch % 2 == 0:
            raise InputError(f"patch must be an odd whole number, 1 or 3 say (got {patch!r}).")
        if not 0 < width < np.inf:
            raise InputError(f"width must be above 0 (got {width}).")
        if schatten not in {1, 2}:
            raise InputError(
                f"schatten must be 1 (nuclear norm) or 2 (Frobenius norm) (got {schatten!r})."
            )
        self.patch = patch
        self.width = width
        self.schatten = schatten

    def bind(self, grid: Grid) -> StructureTensorTerm:
        """Return the term of this prior on `grid`."""
        coupling = patch_coupling(grid.valid, gaussian_window(self.patch, self.width))
        return StructureTensorTerm(grid, self.weight, coupling, nuclear=self.schatten == 1)

    @property
    def reach(self) -> int:
        """That of vector TV, and half a patch, which is enough on Indian Pines."""
        return weight_reach(self.weight) + self.patch // 2

    @property
    def working_size(self) -> int:
        """Five times the dual, which has two numbers for each pixel of the patch."""
        return 5 * 2 * self.patch**2


class StructureTensorTerm(Term):
    """The structure tensor on a grid; coefficients are (y, patch, direction, category, x).

    Parameters
    ----------
    grid : Grid
    weight : float
    coupling : array, (y, patch, x)
        How much of the differences at each pixel of its patch a pixel sees.
    nuclear : bool
        The nuclear norm, else the Frobenius norm.
    """

    def __init__(
        self, grid: Grid, weight: float, coupling: NDArray[np.float64], *, nuclear: bool
    ) -> None:
        super().__init__(grid)
        self.weight = weight
        self.nuclear = nuclear
        self.side = round(coupling.shape[1] ** 0.5)
        exists = existing_edges(grid.valid).astype(np.float64)
        self.differences = VectorTVTerm(grid, 1.0, exists)
        self.coupling = coupling.astype(grid.dtype)

    @cached_property
    def squared_norm(self) -> float:
        """The bound of vector TV whose squared edge weights are what all patches see of an edge."""
        seen = padded(np.zeros((self.coupling.shape[0], 1, self.coupling.shape[2])), self.side)
        for s, view in views(seen, self.side):
            np.add(view, np.square(self.coupling[:, s, np.newaxis], dtype=np.float64), out=view)
        edge_weight = np.sqrt(without_margin(seen, self.side)) * self.differences.edge_weight
        return VectorTVTerm(self.grid, 1.0, edge_weight).squared_norm

    def forward(self, field: Array) -> Array:
        """Return the differences that each pixel sees in its patch."""
        difference = self.differences.forward(field)
        coupling = self.coupling[:, :, np.newaxis, np.newaxis]
        seen = [view for _, view in views(padded(difference, self.side), self.side)]
        coefficients: Array = np.stack(seen, axis=1) * coupling
        return coefficients

    def adjoint(self, coefficients: Array) -> Array:
        """Return the adjoint of the differences, applied to what all patches say of each."""
        gathered = padded(np.zeros_like(coefficients[:, 0]), self.side)
        for s, view in views(gathered, self.side):
            weighted = self.coupling[:, s, np.newaxis, np.newaxis] * coefficients[:, s]
            np.add(view, weighted, out=view)
        return self.differences.adjoint(without_margin(gathered, self.side))

    def value(self, coefficients: Array) -> float:
        """Return weight times the sum of the pixels' norms."""
        if self.nuclear:
            angle = principal_angle(structure_tensor(coefficients))
            coefficients = rotate_columns(coefficients, angle)
        return self.weight * float(self._norms(coefficients).sum())

    def prox(self, coefficients: Array, step: float) -> Array:
        """Shrink the singular values, or the Frobenius norm, by step times weight."""
        return self._scaled(coefficients, lambda norm: np.maximum(1 - step * self.weight / norm, 0))

    def conjugate(self, dual: Array) -> float:
        """Return 0 if no dual norm exceeds the weight (but for rounding), else infinity."""
        rounding = 256 * np.finfo(dual.dtype).eps  # some of that of the two columns' large sums
        rows = np.empty(len(dual))
        norm_rows(dual, self._ball, np.empty((3, dual.shape[-1])), rows, 0, len(dual))
        return 0.0 if rows.max(initial=0.0) <= self.weight * (1 + rounding) else np.inf

    def prox_conjugate(self, dual: Array, step: float) -> Array:  # a projection, whatever the step
        """Cut the singular values, or the Frobenius norm, at the weight."""
        return self._scaled(dual, lambda norm: np.minimum(self.weight / norm, 1))

    @property
    def kernels(self) -> tuple[Callable[..., Any], ...]:
        """The compiled functions that the term calls."""
        return (add_pull_rows, update_dual_rows, norm_rows, tighten_rows)

    def add_adjoint(self, dual: Array, field: Array, workers: Workers) -> None:
        """Add H'Y to `field` in place."""

        def add(first: int, last: int) -> None:
            gathered = np.zeros((2, 2, *field.shape[1:]), field.dtype)
            add_pull_rows(dual, self._patches, gathered, field, first, last)

        workers.share(len(field), add)

    def update_dual(
        self, dual: Array, field: Array, *, step: float, relaxation: float, workers: Workers
    ) -> None:
        """Move Y in place towards the projection of Y + step H Z."""
        steps = Steps(primal=0.0, dual=step, relaxation=relaxation, site_tolerance=0.0)

        def update(first: int, last: int) -> None:
            scratch = new_patch_scratch(field, self.side)
            update_dual_rows(dual, field, self._patches, self._ball, steps, scratch, first, last)
            if relaxation == 1:  # what a certificate is asked for must be feasible
                tighten_rows(dual, self._ball, np.empty((3, dual.shape[-1])), first, last)

        workers.share(len(field), update)

    def value_of_field(self, field: Array, workers: Workers) -> float:
        """Return g(H Z): the tensors of single pixels, smoothed by the window."""
        single = structure_tensor(self.differences.forward(field)[:, np.newaxis])
        seen = padded(single.transpose(1, 0, 2), self.side)
        tensor = np.zeros_like(single)
        for s, view in views(seen, self.side):
            tensor += np.square(self.coupling[:, s], dtype=np.float64) * view.transpose(1, 0, 2)
        norms = singular_values(tensor) if self.nuclear else np.sqrt(tensor[0] + tensor[2])
        return self.weight * float(norms.sum())

    def _scaled(
        self,
        coefficients: Array,
        factor: Callable[[NDArray[np.float64]], NDArray[np.float64]],
    ) -> Array:
        """Return Jacobians whose singular values, or Frobenius norms, are multiplied."""
        angle = np.zeros(self.grid.valid.shape)
        if self.nuclear:
            angle = principal_angle(structure_tensor(coefficients))
        turned = rotate_columns(coefficients, angle)
        factors = factor(self._norms(turned) + np.finfo(np.float64).tiny)
        scaled = turned * factors.astype(turned.dtype)[:, np.newaxis, :, np.newaxis]
        return rotate_columns(scaled, -angle)

    def _norms(self, coefficients: Array) -> NDArray[np.float64]:
        """Return the norms of the columns, (y, direction, x), or of both together, (y, 1, x)."""
        squared = np.einsum("ypdkx,ypdkx->ydx", coefficients, coefficients, dtype=np.float64)
        norms: NDArray[np.float64] = np.sqrt(
            squared if self.nuclear else squared.sum(axis=1, keepdims=True)
        )
        return norms

    @property
    def _patches(self) -> Patches:
        return Patches(self.differences.edge_weight, self.coupling, self.side)

    @property
    def _ball(self) -> Ball:
        return Ball(self.weight, self.nuclear)
