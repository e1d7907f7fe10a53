"""``hsreject sample``, ``certify`` and ``assess``: what may be promised of a map."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hsreject.cli.console import Overwrite, check_there, result_table

if TYPE_CHECKING:
    import xarray as xr

    from hsreject.promise.assessment import Assessment, Estimate
    from hsreject.promise.certificate import Certificate

Nodata = Annotated[int | None, typer.Option(help="One more label that means no data, such as 0.")]
Exclude = Annotated[
    Path | None,
    typer.Option(help="Training pixels: raster (0 is none), polygons or points; never sampled."),
]
Attribute = Annotated[
    str | None,
    typer.Option(help="Attribute with the class, if --exclude holds polygons or points."),
]
Column = Annotated[str, typer.Option(help="Column of the sample with the true class.")]
AssumeRandom = Annotated[
    bool,
    typer.Option(
        "--assume-random",
        help="Take points of unknown origin for a simple random sample of this map.",
    ),
]
SampleFile = Annotated[
    Path, typer.Option("--sample", help="Labelled points: GeoPackage, GeoJSON, CSV.")
]


def sample_command(  # noqa: PLR0913 (one argument per option)
    label: Annotated[
        Path, typer.Argument(metavar="MAP", help="Label map of any software: raster, .mat, .npy.")
    ],
    *,
    n: Annotated[int, typer.Option("--n", help="Number of points.")],
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to make: .gpkg, .geojson or .csv.")
    ],
    design: Annotated[
        str, typer.Option(help="random (which 'certify' needs) or stratified by class.")
    ] = "random",
    exclude: Exclude = None,
    attribute: Attribute = None,
    seed: Annotated[int, typer.Option(help="Another one draws other points.")] = 0,
    show_label: Annotated[
        bool, typer.Option("--show-label", help="Tell what the map says to whoever labels.")
    ] = False,
    nodata: Nodata = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a file that is already there.")
    ] = False,
) -> None:
    """Draw random pixels of a map, to be labelled in QGIS or a spreadsheet.

    Fill in the column 'reference' with class names or codes, without looking at the map. Then run
    'hsreject certify' or 'hsreject assess'.
    """
    check_there(label, exclude)
    from hsreject.files import check_target
    from hsreject.promise.design import draw_sample

    check_target(out, overwrite=overwrite)
    on_map = _label_map(label, nodata)
    training = _training(exclude, on_map, attribute)
    sample = draw_sample(on_map, n, design=design, exclude=training, seed=seed)
    sample.write(out, show_label=show_label, overwrite=overwrite)
    console = Console(highlight=False)
    console.print(
        f"wrote {n} points into {out}: fill in the column 'reference' with "
        f"{_listed(sample.classes.names)}, or a name of your own for anything else",
        soft_wrap=True,
        markup=False,
    )
    console.print(f"next: hsreject assess {label} --sample {out}", soft_wrap=True, markup=False)
    if design == "random":
        command = f"hsreject certify --labels {label} --confidence ... --sample {out} --out ..."
        console.print(f"or:   {command}", soft_wrap=True, markup=False)


def certify_command(  # noqa: PLR0913 (one argument per option)
    *,
    labels: Annotated[
        list[Path],
        typer.Option(help="The label map; or, repeated, maps with rejection of growing coverage."),
    ],
    confidence: Annotated[
        Path | None, typer.Option(help="Confidence of the labels, larger is surer: raster.")
    ] = None,
    sample: SampleFile,
    max_error: Annotated[
        float, typer.Option(help="Share of the kept pixels that may be wrong.")
    ] = 0.05,
    confidence_level: Annotated[
        float, typer.Option(help="How sure the promise is, above 0 and below 1.")
    ] = 0.9,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="New folder for certificate, map and picture.")
    ],
    exclude: Exclude = None,
    attribute: Attribute = None,
    column: Column = "reference",
    assume_random: AssumeRandom = False,
    nodata: Nodata = None,
    overwrite: Overwrite = False,
) -> None:
    """Find the largest part of a map of which few pixels are wrong, with confidence.

    The sample must be a simple random one, drawn with 'hsreject sample'. Writes certificate.json,
    the map with everything else rejected, the tests as a table and a picture of them.
    """
    check_there(*labels, confidence, sample, exclude)
    import xarray as xr

    from hsreject.errors import InputError
    from hsreject.files import check_folder
    from hsreject.io.maps import open_band
    from hsreject.promise.certifying import certify
    from hsreject.promise.sample_file import open_sample
    from hsreject.schema import OPERATING_POINT

    check_folder(out, overwrite=overwrite)
    maps = [_label_map(path, nodata) for path in labels]
    if (confidence is None) == (len(maps) == 1):
        raise InputError("Give one map of labels and its --confidence, or several maps and none.")
    sure = None if confidence is None else open_band(confidence)
    made = certify(
        maps[0] if sure is not None else xr.concat(maps, OPERATING_POINT, combine_attrs="override"),
        sure,
        open_sample(sample, maps[0], attribute=column),
        max_error=max_error,
        confidence_level=confidence_level,
        exclude=_training(exclude, maps[0], attribute),
        assume_random=assume_random,
    )
    files = _write_certificate(made, maps, sure, out, overwrite=overwrite)
    console = Console(highlight=False)
    console.print(made.statement, soft_wrap=True, markup=False)
    if made.threshold is not None:
        what = labels[int(made.threshold)].name if made.stacked else f"{made.threshold:.6g}"
        console.print(f"{'map' if made.stacked else 'threshold'}: {what}", markup=False)
    console.print(f"wrote {', '.join(files)} into {out}", soft_wrap=True, markup=False)


def assess_command(
    label: Annotated[
        Path,
        typer.Argument(
            metavar="MAP", help="Label map of any software; 0 is rejected, unless --nodata."
        ),
    ],
    *,
    sample: SampleFile,
    confidence_level: Annotated[
        float, typer.Option(help="Of the intervals, above 0 and below 1.")
    ] = 0.95,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="New folder for tables and picture.")
    ] = None,
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
    from hsreject.promise.sample_file import open_sample

    if out is not None:
        check_folder(out, overwrite=overwrite)
    on_map = _label_map(label, nodata)
    points = open_sample(sample, on_map, attribute=column)
    found = assess(on_map, points, confidence_level=confidence_level, assume_random=assume_random)
    if out is not None:
        from hsreject.plot import AreaDisplay, new_row, save_figure
        from hsreject.plot.style import COLUMN_WIDTH

        with complete_folder(out, overwrite=overwrite) as work:
            found.write_tables(work)
            display = AreaDisplay(found)
            figure, (ax,) = new_row(1, COLUMN_WIDTH, display.height)
            display.plot(ax)
            save_figure(figure, work / "areas")
    console = Console(highlight=False)
    show_assessment(found, console)
    if out is not None:
        console.print(
            f"wrote assessment.csv, error-matrix.csv, areas.png into {out}", soft_wrap=True
        )


def show_assessment(found: Assessment, console: Console) -> None:
    """Print the accuracies and the areas, each with its interval."""
    console.print(
        f"{found.n_points} pixels with a reference, {found.drawn}; intervals of "
        f"{100 * found.confidence_level:g} %",
        soft_wrap=True,
        markup=False,
    )
    estimates = found.rows()
    for name, _, value in estimates[:2]:
        console.print(f"{name} {_percent(value)} %")
    of_class = {(title, name): value for title, name, value in estimates[2:]}
    unit = found.area_unit
    counted = zip(found.classes.names, found.by_class["mapped_area"].values, strict=True)
    rows = [
        (
            name,
            _percent(of_class["user's accuracy", name], digits=0),
            _percent(of_class["producer's accuracy", name], digits=0),
            f"{mapped:.0f}",
            _interval(of_class[f"area in {unit}", name]),
        )
        for name, mapped in counted
    ]
    headings = ("class", "user's %", "producer's %", f"counted {unit}", f"estimated {unit}")
    console.print(result_table(console, headings, rows))
    if found.rejected_area:
        share = found.rejected_area / (
            found.rejected_area + float(found.by_class["mapped_area"].sum())
        )
        console.print(
            f"rejected: {found.rejected_area:.0f} {unit} ({100 * share:.1f} %), which count as "
            "not right in the overall and the producer's accuracies",
            soft_wrap=True,
            markup=False,
        )
    if found.unknown_area:
        console.print(
            f"unknown: {found.unknown_area:.1f} {found.area_unit} are rejected and no point there "
            "has a reference; the areas above are kept ones only",
            soft_wrap=True,
            markup=False,
        )


def _percent(found: Estimate, *, digits: int = 1) -> str:
    return _interval(found, scale=100, digits=digits)


def _interval(found: Estimate, *, scale: float = 1, digits: int = 0) -> str:
    if found.value != found.value:
        return ""
    numbers = (f"{scale * x:.{digits}f}" for x in (found.value, found.lower, found.upper))
    return "{} ({} to {})".format(*numbers)


def _listed(names: tuple[str, ...]) -> str:
    return ", ".join(names[:20]) + (", ..." if len(names) > 20 else "")


def _label_map(path: Path, nodata: int | None) -> xr.DataArray:
    """Open a label map of any software with its class names; 0 in it means rejected."""
    import numpy as np

    from hsreject.files import existing
    from hsreject.io.labels import open_labels, whole_labels
    from hsreject.io.maps import open_map
    from hsreject.io.scene import Kind, file_kind
    from hsreject.schema import nodata_label

    found = existing(path)
    label = open_map(found) if file_kind(found) is Kind.RASTER else open_labels(found)
    if label.dtype.kind == "f":
        empty = np.isnan(label.values)
        values = whole_labels(np.where(empty, 0, label.values), nodata=None, path=found)
        label = label.copy(data=np.where(empty, nodata_label(values.dtype), values))
    if nodata is not None:
        label = label.where(label != nodata, nodata_label(label.dtype))
    return label


def _training(
    path: Path | None, on_map: xr.DataArray, attribute: str | None
) -> xr.DataArray | None:
    from hsreject.io.labels import open_labels

    return None if path is None else open_labels(path, like=on_map, attribute=attribute)


def _write_certificate(
    made: Certificate,
    maps: list[xr.DataArray],
    sure: xr.DataArray | None,
    folder: Path,
    *,
    overwrite: bool,
) -> list[str]:
    """Write certificate, tests, picture and, if there is one, the certified map."""
    import csv
    from dataclasses import asdict

    from hsreject.files import complete_folder
    from hsreject.io.maps import write_map
    from hsreject.plot import CertificateDisplay, new_row, save_figure
    from hsreject.plot.style import COLUMN_WIDTH

    with complete_folder(folder, overwrite=overwrite) as work:
        made.write(work / "certificate.json")
        with (work / "tests.csv").open("w", newline="", encoding="utf-8") as stream:
            writer = csv.DictWriter(stream, list(asdict(made.tests[0])))
            writer.writeheader()
            writer.writerows(asdict(test) for test in made.tests)
        figure, (ax,) = new_row(1, COLUMN_WIDTH, 2.7)
        CertificateDisplay(made).plot(ax)
        save_figure(figure, work / "certificate")
        if made.threshold is not None:
            if sure is None:
                kept = maps[int(made.threshold)].rename("label_with_rejection")
            else:
                kept = made.apply(maps[0], sure)["label_with_rejection"]
            write_map(kept, work / "label_with_rejection.tif")
        return sorted(file.name for file in work.iterdir() if file.suffix != ".xml")
