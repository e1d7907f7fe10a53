"""``hsreject evaluate`` and ``explore``: maps with rejection from any software."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.console import print_line, print_table, progress_on
from hsreject.cli.options import (
    Attribute,
    BandAxis,
    Confidence,
    Nodata,
    Overwrite,
    check_there,
    new_file,
    new_folder,
)
from hsreject.errors import InputError
from hsreject.io.remote import as_path

if TYPE_CHECKING:
    from rich.console import Console

    from hsreject.evaluation.evaluation import Evaluation


def evaluate_command(  # noqa: PLR0913 (one argument per option)
    *,
    reference: Annotated[
        Path, typer.Option(help="True classes: raster (0 is no reference), polygons or points.")
    ],
    labels: Annotated[Path, typer.Option(help="Assigned classes before rejection: raster.")],
    confidence: Confidence = None,
    rejected: Annotated[
        Path | None, typer.Option(help="What the map rejects: raster, not 0 where it does.")
    ] = None,
    rejection_cost: Annotated[
        list[float] | None,
        typer.Option(help="Cost of a rejection if an error costs 1. Repeatable."),
    ] = None,
    block_size: Annotated[
        float | None,
        typer.Option(
            help="Side, in pixels, of blocks whose pixels err together: widens 95 % intervals."
        ),
    ] = None,
    attribute: Attribute = None,
    nodata: Nodata = None,
    out: Annotated[Path | None, new_folder("New folder for tables, curves and pictures.")] = None,
    overwrite: Overwrite = False,
) -> None:
    """Measure a classification with rejection: one operating point, or all that thresholds reach.

    Give --confidence for the whole curve, --rejected for the map's own operating point, or both.
    A is the accuracy of what is kept, Q the share of right decisions (right labels kept, wrong ones
    rejected), phi the odds of an error among the rejected over the odds among all.
    """
    check_there(reference, labels, confidence, rejected)
    from hsreject.evaluation.evaluation import evaluate
    from hsreject.files import check_folder

    if out is not None:
        check_folder(out, overwrite=overwrite)  # before the work, not after it
    evaluation = evaluate(
        reference,
        labels,
        confidence,
        rejected=rejected,
        rejection_cost=rejection_cost or (),
        block_size=block_size,
        nodata=nodata,
        attribute=attribute,
    )
    show_evaluation(evaluation)
    if out is not None:
        with progress_on() as progress:
            files = evaluation.write(out, overwrite=overwrite, progress=progress)
        print_line(f"wrote {len(files)} files into {out}; open {out / 'report.html'}")


def show_evaluation(evaluation: Evaluation, console: Console | None = None) -> None:
    """Print the table of operating points, and the figures that people quote."""
    from hsreject.evaluation.evaluation import summary_lines
    from hsreject.measures.point import added_measures

    added = added_measures()
    rows = [
        (
            named.name,
            f"{100 * named.point.rejected_fraction:.2f} %",
            _number(named.point.nonrejected_accuracy),
            _number(named.point.classification_quality),
            _number(named.point.rejection_quality),
            _number(named.point.threshold),
            _number(named.cost),
            *(_number(getattr(named.point, name)) for name in added),
        )
        for named in evaluation.points
    ]
    labels = (measure.label for measure in added.values())
    headings = ("operating point", "rejected", "A", "Q", "phi", "threshold", "cost", *labels)
    print_table(headings, rows, console=console)
    print_line()
    for line in summary_lines(evaluation):
        print_line(line)


def _number(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.4f}"


def explore_command(  # noqa: PLR0913 (one argument per option)
    *,
    labels: Annotated[
        list[Path],
        typer.Option(help="Assigned classes before rejection: raster. Again for another system."),
    ],
    confidence: Annotated[
        list[Path],
        typer.Option(
            help="Confidence of the labels, larger is more certain: raster. One per --labels."
        ),
    ],
    out: Annotated[Path, new_file("The page to write, such as map.html.")],
    reference: Annotated[
        Path | None,
        typer.Option(help="True classes to measure on: raster (0 is none), polygons or points."),
    ] = None,
    scene: Annotated[Path | None, typer.Option(help="The image, for false color.")] = None,
    name: Annotated[
        list[str] | None, typer.Option(help="What the page calls a system. One per --labels.")
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page.")] = None,
    fraction: Annotated[
        float | None, typer.Option(help="Share that is rejected when the page opens.")
    ] = None,
    rejection_cost: Annotated[
        float | None,
        typer.Option(help="Open at the cheapest point for this cost, an error being 1."),
    ] = None,
    certified: Annotated[
        float | None, typer.Option(help="Mark this certified threshold of the first system.")
    ] = None,
    attribute: Attribute = None,
    nodata: Nodata = None,
    band_axis: BandAxis = None,
    overwrite: Overwrite = False,
) -> None:
    """Write one HTML file in which a reader rejects more or less and sees what that is worth.

    It needs no network: send it to a colleague. With --reference it shows how right the kept pixels
    are, with --scene what the ground looks like.
    """
    check_there(*labels, *confidence, reference, scene)
    from hsreject.files import check_target

    check_target(out, overwrite=overwrite)  # before the work, not after it
    names = name or [as_path(path).stem for path in labels]
    if not len(labels) == len(confidence) == len(set(names)):
        raise InputError(
            "Each system has one --labels, one --confidence and a name of its own (got "
            f"{len(labels)}, {len(confidence)} and {', '.join(names)}). Name them with --name."
        )

    from hsreject.evaluation.evaluation import as_dataset, training_warnings
    from hsreject.io.maps import open_maps
    from hsreject.io.scene import open_scene
    from hsreject.report.explorer import write_explorer

    systems = {}
    for system, label, ranking in zip(names, labels, confidence, strict=True):
        paths = {"label": label, "confidence": ranking}
        if reference is not None:
            paths["reference"] = reference
        maps = open_maps(paths, nodata=nodata, attribute=attribute)
        if "reference" in maps:
            training_warnings(label, maps["label"], maps["reference"].values.nonzero())
        systems[system] = as_dataset(maps)
    with progress_on() as progress:
        progress("page", 0, 1)
        page = write_explorer(
            systems,
            out,
            scene=None if scene is None else open_scene(scene, band_axis=band_axis),
            title=title,
            fraction=fraction,
            rejection_cost=rejection_cost,
            certified=certified,
            nodata=nodata,
            overwrite=overwrite,
        )
        progress("page", 1, 1)
    size = page.stat().st_size / 1e6
    print_line(f"wrote {page} ({size:.1f} MB). Open it in a browser.")
