"""The confusion matrix of a classifier with rejection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr

from hsreject.classes import ClassTable
from hsreject.errors import InputError
from hsreject.measures.confusion import confusion_matrix
from hsreject.plot.style import COLUMN_WIDTH, PAGE_WIDTH, print_style, shown_axes
from hsreject.schema import DECISION, REFERENCE, REJECTED

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

_GAP = 0.35
_CROWDED = 10


@dataclass(frozen=True, eq=False)
class RejectionConfusionDisplay:
    """Which classes were confused with which, and how much of each class was rejected.

    Rows are the reference, columns the decision; cells show counts, their shade the share of the
    row. The rejected column stands apart, in gray.

    Parameters
    ----------
    matrix : DataArray, dims (reference, decision)
        From :func:`hsreject.confusion_matrix`; decision 0, the last column, is rejected.
    names : tuple of str
        Names of the classes, in the order of the rows.

    See Also
    --------
    hsreject.confusion_matrix : the numbers.

    Examples
    --------
    >>> import hsreject as hr
    >>> display = hr.plot.RejectionConfusionDisplay.from_samples(
    ...     [1, 1, 2, 2], [1, 2, 2, 2], rejected=[False, True, False, False]
    ... )
    >>> ax = display.plot(hr.plot.new_figure().add_subplot())
    >>> [text.get_text() for text in ax.get_xticklabels()]
    ['class 1', 'class 2', 'rejected']
    """

    matrix: xr.DataArray
    names: tuple[str, ...]

    @classmethod
    def from_samples(
        cls,
        reference: Any,
        label: Any,
        *,
        rejected: Any = None,
        classes: ClassTable | None = None,
    ) -> RejectionConfusionDisplay:
        """Return the display of samples: true class, assigned class and what is rejected."""
        return cls.from_matrix(
            confusion_matrix(reference, label, rejected=rejected, classes=classes), classes=classes
        )

    @classmethod
    def from_matrix(
        cls, matrix: xr.DataArray, *, classes: ClassTable | None = None
    ) -> RejectionConfusionDisplay:
        """Return the display of a matrix from :func:`hsreject.confusion_matrix`."""
        if matrix.dims != (REFERENCE, DECISION) or matrix[DECISION].values[-1] != REJECTED:
            raise InputError(
                f"matrix must have the dims ({REFERENCE}, {DECISION}) and decision {REJECTED}, "
                "rejected, as its last column: use the result of hsreject.confusion_matrix."
            )
        values = [int(value) for value in matrix[REFERENCE].values]
        table = ClassTable.plain(values) if classes is None else classes
        return cls(matrix, tuple(table.name_of(value) for value in values))

    @property
    def shares(self) -> NDArray[np.float64]:
        """Each cell divided by the sum of its row. NaN for a class without reference."""
        counts = self.matrix.values.astype(float)
        total = counts.sum(axis=1, keepdims=True)
        with np.errstate(invalid="ignore"):
            return np.asarray(counts / total)

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        n = len(self.names)
        with print_style():
            if ax is None:
                side = COLUMN_WIDTH if n <= _CROWDED else PAGE_WIDTH
                ax = shown_axes(side, 0.85 * side)
            shares = self.shares
            ax.imshow(
                shares[:, :n], cmap="Blues", vmin=0, vmax=1, extent=(-0.5, n - 0.5, n - 0.5, -0.5)
            )
            left = n - 0.5 + _GAP
            ax.imshow(
                shares[:, n:], cmap="Greys", vmin=0, vmax=1, extent=(left, left + 1, n - 0.5, -0.5)
            )
            places = [*range(n), left + 0.5]
            self._write_counts(ax, places)
            ax.set(
                xlim=(-0.5, left + 1), ylim=(n - 0.5, -0.5), xlabel="decision", ylabel="reference"
            )
            ax.set_xticks(places, [*self.names, "rejected"], rotation=90)
            ax.set_yticks(range(n), self.names)
            ax.tick_params(length=0)
            for spine in ax.spines.values():
                spine.set_visible(False)
        return ax

    def _write_counts(self, ax: Axes, places: list[float]) -> None:
        size = 6.5 if len(self.names) <= _CROWDED else 5
        for row, (counts, shares) in enumerate(zip(self.matrix.values, self.shares, strict=True)):
            for place, count, share in zip(places, counts, shares, strict=True):
                if count > 0:
                    color = "white" if share > 0.6 else "black"
                    text = ax.text(place, row, f"{count:.6g}", fontsize=size, color=color)
                    text.set(ha="center", va="center")
