"""Structure tensor: borders are straight and shared by all classes over whole patches."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hsreject.context.prior import Grid, Prior, Term
from hsreject.context.priors.vector_tv import VectorTVTerm, edge_weights, weight_halo
from hsreject.context.problem import Array
from hsreject.context.site_kernels import Steps
from hsreject.context.tensor_kernels import (
    Patches,
    add_tensor_pull,
    move_tensor_dual,
    new_patch_scratch,
)
from hsreject.errors import InputError
from hsreject.registry import check_count, check_number
from hsreject.threads import Threads


class StructureTensor(Prior):
    r"""Structure tensor total variation: the nuclear norm of each pixel's patch-based Jacobian.

    .. math:: weight \sum_i \| J_i \|_{S_1}, \qquad
              J_i = \bigl( \omega_s (z_{k,right(i+s)} - z_{k,i+s}),\
                           \omega_s (z_{k,below(i+s)} - z_{k,i+s}) \bigr)_{s,k}

    The Jacobian has a row for each class k and each pixel i + s of the patch around pixel i, and
    two columns. :math:`\omega` is a window whose squares are a Gaussian with sum 1, so that
    :math:`J_i'J_i` is the smoothed structure tensor and its eigenvalues are the squared singular
    values: how much the field changes across and along the border in this patch. Their sum, the
    Schatten-1 norm, makes the smaller one 0: borders of one direction per patch.

    Differences that would cross the border of the scene or a pixel without data are 0, and a
    patch sees nothing beyond a gap in the data. Duals take patch**2 times the memory of those of
    vector TV: 72 bytes per pixel and class in single precision for a patch of 3.

    Parameters
    ----------
    weight : float, at least 0
        How strongly changes of the field are penalised. On Indian Pines 1 to 4.
    patch : int, odd
        Height and width of the patch in pixels.
    width : float, above 0
        Standard deviation of the Gaussian, in pixels.

    See Also
    --------
    hsreject.VectorTV : the same for single pixels.
    hsreject.GraphTV : ties the pixels of segments.
    hsreject.SegSALSA : solves with it.

    References
    ----------
    S. Lefkimmiatis, A. Roussos, P. Maragos, M. Unser, "Structure tensor total variation", SIAM J.
    Imaging Sci. 8, 2015; F. Condessa, J. Bioucas-Dias, J. Kovacevic, "SegSALSA-STR: a convex
    formulation to supervised hyperspectral image segmentation using hidden fields and structure
    tensor regularization", Proc. WHISPERS, 2015.

    Examples
    --------
    >>> import numpy as np
    >>> from hsreject import Grid, StructureTensor
    >>> grid = Grid(np.ones((1, 3), bool), n_classes=2, dtype=np.dtype(float))
    >>> term = StructureTensor(weight=2.0, patch=1).bind(grid)
    >>> field = np.array([[[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    >>> round(term.value(term.forward(field)), 6)
    2.828427
    """

    def __init__(self, weight: float = 1.0, *, patch: int = 3, width: float = 1.0) -> None:
        self.weight = check_number("weight", weight, least=0)
        self.width = check_number("width", width, above=0)
        check_count("patch", patch, least=1)
        if patch % 2 == 0:
            raise InputError(f"patch must be odd, 3 or 5 for example (got {patch}).")
        self.patch = patch

    def bind(self, grid: Grid) -> StructureTensorTerm:
        """Return the term of this prior on `grid`."""
        coupling = patch_coupling(grid, gaussian_window(self.patch, self.width))
        return StructureTensorTerm(grid, self.weight, coupling)

    @property
    def halo(self) -> int:
        """That of vector TV, and half a patch, which is enough on Indian Pines."""
        return weight_halo(self.weight) + self.patch // 2

    @property
    def working_size(self) -> int:
        """Five times the dual, which has two numbers for each pixel of the patch."""
        return 5 * 2 * self.patch**2


class StructureTensorTerm(Term):
    """The structure tensor on a grid; coefficients are (y, patch, direction, category, x).

    `coupling` (y, patch, x) is how much of the differences at each pixel of its patch a pixel sees.
    """

    def __init__(self, grid: Grid, weight: float, coupling: NDArray[np.float64]) -> None:
        super().__init__(grid)
        self.weight = weight
        self.side = round(coupling.shape[1] ** 0.5)
        self.differences = VectorTVTerm(grid, 1.0, edge_weights(None, grid))
        self.coupling = coupling.astype(grid.dtype)
        self.patches = Patches(self.differences.edge_weight, self.coupling, self.side)

    @cached_property
    def squared_norm(self) -> float:
        """The bound of vector TV whose squared edge weights are what all patches see of an edge."""
        seen = np.zeros(self.grid.valid.shape)
        for s, here, there in shifts(self.grid.valid.shape, self.side):
            seen[there] += np.square(self.coupling[:, s][here], dtype=np.float64)
        edge_weight = np.sqrt(seen)[:, np.newaxis] * self.differences.edge_weight
        return VectorTVTerm(self.grid, 1.0, edge_weight).squared_norm

    def forward(self, field: Array) -> Array:
        """Return the differences that each pixel sees in its patch."""
        difference = self.differences.forward(field)
        coefficients = np.zeros((len(field), self.side**2, *difference.shape[1:]), field.dtype)
        for s, here, there in shifts(self.grid.valid.shape, self.side):
            coupling = self.coupling[:, s, np.newaxis, np.newaxis]
            coefficients[:, s][here] = difference[there] * coupling[here]
        return coefficients

    def adjoint(self, coefficients: Array) -> Array:
        """Return the adjoint of the differences, applied to what all patches say of each."""
        gathered = np.zeros_like(coefficients[:, 0])
        for s, here, there in shifts(self.grid.valid.shape, self.side):
            coupling = self.coupling[:, s, np.newaxis, np.newaxis]
            gathered[there] += coupling[here] * coefficients[:, s][here]
        return self.differences.adjoint(gathered)

    def value(self, coefficients: Array) -> float:
        """Return weight times the sum of the singular values."""
        turned, _ = with_orthogonal_columns(coefficients)
        return self.weight * float(column_norms(turned).sum())

    def prox(self, coefficients: Array, step: float) -> Array:
        """Shrink the singular values by step times weight."""
        threshold = step * self.weight
        return scale_singular_values(
            coefficients, lambda norm: np.maximum(norm - threshold, 0) / norm
        )

    def conjugate(self, dual: Array) -> float:
        """Return 0 if no singular value exceeds the weight (up to rounding), else infinity."""
        rounding = 256 * np.finfo(dual.dtype).eps  # some of that of the two columns' large sums
        largest = max(
            (largest_singular_values(row).max() for row in dual[:, np.newaxis]), default=0.0
        )
        return 0.0 if largest <= self.weight * (1 + rounding) else np.inf

    def prox_conjugate(self, dual: Array, step: float) -> Array:  # a projection, whatever the step
        """Cut the singular values at the weight."""
        return scale_singular_values(dual, lambda norm: self.weight / np.maximum(norm, self.weight))

    def add_adjoint(self, dual: Array, field: Array, threads: Threads) -> None:
        """Add H'Y to `field` in place."""

        def add(first: int, last: int) -> None:
            gathered = np.zeros((2, 2, *field.shape[1:]), field.dtype)
            add_tensor_pull(dual, self.patches, gathered, field, first, last)

        threads.share(len(field), add)

    def update_dual(
        self, dual: Array, field: Array, *, step: float, relaxation: float, threads: Threads
    ) -> None:
        """Move Y in place towards the projection of Y + step H Z."""
        steps = Steps(primal=0.0, dual=step, relaxation=relaxation, site_tolerance=0.0)

        def update(first: int, last: int) -> None:
            scratch = new_patch_scratch(field, self.side)
            move_tensor_dual(dual, field, self.patches, self.weight, steps, scratch, first, last)
            if relaxation == 1:  # a certificate follows, for which Y must be feasible
                self._tighten(dual[first:last])

        threads.share(len(field), update)

    def value_of_field(self, field: Array, threads: Threads) -> float:
        """Return g(H Z): the tensors of single pixels, smoothed by the window."""
        # A tensor is quadratic in the Jacobian, so that of a patch is the sum of the tensors of its
        # pixels, times the squared coupling. The Jacobians, a patch times as large, are never made.
        single = structure_tensor(self.differences.forward(field)[:, np.newaxis])
        tensor = np.zeros_like(single)
        for s, here, there in shifts(self.grid.valid.shape, self.side):
            squared = np.square(self.coupling[:, s][here], dtype=np.float64)
            for smoothed, entry in zip(tensor, single, strict=True):
                smoothed[here] += squared * entry[there]
        return self.weight * float(singular_values(tensor).sum())

    def _tighten(self, dual: Array) -> None:
        """Scale the pixels of some rows of Y that rounding has left outside the ball."""
        for row in dual[:, np.newaxis]:
            norm = largest_singular_values(row)[0]
            outside = norm > self.weight
            row[..., outside] *= self.weight / norm[outside]


# Structure tensors are the 2 x 2 Gram matrices J'J of Jacobians: coefficients (y, patch, direction,
# category, x) with the two directions as columns. A tensor is kept as its entries (right, right),
# (right, down), (down, down): (3, y, x), in double precision.


def structure_tensor(jacobian: Array) -> NDArray[np.float64]:
    """Return J'J of each pixel."""
    right, down = jacobian[:, :, 0], jacobian[:, :, 1]
    pairs = ((right, right), (right, down), (down, down))
    axes = "ypkx,ypkx->yx"
    return np.stack([np.einsum(axes, one, two, dtype=np.float64) for one, two in pairs])


def singular_values(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the two singular values of each Jacobian, (2, y, x), the larger first.

    Beside a large one, a small one is known to half the digits only, being the root of a
    difference; :func:`column_norms` in the principal directions do not lose them.
    """
    across, mixed, down = tensor
    middle, apart = 0.5 * (across + down), 0.5 * np.hypot(across - down, 2 * mixed)
    return np.sqrt([middle + apart, np.maximum(middle - apart, 0)])


def largest_singular_values(jacobian: Array) -> NDArray[np.float64]:
    """Return the spectral norm of each Jacobian, (y, x)."""
    largest: NDArray[np.float64] = singular_values(structure_tensor(jacobian.astype(np.float64)))[0]
    return largest


def with_orthogonal_columns(jacobian: Array) -> tuple[Array, NDArray[np.float64]]:
    """Return each Jacobian in its principal directions, and their angle, (y, x)."""
    across, mixed, down = structure_tensor(jacobian)
    angle: NDArray[np.float64] = 0.5 * np.arctan2(2 * mixed, across - down)
    return rotate_columns(jacobian, angle), angle


def rotate_columns(jacobian: Array, angle: NDArray[np.float64]) -> Array:
    """Return J times the rotation by `angle`."""
    cosine, sine = (
        turn.astype(jacobian.dtype)[:, np.newaxis, np.newaxis]
        for turn in (np.cos(angle), np.sin(angle))
    )
    right, down = jacobian[:, :, 0], jacobian[:, :, 1]
    return np.stack([cosine * right + sine * down, cosine * down - sine * right], axis=2)


def column_norms(jacobian: Array) -> NDArray[np.float64]:
    """Return the norms of the two columns, (y, direction, x)."""
    squared = np.einsum("ypdkx,ypdkx->ydx", jacobian, jacobian, dtype=np.float64)
    norms: NDArray[np.float64] = np.sqrt(squared)
    return norms


def scale_singular_values(
    jacobian: Array, factor: Callable[[NDArray[np.float64]], NDArray[np.float64]]
) -> Array:
    """Return Jacobians whose singular values are multiplied by a function of themselves."""
    # With J = U S V', the columns of J V = U S are orthogonal: scaling them scales the singular
    # values, and V' turns them back. The tiny number keeps a Jacobian of 0 from 0 / 0.
    turned, angle = with_orthogonal_columns(jacobian)
    factors = factor(column_norms(turned) + np.finfo(np.float64).tiny)
    turned = turned * factors.astype(turned.dtype)[:, np.newaxis, :, np.newaxis]
    return rotate_columns(turned, -angle)


# Patches: which pixels a pixel sees around itself, numbered in reading order, and with which
# weight.


def gaussian_window(side: int, width: float) -> NDArray[np.float64]:
    """Return the weights of the pixels of a patch, (patch,); their squares sum to 1.

    The squares are a Gaussian of standard deviation `width`: they are the kernel with which the
    structure tensor is smoothed.
    """
    offset = np.arange(side) - side // 2
    profile = np.exp(-(offset**2) / (2 * width**2))
    kernel = np.outer(profile, profile).ravel()
    window: NDArray[np.float64] = np.sqrt(kernel / kernel.sum())
    return window


def patch_coupling(grid: Grid, window: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return with which weight each pixel sees those of its patch, (y, patch, x).

    A pixel sees its own connected region only: the weight is 0 beyond the border of the scene,
    where there is no data, and beyond a gap.
    """
    coupling = np.zeros((grid.valid.shape[0], window.size, grid.valid.shape[1]))
    for s, here, there in shifts(grid.valid.shape, round(window.size**0.5)):
        same = grid.valid[here] & (grid.regions[there] == grid.regions[here])
        coupling[:, s][here] = window[s] * same
    return coupling


def shifts(shape: tuple[int, ...], side: int) -> Iterator[tuple[int, Any, Any]]:
    """Yield, for each pixel of a patch, the centers that have it inside the scene, and where it is.

    Both are indices of arrays (y, ..., x): views, so that adding there adds to the array.
    """
    reach = range(-(side // 2), side // 2 + 1)
    for s, shift in enumerate(product(reach, repeat=2)):
        pairs = tuple(zip(shape, shift, strict=True))
        first = [slice(max(-by, 0), max(size - max(by, 0), 0)) for size, by in pairs]
        second = [slice(max(by, 0), max(size + min(by, 0), 0)) for size, by in pairs]
        yield s, (first[0], ..., first[1]), (second[0], ..., second[1])
