"""``hsreject certify`` and ``assess``: what a labelled sample promises and estimates of a map."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.console import print_line, print_table
from hsreject.cli.options import (
    AssumeRandom,
    Attribute,
    Column,
    Confidence,
    Exclude,
    LabelMap,
    Nodata,
    Overwrite,
    Predicted,
    SampleFile,
    check_there,
    new_folder,
)
from hsreject.errors import InputError

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.certification.assessment import Assessment, Estimate
    from hsreject.certification.certificate import Certificate
    from hsreject.mapping.map_inputs import MapInputs


def certify_command(  # noqa: PLR0913 (one argument per option)
    *,
    labels: Annotated[
        list[Path],
        typer.Option(help="The label map; or, repeated, maps with rejection of growing coverage."),
    ],
    confidence: Confidence = None,
    sample: SampleFile,
    max_error: Annotated[
        float | None,
        typer.Option(help="Share of the kept pixels that may be wrong: 0.05, or as planned."),
    ] = None,
    confidence_level: Annotated[
        float | None, typer.Option(help="Confidence of the promise: 0.9, or as planned.")
    ] = None,
    more: Annotated[
        int,
        typer.Option(
            min=0, help="Add up to this many points to the sample, if its plan asks for them."
        ),
    ] = 0,
    predicted: Predicted = None,
    out: Annotated[Path, new_folder("New folder for certificate, map and picture.")],
    exclude: Exclude = None,
    attribute: Attribute = None,
    column: Column = "reference",
    assume_random: AssumeRandom = False,
    nodata: Nodata = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the largest part of a map of which few pixels are wrong, with confidence.

    The sample is one of 'hsreject sample'. Writes certificate.json, the map with everything else
    rejected, the tests as a table and a picture of them. With --more, the sample file gets the next
    points that its plan asks for; labels stay.
    """
    check_there(*labels, confidence, sample, exclude, predicted)
    import xarray as xr

    from hsreject.certification.certify import certify
    from hsreject.certification.design import more_points
    from hsreject.certification.sample import open_sample
    from hsreject.files import check_folder, complete_folder
    from hsreject.io.maps import open_label_map
    from hsreject.mapping.map_inputs import open_inputs
    from hsreject.schema import OPERATING_POINT

    check_folder(out, overwrite=overwrite)
    if (confidence is None) == (len(labels) == 1):
        raise InputError("Give one map of labels and its --confidence, or several maps and none.")
    inputs = open_inputs(labels[0], nodata, confidence, exclude, attribute, predicted)
    maps = [inputs.label, *(open_label_map(path, nodata) for path in labels[1:])]
    points = larger = open_sample(sample, inputs.label, attribute=column)
    judged = inputs
    if confidence is None:
        stack = xr.concat(maps, OPERATING_POINT, combine_attrs="override")
        judged = inputs._replace(label=stack)
    certificate = certify(
        **judged._asdict(),
        sample=points,
        max_error=max_error,
        confidence_level=confidence_level,
        assume_random=assume_random,
    )
    if more and inputs.confidence is not None:
        larger = more_points(inputs.label, inputs.confidence, points, more, exclude=inputs.exclude)
    with complete_folder(out, overwrite=overwrite) as work:
        _write_certificate(certificate, inputs, maps, work)
        larger.append_to(sample, len(points))  # first: a certificate has asked for its points
        files = sorted(file.name for file in work.iterdir() if file.suffix != ".xml")
    of_stack = labels[int(certificate.threshold or 0)].name if certificate.stacked else ""
    _show_certificate(certificate, of_stack, f"wrote {', '.join(files)} into {out}", inputs.label)
    if len(larger) > len(points):
        n_left = certificate.n_planned - len(points)
        print_line(
            f"added {len(larger) - len(points)} points to {sample}, of {n_left} labels that are "
            "left: label them and go on"
        )
    elif more:
        n_open = int((~points.labelled).sum())
        why = "the tests have ended" if certificate.n_planned > len(points) else "all are drawn"
        print_line(f"no more points: {f'{n_open} wait for a label' if n_open else why}")


def _show_certificate(
    certificate: Certificate, of_stack: str, written: str, label: xr.DataArray
) -> None:
    """Print what is promised, by which threshold or map of a stack, and of which map."""
    from hsreject.io.grid import PixelGrid

    print_line(certificate.statement)
    if certificate.by_class:
        headings = ("class", "promised error", "kept of the class", "labels", "wrong")
        print_table(headings, certificate.rows())
    if certificate.threshold is not None:
        print_line(f"map: {of_stack}" if of_stack else f"threshold: {certificate.threshold:.6g}")
    print_line(written)
    if certificate.coverage:
        print_line(certificate.applies_to)
        crs = PixelGrid.of(label).crs
        if crs is not None and crs.is_geographic:
            print_line(
                "Pixels count alike, although those of a grid in degrees differ in size: the "
                "promise is about pixels, not about hectares."
            )


def _write_certificate(
    certificate: Certificate, inputs: MapInputs, maps: list[xr.DataArray], folder: Path
) -> None:
    """Write certificate, tests, picture and, if there is one, the certified map."""
    from hsreject.io.maps import write_map
    from hsreject.plot import CertificateDisplay, new_row, save_figure
    from hsreject.plot.style import COLUMN_WIDTH
    from hsreject.schema import LABEL_WITH_REJECTION, ZERO_MEANING

    certificate.write(folder / "certificate.json")
    certificate.write_tables(folder)
    display = CertificateDisplay(certificate)
    if inputs.confidence is not None:
        display = CertificateDisplay.of_map(certificate, **inputs._asdict())
    figure, (ax,) = new_row(1, COLUMN_WIDTH, 2.7)
    display.plot(ax)
    save_figure(figure, folder / "certificate")
    if certificate.coverage > 0:
        if inputs.confidence is None:
            certified_map = maps[int(certificate.threshold or 0)].rename(LABEL_WITH_REJECTION)
            certified_map = certified_map.assign_attrs({ZERO_MEANING: "rejected"})
        else:
            certified_map = certificate.apply(inputs.label, inputs.confidence)[LABEL_WITH_REJECTION]
        write_map(certified_map, folder / f"{LABEL_WITH_REJECTION}.tif")


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
    from hsreject.certification.assessment import assess
    from hsreject.certification.sample import open_sample
    from hsreject.files import check_folder, complete_folder
    from hsreject.io.maps import open_label_map

    if out is not None:
        check_folder(out, overwrite=overwrite)
    on_map = open_label_map(label, nodata)
    points = open_sample(sample, on_map, attribute=column)
    assessment = assess(
        on_map, points, confidence_level=confidence_level, assume_random=assume_random
    )
    _show_assessment(assessment)
    if out is not None:
        from hsreject.plot import AreaDisplay, new_row, save_figure
        from hsreject.plot.style import COLUMN_WIDTH

        with complete_folder(out, overwrite=overwrite) as work:
            assessment.write_tables(work)
            display = AreaDisplay(assessment)
            figure, (ax,) = new_row(1, COLUMN_WIDTH, display.height)
            display.plot(ax)
            save_figure(figure, work / "areas")
        print_line(f"wrote assessment.csv, error-matrix.csv, areas.png into {out}")


def _show_assessment(assessment: Assessment) -> None:
    """Print the accuracies and the areas, each with its interval."""
    unit, estimates = assessment.area_unit, assessment.rows()
    print_line(
        f"{assessment.n_points} pixels with a reference, {assessment.drawn}; intervals of "
        f"{100 * assessment.confidence_level:g} %"
    )
    if assessment.n_cannot_tell:
        print_line(
            f"{assessment.n_cannot_tell} points that nobody could label: intervals hold whatever "
            "they may be"
        )
    for name, _, estimate in estimates[:2]:
        print_line(f"{name} {_interval(estimate, scale=100, digits=1)} %")
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
        print_line(
            f"rejected: {assessment.rejected_area:.0f} {unit} ({100 * share:.1f} %), which count "
            "as not right in the overall and the producer's accuracies"
        )
    if assessment.unknown_area:
        print_line(
            f"unknown: {assessment.unknown_area:.1f} {unit} are rejected and no point there has a "
            "reference; the areas above are kept ones only"
        )


def _interval(estimate: Estimate, *, scale: float = 1, digits: int = 0) -> str:
    """Write an estimate with its interval, or nothing where there is none."""
    if math.isnan(estimate.value):
        return ""
    ends = (estimate.value, estimate.lower, estimate.upper)
    value, lower, upper = (f"{scale * end:.{digits}f}" for end in ends)
    return f"{value} ({lower} to {upper})"
