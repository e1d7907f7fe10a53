"""Bootstrap resampling of samples or of spatial blocks, as weights on a fixed order."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


@dataclass(frozen=True)
class Resampling:
    """How a bootstrap draws its resamples.

    Neighbouring pixels are not independent: their errors come in clumps. Resampling single pixels
    then gives bands that are too narrow. With `coordinates` whole square blocks are drawn instead.

    Parameters
    ----------
    n_resamples : int
        Number of resamples.
    level : float
        Coverage of the bands, in (0, 1); they are percentiles of the resamples.
    seed : int
        Decides every draw. Resample i has its own stream, so the result does not depend on how many
        others there are before it, on threads or on the order of the samples.
    coordinates : pair of arrays (row, column), optional
        Where each sample lies, for example `row` and `column` of
        :func:`hsreject.evaluation_samples`.
    block_size : float, optional
        Side of the blocks in the unit of `coordinates`; needed with them. Take at least the
        distance at which errors stop being alike.

    Examples
    --------
    >>> Resampling(n_resamples=200, coordinates=([0, 0, 9], [0, 1, 9]), block_size=5).n_resamples
    200
    """

    n_resamples: int = 1000
    level: float = 0.95
    seed: int = 0
    coordinates: tuple[ArrayLike, ArrayLike] | None = None
    block_size: float | None = None

    def __post_init__(self) -> None:
        if self.n_resamples < 1:
            raise InputError(f"n_resamples must be at least 1 (got {self.n_resamples}).")
        if not 0 < self.level < 1:
            raise InputError(f"level must lie between 0 and 1, like 0.95 (got {self.level:g}).")
        if (self.coordinates is None) != (self.block_size is None):
            raise InputError(
                "Spatial resampling needs both coordinates and block_size, in one unit. Give the "
                "distance at which errors stop being alike, for example block_size=16 pixels."
            )
        if self.block_size is not None and not self.block_size > 0:
            raise InputError(f"block_size must be positive (got {self.block_size:g}).")

    def blocks(self, n: int) -> NDArray[np.intp] | None:
        """Return the block of each of `n` samples, numbered from 0; None without coordinates."""
        if self.coordinates is None or self.block_size is None:
            return None
        axes = [np.asarray(axis, dtype=np.float64).ravel() for axis in self.coordinates]
        if any(axis.size != n or not np.isfinite(axis).all() for axis in axes):
            raise InputError(
                f"coordinates must hold one finite row and column for each of the {n} samples (got "
                f"{' and '.join(str(axis.size) for axis in axes)} values)."
            )
        cells = np.stack([(axis - axis.min()) // self.block_size for axis in axes])
        block = np.unique(cells, axis=1, return_inverse=True)[1].ravel()
        if block.max() == 0:
            raise InputError(
                f"All samples lie in one block of size {self.block_size:g}, which leaves nothing "
                "to resample. Give a smaller block_size."
            )
        return np.asarray(block, dtype=np.intp)

    def weights(self, blocks: NDArray[np.intp] | None, n: int) -> Iterator[NDArray[Any]]:
        """Yield how often each sample occurs in each resample."""
        n_units = n if blocks is None else int(blocks.max()) + 1
        for stream in np.random.SeedSequence(self.seed).spawn(self.n_resamples):
            drawn = np.random.default_rng(stream).integers(n_units, size=n_units)
            times = np.bincount(drawn, minlength=n_units)
            yield times if blocks is None else times[blocks]
