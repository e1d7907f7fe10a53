"""``hsreject assess``: accuracies and areas of a map, with intervals."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.console import print_table
from hsreject.cli.options import (
    AssumeRandom,
    Column,
    LabelMap,
    Nodata,
    Overwrite,
    SampleFile,
    check_there,
    new_folder,
    open_label_map,
)

if TYPE_CHECKING:
    from hsreject.promise.assessment import Assessment, Estimate


def assess_command(
    label: LabelMap,
    *,
    sample: SampleFile,
    confidence_level: Annotated[
        float, typer.Option(help="Of the intervals, above 0 and below 1.")
    ] = 0.95,
    out: Annotated[Path | None, new_folder("New folder for tables and picture.")] = None,
    column: Column = "reference",
    assume_random: AssumeRandom = False,
    nodata: Nodata = None,
    overwrite: Overwrite = False,
) -> None:
    """Estimate accuracies and the area of each class from a sample, with intervals.

    The sample may be random or stratified, drawn from this map or another one of the same place.
    """
    check_there(label, sample)
    from hsreject.files import check_folder, complete_folder
    from hsreject.promise.assessment import assess
    from hsreject.promise.sample import open_sample

    if out is not None:
        check_folder(out, overwrite=overwrite)
    on_map = open_label_map(label, nodata)
    points = open_sample(sample, on_map, attribute=column)
    assessment = assess(
        on_map, points, confidence_level=confidence_level, assume_random=assume_random
    )
    _show(assessment)
    if out is not None:
        from hsreject.plot import AreaDisplay, new_row, save_figure
        from hsreject.plot.style import COLUMN_WIDTH

        with complete_folder(out, overwrite=overwrite) as work:
            assessment.write_tables(work)
            display = AreaDisplay(assessment)
            figure, (ax,) = new_row(1, COLUMN_WIDTH, display.height)
            display.plot(ax)
            save_figure(figure, work / "areas")
        typer.echo(f"wrote assessment.csv, error-matrix.csv, areas.png into {out}")


def _show(assessment: Assessment) -> None:
    """Print the accuracies and the areas, each with its interval."""
    unit, estimates = assessment.area_unit, assessment.rows()
    typer.echo(
        f"{assessment.n_points} pixels with a reference, {assessment.drawn}; intervals of "
        f"{100 * assessment.confidence_level:g} %"
    )
    if assessment.n_cannot_tell:
        typer.echo(
            f"{assessment.n_cannot_tell} points that nobody could label: intervals hold whatever "
            "they may be"
        )
    for name, _, estimate in estimates[:2]:
        typer.echo(f"{name} {_interval(estimate, scale=100, digits=1)} %")
    of_class = {(title, name): estimate for title, name, estimate in estimates[2:]}
    counted = zip(assessment.classes.names, assessment.by_class["mapped_area"].values, strict=True)
    rows = [
        (
            name,
            _interval(of_class["user's accuracy", name], scale=100),
            _interval(of_class["producer's accuracy", name], scale=100),
            f"{mapped:.0f}",
            _interval(of_class[f"area in {unit}", name]),
        )
        for name, mapped in counted
    ]
    headings = ("class", "user's %", "producer's %", f"counted {unit}", f"estimated {unit}")
    print_table(headings, rows)
    if assessment.rejected_area:
        share = assessment.rejected_area / assessment.total_area
        typer.echo(
            f"rejected: {assessment.rejected_area:.0f} {unit} ({100 * share:.1f} %), which count "
            "as not right in the overall and the producer's accuracies"
        )
    if assessment.unknown_area:
        typer.echo(
            f"unknown: {assessment.unknown_area:.1f} {unit} are rejected and no point there has a "
            "reference; the areas above are kept ones only"
        )


def _interval(estimate: Estimate, *, scale: float = 1, digits: int = 0) -> str:
    """Return an estimate with its interval in words, or nothing where there is none."""
    if math.isnan(estimate.value):
        return ""
    ends = (estimate.value, estimate.lower, estimate.upper)
    value, lower, upper = (f"{scale * end:.{digits}f}" for end in ends)
    return f"{value} ({lower} to {upper})"
