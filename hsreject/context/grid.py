"""The pixels on which a problem is solved.

Below the xarray face, fields are stored as **(y, category, x)**: rows of one class are
contiguous, which is what the compiled loops want. A difference along y is along axis 0, along x
along axis -1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from hsreject.errors import InputError
from hsreject.features.components import principal_components

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Grid:
    """What a prior may know when it is bound to a scene.

    Parameters
    ----------
    valid : array of bool, (y, x)
        Pixels that have data. A prior must not couple the others with anything.
    n_classes : int
        Number of classes of the field.
    dtype : dtype
        Type of fields and coefficients: float32 or float64.
    image : array, (band, y, x), optional
        The image that the scene's probabilities came from.
    good_bands : array of bool, (band,), optional
        Which bands of the image may be used where none are named; by default all.
    """

    valid: NDArray[np.bool_]
    n_classes: int
    dtype: np.dtype[Any]
    image: NDArray[np.floating[Any]] | None = None
    good_bands: NDArray[np.bool_] | None = None

    @property
    def shape(self) -> tuple[int, int, int]:
        """The shape of a field: (y, category, x)."""
        return (self.valid.shape[0], self.n_classes, self.valid.shape[1])

    def required_image(self, *, wanted_by: str) -> NDArray[np.floating[Any]]:
        """Return the image, or say who needs it."""
        if self.image is None:
            raise InputError(
                f"{wanted_by} needs the image and none was given. "
                "Pass it: SegSALSA(...).solve(probability, image=cube)."
            )
        return self.image

    def components(self, count: int, *, wanted_by: str) -> NDArray[np.float64]:
        """Return the leading principal components of the good bands, (component, y, x)."""
        image = self.required_image(wanted_by=wanted_by)
        good = image if self.good_bands is None else image[self.good_bands]
        return principal_components(good, self.valid, count)
