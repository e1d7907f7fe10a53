"""``hsreject next`` and ``polygons``: where to label next, and a map handed over as objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console

from hsreject.cli.console import check_there, progress_on

if TYPE_CHECKING:
    import xarray as xr

ReplaceFiles = Annotated[
    bool, typer.Option("--overwrite", help="Replace files that are already there.")
]


def next_command(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="RUN", help="Folder of 'hsreject run', map_filled.tif, or a map with rejection."
        ),
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to make: .gpkg, .geojson or .csv.")
    ],
    n: Annotated[int, typer.Option("--n", help="How many points.")] = 20,
    exclude: Annotated[
        Path | None,
        typer.Option(help="Never asked about: raster of training pixels; of a run, its own."),
    ] = None,
    scene: Annotated[
        Path | None, typer.Option(help="The scene: make a page to label the points on, too.")
    ] = None,
    page: Annotated[
        Path | None, typer.Option(help="That page; by default named like --out, .html.")
    ] = None,
    overwrite: ReplaceFiles = False,
) -> None:
    """List where the map is rejected, largest regions first, as points to look at and label.

    The centres of these regions, each with its reason. Fill in the column 'reference' and run again
    with --add. Chosen points train a map; they are no sample: 'certify' and 'assess' refuse them.
    """
    check_there(source, exclude, scene)
    from hsreject.files import check_target
    from hsreject.handover.filled_map import FILLED, open_filled_map
    from hsreject.handover.next_labels import next_labels
    from hsreject.handover.regions import ROWS
    from hsreject.io.labels import open_labels
    from hsreject.io.maps import open_map
    from hsreject.io.scene import open_scene
    from hsreject.promise.label_page import write_label_page

    html = page or out.with_suffix(".html")
    for target in (out, *([] if scene is None else [html])):
        check_target(target, overwrite=overwrite)
    path = source / "maps" / FILLED if source.is_dir() else source
    check_there(path)
    chunks = (1, ROWS, -1)
    filled = path.name.endswith(FILLED)
    maps = open_filled_map(path, chunks=chunks) if filled else open_map(path, chunks=chunks)
    if exclude is None and source.is_dir():
        exclude = source / "maps" / "train.tif"
    training = None if exclude is None else open_labels(exclude)
    with progress_on(Console(stderr=True)) as progress:
        asked = next_labels(maps, n, exclude=training, progress=progress)
    asked.write(out, overwrite=overwrite)
    console = Console(highlight=False)
    for number, reason in zip(asked.points.id.tolist(), asked.reason.tolist(), strict=True):
        console.print(f"{number:4d}  {reason}", soft_wrap=True, markup=False)
    console.print(f"wrote {len(asked)} points into {out}", soft_wrap=True, markup=False)
    labelled = out
    if scene is not None:
        write_label_page(asked.points, open_scene(scene), html, overwrite=overwrite)
        labelled = html.with_suffix(".csv")
        console.print(f"wrote {html}: label them there", soft_wrap=True, markup=False)
    console.print(
        f"then: hsreject run CONFIG --add {labelled} --out ...", soft_wrap=True, markup=False
    )


def polygons_command(
    label: Annotated[
        Path, typer.Argument(metavar="MAP", help="Label map: GeoTIFF or ENVI; 0 is rejected.")
    ],
    *,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="The file to make: .gpkg, .fgb or .geojson.")
    ],
    minimum_area: Annotated[
        str | None,
        typer.Option(help="Smaller regions join a neighbor: 0.25ha, 2500m2, or pixels: 12px."),
    ] = None,
    confidence: Annotated[
        Path | None, typer.Option(help="Confidence of the labels: raster, on the same grid.")
    ] = None,
    sieved: Annotated[
        Path | None,
        typer.Option(
            help="Write the sieved map, too, such as sieved.tif; rejected stays rejected."
        ),
    ] = None,
    overwrite: ReplaceFiles = False,
) -> None:
    """Turn a map into polygons with class, name, area, confidence and share rejected.

    With --minimum-area no polygon is smaller; what is rejected never becomes a class in --sieved.
    Sieve before you draw a sample: a sieved map is another map to its certificate.
    """
    check_there(label, confidence)
    from hsreject.errors import InputError
    from hsreject.files import check_target
    from hsreject.handover.polygonize import polygonize, vector_driver
    from hsreject.handover.sieve import Area, sieve
    from hsreject.io.maps import write_map

    vector_driver(out)
    check_target(out, overwrite=overwrite)
    if sieved is not None:
        check_target(sieved, overwrite=overwrite)
        if minimum_area is None:
            raise InputError("A map is sieved by an area: give --minimum-area, too.")
    if minimum_area is not None:
        Area.of(minimum_area)
    on_map = _lazy_map(label)
    confidences = None if confidence is None else _lazy_map(confidence)
    with progress_on(Console(stderr=True)) as progress:
        polygons = polygonize(on_map, confidences, minimum_area=minimum_area, progress=progress)
        if sieved is not None and minimum_area is not None:
            smooth = sieve(on_map, minimum_area, progress=progress)
            write_map(smooth, sieved, overwrite=overwrite, progress=progress)
    polygons.write(out, overwrite=overwrite)
    console = Console(highlight=False)
    n_rejected = int((polygons.value == 0).sum())
    unit = "ha" if polygons.in_hectares else "pixels"
    console.print(
        f"wrote {len(polygons):,} polygons ({polygons.area.sum():,.2f} {unit}) into {out}; "
        f"{n_rejected:,} of them are rejected",
        soft_wrap=True,
        markup=False,
    )
    if sieved is not None:
        console.print(
            f"wrote {sieved}: another map, of which a sample or a certificate of {label.name} says "
            "nothing. Draw the sample from it.",
            soft_wrap=True,
            markup=False,
        )


def _lazy_map(path: Path) -> xr.DataArray:
    """Open a map of any size: its rows are read as they are needed."""
    from hsreject.handover.regions import ROWS
    from hsreject.io.maps import open_map

    return open_map(path, chunks=(1, ROWS, -1))
