"""``hsreject evaluate``: judge maps with rejection, from any software, against a reference."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hsreject.cli.console import Overwrite, cache_inside, check_there, progress_on

if TYPE_CHECKING:
    from hsreject.report.evaluation import Evaluation


def evaluate_command(  # noqa: PLR0913 (one argument per option)
    *,
    reference: Annotated[
        Path, typer.Option(help="True classes: raster (0 is no reference), polygons or points.")
    ],
    labels: Annotated[Path, typer.Option(help="Assigned classes before rejection: raster.")],
    confidence: Annotated[
        Path | None, typer.Option(help="Confidence of the labels, larger is surer: raster.")
    ] = None,
    rejected: Annotated[
        Path | None, typer.Option(help="What the map rejects, not 0 where it does: raster.")
    ] = None,
    rejection_cost: Annotated[
        list[float] | None,
        typer.Option(help="Cost of a rejection if an error costs 1; may be given several times."),
    ] = None,
    block_size: Annotated[
        float | None,
        typer.Option(
            help="Side, in pixels, of blocks whose pixels err together: widens 95 % intervals."
        ),
    ] = None,
    attribute: Annotated[
        str | None, typer.Option(help="Attribute of polygons or points that holds the class.")
    ] = None,
    nodata: Annotated[int | None, typer.Option(help="One more label that means no data.")] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            callback=cache_inside,
            help="New folder for tables, curves and pictures.",
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Measure a classification with rejection: one operating point, or all that thresholds reach.

    Give --confidence for the whole curve, --rejected for the map's own operating point, or both.
    A is the accuracy of what is kept, Q the share of right decisions (right labels kept, wrong ones
    rejected), phi the odds of an error among the rejected over the odds among all.
    """
    check_there(reference, labels, confidence, rejected)
    from hsreject.files import check_folder
    from hsreject.report.evaluation import evaluate as evaluate_maps

    if out is not None:
        check_folder(out, overwrite=overwrite)  # before the work, not after it
    evaluation = evaluate_maps(
        reference,
        labels,
        confidence,
        rejected=rejected,
        rejection_cost=rejection_cost or (),
        block_size=block_size,
        nodata=nodata,
        attribute=attribute,
    )
    files = None
    if out is not None:
        with progress_on(Console(stderr=True)) as progress:
            files = evaluation.write(out, overwrite=overwrite, progress=progress)
    console = Console(highlight=False)
    show_evaluation(evaluation, console)
    if out is not None and files is not None:
        said = f"wrote {len(files)} files into {out}; open {out / 'report.html'}"
        console.print(said, soft_wrap=True, markup=False)


def show_evaluation(evaluation: Evaluation, console: Console) -> None:
    """Print the table of operating points and what people quote besides."""
    from hsreject.cli.console import result_table
    from hsreject.report.evaluation import summary_lines

    rows = [
        (
            named.name,
            f"{100 * named.point.rejected_fraction:.2f} %",
            _number(named.point.nonrejected_accuracy),
            _number(named.point.classification_quality),
            _number(named.point.rejection_quality),
            _number(named.point.threshold),
            _number(named.cost),
        )
        for named in evaluation.points
    ]
    headings = ("operating point", "rejected", "A", "Q", "phi", "threshold", "cost")
    console.print(result_table(console, headings, rows))
    console.print()
    for line in summary_lines(evaluation):
        console.print(line, soft_wrap=True, markup=False)


def _number(value: float) -> str:
    return "" if value != value else f"{value:.4f}"  # noqa: PLR0124 (NaN: there is none)
