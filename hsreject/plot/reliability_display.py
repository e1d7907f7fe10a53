"""Reliability diagrams: how often labels are right, over their stated probability."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import xarray as xr

from hsreject.measures.summary import reliability
from hsreject.plot.style import COLUMN_WIDTH, line_looks, print_style, shown_axes

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import ArrayLike

_LARGEST_MARK = 9.0  # points; its area stands for the fullest bin


@dataclass(frozen=True, eq=False)
class ReliabilityDisplay:
    """How often labels are right, over their stated probability.

    On the diagonal the probabilities are calibrated; below it the system is overconfident, above it
    too cautious. The area of a mark is the share of the samples in its bin.

    Parameters
    ----------
    tables : mapping of str to Dataset over `bin`
        Names of the systems and their tables of :func:`hsreject.reliability`.

    See Also
    --------
    hsreject.reliability : the numbers.

    Examples
    --------
    >>> import hsreject as hr
    >>> display = hr.plot.ReliabilityDisplay.from_samples(
    ...     {"a": ([True, False], [0.9, 0.9]), "b": ([True, True], [0.8, 1.0])})
    >>> display.label("a")
    'a, ECE 0.400'
    """

    tables: Mapping[str, xr.Dataset]

    @classmethod
    def from_samples(
        cls,
        samples: Mapping[str, tuple[ArrayLike | xr.DataArray, ArrayLike | xr.DataArray]],
        *,
        n_bins: int = 15,
    ) -> ReliabilityDisplay:
        """Return the display of systems by name: correctness and probability of their labels."""
        return cls({name: reliability(*pair, n_bins=n_bins) for name, pair in samples.items()})

    def label(self, name: str) -> str:
        """Return the name of a system with its expected calibration error."""
        return f"{name}, ECE {self.tables[name].attrs['expected_calibration_error']:.3f}"

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        with print_style():
            ax = shown_axes(COLUMN_WIDTH, COLUMN_WIDTH) if ax is None else ax
            ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
            for look, (name, table) in zip(
                line_looks(len(self.tables)), self.tables.items(), strict=True
            ):
                stated, observed = table["mean_probability"].values, table["accuracy"].values
                share = table["n_samples"].values / table["n_samples"].values.max()
                ax.plot(
                    stated,
                    observed,
                    color=look.color,
                    linestyle=look.dashes,
                    label=self.label(name),
                )
                area = np.maximum(share * _LARGEST_MARK**2, 2.0)
                marks = ax.scatter(stated, observed, s=area, marker=look.marker, color=look.color)
                marks.set(linewidths=0, clip_on=False)
            ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
            ax.set(xlabel="probability of the label", ylabel="share of right labels")
            ax.text(
                0.97,
                0.05,
                "below the diagonal:\noverconfident",
                transform=ax.transAxes,
                fontsize=6.5,
                color="0.35",
                horizontalalignment="right",
            )
            ax.legend(loc="best", handlelength=2.6)
        return ax
