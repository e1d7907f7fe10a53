"""Structure tensors: the 2 x 2 Gram matrices J'J of Jacobians, and the singular values of J.

Jacobians are coefficients (y, patch, direction, category, x), with the two directions as columns.
A tensor is kept as its entries (right, right), (right, down), (down, down): (3, y, x), in double
precision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.floating[Any]]


def structure_tensor(jacobian: Array) -> NDArray[np.float64]:
    """Return J'J of each pixel."""
    right, down = jacobian[:, :, 0], jacobian[:, :, 1]
    pairs = ((right, right), (right, down), (down, down))
    axes = "ypkx,ypkx->yx"
    return np.stack([np.einsum(axes, one, two, dtype=np.float64) for one, two in pairs])


def singular_values(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the two singular values of each Jacobian, (2, y, x), the larger first.

    Beside a large one, a small one is known to half the digits only, being the root of a
    difference; the norms of :func:`rotate_columns` do not lose them.

    Examples
    --------
    >>> singular_values(np.array([13.0, 12.0, 13.0]).reshape(3, 1, 1)).ravel().tolist()
    [5.0, 1.0]
    """
    across, mixed, down = tensor
    middle, apart = 0.5 * (across + down), 0.5 * np.hypot(across - down, 2 * mixed)
    return np.sqrt([middle + apart, np.maximum(middle - apart, 0)])


def principal_angle(tensor: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the angle, (y, x), of the direction in which each Jacobian is largest."""
    across, mixed, down = tensor
    angle: NDArray[np.float64] = 0.5 * np.arctan2(2 * mixed, across - down)
    return angle


def rotate_columns(jacobian: Array, angle: NDArray[np.float64]) -> Array:
    """Return J times the rotation by `angle`.

    By the principal angle, the columns become orthogonal: their norms are the singular values.
    """
    cosine, sine = (
        turn.astype(jacobian.dtype)[:, np.newaxis, np.newaxis]
        for turn in (np.cos(angle), np.sin(angle))
    )
    right, down = jacobian[:, :, 0], jacobian[:, :, 1]
    return np.stack([cosine * right + sine * down, cosine * down - sine * right], axis=2)
