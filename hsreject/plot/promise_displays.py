"""Pictures of guarantees: the certified coverage, and areas with their intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import Patch

from hsreject.certification.frame import Frame
from hsreject.plot.style import (
    BETTER,
    COLUMN_WIDTH,
    WORSE,
    legend_above,
    print_style,
    shown_axes,
)

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from hsreject.certification.assessment import Assessment
    from hsreject.certification.certificate import Certificate

_GRAY = "0.55"
_INK = "#0072b2"
_ABOVE: dict[str, Any] = {"va": "bottom", "fontsize": 6.5, "color": WORSE}
_INSIDE: dict[str, Any] = {"va": "bottom", "ha": "center", "fontsize": 6.5, "color": "0.35"}


@dataclass(frozen=True, eq=False)
class CertificateDisplay:
    """The sequence of tests behind a certificate: how many pixels are wrong, and where it stopped.

    Crosses are the errors found among the sampled pixels that are kept, circles the upper
    confidence bound of the errors among all that are kept: filled where the test passed, open where
    it failed. The dashed line is the error that was asked for. Shaded coverages were not
    tested. For a sequential design, dashes are the errors with which a look passes; for one per
    class, bars are the certified share of each class.

    Parameters
    ----------
    certificate : Certificate
        From :func:`hsreject.certify`.
    predicted : pair of arrays, optional
        Coverages and the errors that were predicted for them.

    See Also
    --------
    hsreject.certify : the certificate.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> confidence = np.linspace(0, 1, 10_000).reshape(100, 100)
    >>> label = np.where(confidence < 0.4, 2, 1)
    >>> sample = hr.draw_sample(label, 500).with_reference(np.ones_like(label))
    >>> display = hr.plot.CertificateDisplay(hr.certify(label, confidence, sample))
    >>> display.plot(hr.plot.new_figure().add_subplot()).get_xlabel()
    'coverage: share of the pixels kept'
    """

    certificate: Certificate
    predicted: tuple[Any, Any] | None = None

    @classmethod
    def of_map(
        cls,
        certificate: Certificate,
        label: xr.DataArray,
        confidence: xr.DataArray,
        *,
        exclude: xr.DataArray | None = None,
        predicted: xr.DataArray | None = None,
    ) -> CertificateDisplay:
        """Make the display with the errors that are predicted for the map, if only by a chance.

        The arguments are those of :func:`hsreject.certify`.
        """
        regions = Frame.of(label, confidence, exclude).regions()
        errors = regions.predicted_errors(predicted)
        return cls(certificate, None if errors is None else (regions.sizes / regions.n_all, errors))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        with print_style():
            ax = shown_axes(COLUMN_WIDTH, 2.6) if ax is None else ax
            self._draw(ax)
        return ax

    def _draw(self, ax: Axes) -> None:
        certificate = self.certificate
        if certificate.by_class:
            self._draw_classes(ax)
            return
        tests = certificate.tests
        coverage = np.array([test.coverage for test in tests])
        (guarantee,) = certificate.guarantees
        bound = np.array([guarantee.upper_bound_of(test) for test in tests])
        seen = np.array([test.n_wrong / (test.n_looked or np.nan) for test in tests])
        passed = np.array([test.passed for test in tests], dtype=bool)
        level = f"{100 * certificate.confidence_level:g} %"
        ax.plot(coverage, bound, color=_INK, linewidth=0.7, zorder=2)
        for which, fill, name in ((passed, _INK, f"{level} bound"), (~passed, "white", "failed")):
            ax.plot(
                coverage[which],
                bound[which],
                "o",
                color=_INK,
                markerfacecolor=fill,
                markersize=3,
                label=name,
            )
        ax.plot(coverage, seen, "x", color=_GRAY, markersize=3, label="sampled")
        if certificate.design == "sequential":
            allowed = [test.critical_number / test.n_looked for test in tests]
            ax.plot(coverage, allowed, "_", color=WORSE, markersize=5, label="boundary")
        if self.predicted is not None:
            ax.plot(*self.predicted, color=_GRAY, linewidth=0.9, linestyle=":", label="predicted")
        ax.axhline(
            certificate.max_error, color=WORSE, linestyle=(0, (4, 2)), linewidth=1.0, zorder=1
        )
        top = max(
            2 * certificate.max_error, 1.15 * np.max([*bound, *seen[~np.isnan(seen)]], initial=0)
        )
        ax.set(xlim=(0, 1), ylim=(0, min(top, 1)))
        ax.set(xlabel="coverage: share of the pixels kept", ylabel="share of these that is wrong")
        asked = "asked for" if certificate.threshold is None else "promised"
        last = coverage[-1] if coverage.size else 0.0
        end, side = (0.99, "right") if last < 0.5 else (0.01, "left")  # off the points
        ax.text(
            end,
            certificate.max_error,
            f"{asked}: {100 * certificate.max_error:g} %",
            ha=side,
            **_ABOVE,
        )
        if not passed.all():
            ax.axvspan(last, 1, color="0.93", zorder=0, linewidth=0)
            middle, across = (last + 1) / 2, ax.get_xaxis_transform()
            if last < 0.8:  # else there is no room for it
                ax.text(middle, 0.03, "not tested", transform=across, **_INSIDE)
        outcome = "nothing certified"
        if certificate.threshold is not None:
            ax.axvline(certificate.coverage, color=BETTER, linewidth=1.0, zorder=1)
            outcome = f"certified: {100 * certificate.coverage:.1f} % of the pixels"
        ax.set_title(outcome, color=WORSE if certificate.threshold is None else BETTER)
        legend_above(ax, ax.get_legend_handles_labels()[0])

    def _draw_classes(self, ax: Axes) -> None:
        certificate = self.certificate
        place = np.arange(len(certificate.by_class))
        ax.barh(
            place, [one.coverage for one in certificate.by_class], height=0.7, color=_INK, alpha=0.6
        )
        for at, one in enumerate(certificate.by_class):
            text = f"{one.n_points} labels" if one.threshold is not None else "cannot be promised"
            ax.text(min(one.coverage + 0.01, 0.7), at, text, va="center", fontsize=6.5)
        ax.set_yticks(place, [one.class_name for one in certificate.by_class])
        ax.invert_yaxis()
        ax.set(xlim=(0, 1), xlabel="certified share of the pixels of the class")
        ax.set_title(
            f"at most {100 * certificate.max_error:g} % wrong, {certificate.per_class}",
            color=BETTER,
        )


@dataclass(frozen=True, eq=False)
class AreaDisplay:
    """Areas estimated from a sample, with intervals, beside the areas of counted pixels.

    Bars are counted pixels, points with whiskers are estimates. The rejected area is the last bar;
    if no rejected pixel has a reference, it is called unknown and not part of the estimates.

    Parameters
    ----------
    assessment : Assessment
        From :func:`hsreject.assess`.

    See Also
    --------
    hsreject.assess : the areas.

    Examples
    --------
    >>> import numpy as np
    >>> import hsreject as hr
    >>> label = np.repeat([1, 2], 50).reshape(10, 10)
    >>> display = hr.plot.AreaDisplay(hr.assess(label, np.where(label == 1, 1, 2)))
    >>> display.plot(hr.plot.new_figure().add_subplot()).get_xlabel()
    'area in pixels'
    """

    assessment: Assessment

    @property
    def height(self) -> float:
        """Inches that the picture needs, so that names do not touch."""
        return 0.9 + 0.2 * (len(self.assessment.classes) + bool(self.assessment.rejected_area))

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw on `ax` (new pyplot axes unless given) and return the axes."""
        with print_style():
            ax = shown_axes(COLUMN_WIDTH, self.height) if ax is None else ax
            self._draw(ax)
        return ax

    def _draw(self, ax: Axes) -> None:
        assessment = self.assessment
        table, classes = assessment.by_class, assessment.classes
        place = np.arange(len(classes))
        value, _, lower, upper = table["area"].values.T
        counted = table["mapped_area"].values
        ax.barh(
            place, counted, height=0.7, color=classes.colors, alpha=0.45, label="counted pixels"
        )
        ax.errorbar(
            value,
            place,
            xerr=np.maximum([value - lower, upper - value], 0),
            fmt="o",
            color="black",
            markersize=3,
            capsize=2,
            elinewidth=0.9,
            label=f"estimated, {100 * assessment.confidence_level:g} %",
        )
        names = list(classes.names)
        if assessment.rejected_area:
            place = np.append(place, place.size)
            names.append("rejected: unknown" if assessment.unknown_area else "rejected")
            area = assessment.rejected_area
            ax.barh(place[-1], area, height=0.7, facecolor="white", hatch="////", edgecolor="0.6")
        ax.set_yticks(place, names)
        ax.invert_yaxis()
        ax.set(xlim=(0, None), xlabel=f"area in {assessment.area_unit}")
        bars, points = ax.get_legend_handles_labels()[0]
        counted_look = Patch(facecolor=_GRAY, alpha=0.6, label=bars.get_label())
        legend_above(ax, [counted_look, points])
