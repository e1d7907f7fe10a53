"""``hsreject next`` and ``polygons``: where to label next, and a map handed over as objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from hsreject.cli.console import print_line, progress_on
from hsreject.cli.options import Confidence, Overwrite, check_there, new_file
from hsreject.errors import HsrejectError, InputError

if TYPE_CHECKING:
    import xarray as xr


def next_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="Folder of 'hsreject run', map_filled.tif, or a map with rejection."
        ),
    ],
    *,
    out: Annotated[Path, new_file("The file to make: .gpkg, .geojson or .csv.")],
    n: Annotated[int, typer.Option("--n", help="How many points.")] = 20,
    exclude: Annotated[
        Path | None,
        typer.Option(
            help="Never asked about where it is not 0: raster. Training pixels of a run never are."
        ),
    ] = None,
    scene: Annotated[
        Path | None,
        typer.Option(help="The scene: make a page to label the points on, too, named like --out."),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """List where the map is rejected, largest regions first, as points to look at and label.

    The centres of these regions, each with its reason. Fill in the column 'reference' and run again
    with --add. Chosen points train a map; they are not a sample: 'certify' and 'assess' refuse
    them.
    """
    check_there(source, exclude, scene)
    from hsreject.files import check_target, replacing
    from hsreject.handover.filled_map import FILLED, open_filled_map
    from hsreject.handover.next_labels import next_labels
    from hsreject.handover.regions import STRIPS
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_map
    from hsreject.io.scene import open_scene
    from hsreject.report.label_page import write_label_page
    from hsreject.schema import check_same_grid

    page = out.with_suffix(".html")
    pages = () if scene is None else (page.name,)
    check_target(out, side_files=pages, overwrite=overwrite)
    path = source / "maps" / FILLED if source.is_dir() else source
    check_there(path)
    opened = open_filled_map if path.name.endswith(FILLED) else open_map
    training = source / "maps" / "train.tif" if source.is_dir() else None
    masks = [open_labels(file) != 0 for file in (training, exclude) if file]
    if len(masks) > 1:
        check_same_grid(*masks, names=("the run", "--exclude"))
    closed = masks[0] | masks[-1] if masks else None
    with progress_on() as progress:
        asked = next_labels(opened(path, chunks=STRIPS), n, exclude=closed, progress=progress)
    with replacing(out, side_files=pages, overwrite=overwrite) as work:
        asked.write(work)
        if scene is not None:
            write_label_page(asked.points, open_scene(scene), work.with_name(page.name))
    labelled = out if scene is None else page.with_suffix(".csv")
    for number, reason in zip(asked.points.id.tolist(), asked.reason.tolist(), strict=True):
        print_line(f"{number:4d}  {reason}")
    print_line(f"wrote {len(asked)} points into {out}")
    if scene is not None:
        print_line(f"wrote {page}: label them there")
    print_line(f"then: hsreject run CONFIG --add {labelled} --out ...")


def polygons_command(
    label: Annotated[
        Path, typer.Argument(metavar="MAP", help="Label map: GeoTIFF or ENVI; 0 is rejected.")
    ],
    *,
    out: Annotated[Path, new_file("The file to make: .gpkg, .fgb or .geojson.")],
    minimum_area: Annotated[
        str | None,
        typer.Option(help="Smaller regions join a neighbor: 0.25ha, 2500m2, or pixels: 12px."),
    ] = None,
    confidence: Confidence = None,
    sieved: Annotated[
        Path | None,
        typer.Option(
            help="Write the sieved map, too, such as sieved.tif; rejected stays rejected."
        ),
    ] = None,
    overwrite: Overwrite = False,
) -> None:
    """Turn a map into polygons with class, name, area, confidence and share rejected.

    With --minimum-area no polygon is smaller; what is rejected never becomes a class in --sieved.
    Sieve before you draw a sample: a sieved map is another map to its certificate.
    """
    check_there(label, confidence)
    from hsreject.files import check_target
    from hsreject.handover.polygonize import polygonize, vector_driver
    from hsreject.handover.regions import STRIPS
    from hsreject.handover.sieve import sieve
    from hsreject.io.maps import open_map, write_map

    vector_driver(out)
    check_target(out, overwrite=overwrite)
    if sieved is not None:
        check_target(sieved, overwrite=True)  # the same map may be there: see below
    if sieved is not None and minimum_area is None:
        raise InputError("A map is sieved by an area: give --minimum-area, too.")
    on_map = open_map(label, chunks=STRIPS)
    confidences = None if confidence is None else open_map(confidence, chunks=STRIPS)
    with progress_on() as progress:
        if sieved is not None and minimum_area is not None:
            smooth = sieve(on_map, minimum_area, progress=progress)
            # a command that was stopped before its polygons has left the map that it needs
            if overwrite or not _is_map(sieved, smooth):
                write_map(smooth, sieved, overwrite=overwrite, progress=progress)
        polygons = polygonize(on_map, confidences, minimum_area=minimum_area, progress=progress)
    polygons.write(out, overwrite=overwrite)
    unit = "ha" if polygons.in_hectares else "pixels"
    rejected = polygons.value == 0
    print_line(
        f"wrote {len(polygons):,} polygons ({polygons.area.sum():,.2f} {unit}) into {out}; "
        f"{rejected.sum():,} of them ({polygons.area[rejected].sum():,.2f} {unit}) are rejected"
    )
    if sieved is not None:
        print_line(
            f"wrote {sieved}: another map, of which a sample or a certificate of {label.name} says "
            "nothing. Draw the sample from it."
        )


def _is_map(path: Path, label: xr.DataArray) -> bool:
    """Tell whether a file holds exactly this label map."""
    from hsreject.handover.regions import STRIPS
    from hsreject.io.grid import PixelGrid
    from hsreject.io.maps import open_map
    from hsreject.schema import class_table

    if not path.is_file():
        return False
    try:
        there = open_map(path, chunks=STRIPS)
    except HsrejectError:
        return False
    tables = class_table(there), class_table(label)
    alike = there.dtype == label.dtype and PixelGrid.of(there) == PixelGrid.of(label)
    return alike and tables[0] == tables[1] and bool((there.variable == label.variable).all())
