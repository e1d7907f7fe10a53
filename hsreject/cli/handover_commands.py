"""``hsreject polygons``: a map handed over as objects."""

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
    sure = None if confidence is None else _lazy_map(confidence)
    with progress_on(Console(stderr=True)) as progress:
        polygons = polygonize(on_map, sure, minimum_area=minimum_area, progress=progress)
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
