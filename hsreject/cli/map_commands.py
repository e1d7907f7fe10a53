"""``hsreject train`` and ``hsreject map``: learn on one scene, map others of any size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from hsreject.cli.console import (
    BandAxis,
    Overwrite,
    Settings,
    TrustVrt,
    check_there,
    progress_on,
    result_table,
    saying_how_to_go_on,
)
from hsreject.errors import InputError
from hsreject.io.products.remote import as_path, is_store

if TYPE_CHECKING:
    from hsreject.mapping.map_model import MapModel
    from hsreject.mapping.map_scene import SceneMap
    from hsreject.mapping.map_summary import MapSummary

PAGE, STORE = "explorer.html", "maps.zarr"


def train_command(
    config: Annotated[
        Path, typer.Argument(metavar="CONFIG", help="A TOML file, as for 'hsreject run'.")
    ],
    *,
    model: Annotated[
        Path, typer.Option("--model", "-m", help="Where to write the model; .skops is usual.")
    ],
    settings: Settings = None,
    rejector: Annotated[
        str | None,
        typer.Option(
            help="Which rejector of CONFIG gives label and confidence; by default a sequential one."
        ),
    ] = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a model that is already there.")
    ] = False,
) -> None:
    """Train a map model: features, classifier, context, confidence and thresholds, in one file.

    The test pixels of the configuration tell which threshold a rejection cost or an accuracy asks
    for. The file runs no code when it is opened.
    """
    from hsreject.pipeline.config import read_document

    document = read_document(config)  # before the long imports, to report a mistake at once

    from hsreject.files import check_target
    from hsreject.mapping.model_file import save_model
    from hsreject.pipeline.training import train

    check_target(model, overwrite=overwrite)  # before the work, not after it
    with progress_on(Console(stderr=True)) as progress:
        trained = train(document, settings=settings or (), rejector=rejector, progress=progress)
    save_model(trained, model, overwrite=overwrite)
    console = Console(highlight=False)
    if trained.calibration:
        show_points(trained, console)
    else:
        console.print("No test pixels: 'hsreject map' can take --fraction and --threshold only.")
    console.print(f"wrote {model}", soft_wrap=True, markup=False)


def show_points(model: MapModel, console: Console) -> None:
    """Print the operating points that people ask for first."""
    from hsreject.measures.choosing import cheapest_operating_point, choose_point

    points = model.operating_points
    chosen = {"nothing rejected": choose_point(points, fraction=0.0)}
    chosen |= {f"--fraction {share}": choose_point(points, fraction=share) for share in (0.1, 0.2)}
    chosen |= {
        f"--rejection-cost {cost}": cheapest_operating_point(points, cost)
        for cost in (0.2, 0.3, 0.4)
    }
    rows = [
        (
            name,
            f"{100 * point.rejected_fraction:.1f} %",
            f"{100 * point.nonrejected_accuracy:.1f} %",
            f"{point.threshold:.4f}",
        )
        for name, point in chosen.items()
    ]
    headings = ("test pixels", "rejected", "accuracy kept", "threshold")
    console.print(result_table(console, headings, rows, title=model.title))
    console.print(
        "Thresholds for a cost were chosen on these pixels: their accuracy is optimistic."
    )


def map_command(  # noqa: PLR0913 (one argument per option)
    scenes: Annotated[
        list[Path],
        typer.Argument(
            metavar="SCENE...",
            help="ENVI, GeoTIFF, Zarr, EMIT and other products, .mat, .npy, or a URL; of any size. "
            "Several, a folder or a list in a text file: each gets a folder of its own inside "
            "--out.",
        ),
    ],
    *,
    model: Annotated[Path, typer.Option("--model", "-m", help="Made by 'hsreject train'.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="New folder for the maps.")],
    fraction: Annotated[
        float | None, typer.Option(help="Share of the pixels to reject, from 0 to 1.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Reject the pixels with a confidence below it.")
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            help="Accuracy that the kept pixels should have, rejecting no more than that."
        ),
    ] = None,
    rejection_cost: Annotated[
        float | None,
        typer.Option(
            help="Reject what makes the map cheapest if a rejected pixel costs this, and a "
            "wrong one 1."
        ),
    ] = None,
    certificate: Annotated[
        Path | None,
        typer.Option(help="Apply what 'hsreject certify' certified for this very map: JSON."),
    ] = None,
    match_bands: Annotated[
        str, typer.Option(help="Bands of another instrument: exact, nearest or interpolate.")
    ] = "exact",
    foreign: Annotated[
        str,
        typer.Option(
            help="A scene unlike the training scene: refuse it, or allow it to be mapped."
        ),
    ] = "refuse",
    memory: Annotated[
        str, typer.Option(help="Bound of the memory of this process, such as 500MB.")
    ] = "2GB",
    block_size: Annotated[
        int | None,
        typer.Option(help="Side of a block in pixels; by default it follows from memory."),
    ] = None,
    n_workers: Annotated[
        int | None,
        typer.Option(help="Blocks at a time; by default as many as cores and memory allow."),
    ] = None,
    address: Annotated[
        str | None,
        typer.Option(
            "--cluster", help="Address of a dask scheduler, such as tcp://127.0.0.1:8786."
        ),
    ] = None,
    variable: Annotated[
        str | None, typer.Option(help="Which array of a .mat file is the scene, if it has several.")
    ] = None,
    band_axis: BandAxis = None,
    zarr: Annotated[
        bool, typer.Option("--zarr", help="Write all maps into one Zarr store, too: maps.zarr.")
    ] = False,
    overwrite: Overwrite = False,
    trust_vrt: TrustVrt = False,  # its callback acts
) -> None:
    """Map a scene with a trained model, rejecting the pixels that it is least sure of.

    Give one of --fraction, --threshold, --accuracy, --rejection-cost and --certificate. Accuracy
    and cost take the threshold that the test pixels of the training scene ask for. Scenes larger
    than memory are mapped in blocks. Of several scenes, those that are finished are skipped, and
    one that fails does not stop the others: the exit code is then 1.
    """
    scenes = [as_path(scene) for scene in scenes]
    check_there(*scenes, model, certificate)
    if zarr and find_spec("zarr") is None:  # before the work, not after it
        raise InputError("--zarr needs the package zarr. Install it: pip install 'hsreject[zarr]'.")
    from hsreject.mapping.map_scene import map_scene
    from hsreject.mapping.schedulers import cluster

    options: dict[str, Any] = {
        "fraction": fraction,
        "threshold": threshold,
        "accuracy": accuracy,
        "rejection_cost": rejection_cost,
        "certificate": certificate,
        "variable": variable,
        "band_axis": band_axis,
        "match_bands": match_bands,
        "foreign": foreign,
        "memory": memory,
        "block_size": block_size,
    }
    console = Console(highlight=False)
    with (
        saying_how_to_go_on(),
        progress_on(Console(stderr=True)) as progress,
        cluster(address),
    ):
        mapped: Callable[..., SceneMap] = partial(
            map_scene, n_workers=n_workers, progress=progress, **options
        )
        only, *others = scenes
        if others or (only.is_dir() and not is_store(only)) or only.suffix.lower() == ".txt":
            if zarr:
                mapped = partial(mapped, also=_write_store)
            failed = _map_all(scenes, mapped, model, out, options | {"zarr": zarr}, console)
            if failed:
                raise typer.Exit(1)
            return
        complaints: list[str] = []

        def also(made: SceneMap, folder: Path) -> None:
            complaints.extend(_explore(made, folder / PAGE, only, variable, band_axis))
            if zarr:
                _write_store(made, folder)

        made = mapped(only, model, out=out, overwrite=overwrite, also=also)
    show_summary(made.summary, console)
    page = f"; move the rejected fraction in {out / PAGE}"
    for complaint in complaints:  # the maps are there all the same
        page = f", without {PAGE}: {complaint}"
    console.print(f"wrote {out}{page}", soft_wrap=True, markup=False)


def _write_store(made: SceneMap, folder: Path) -> None:
    """Write the maps as one Zarr store, with the place, the classes and where there is no data."""
    from hsreject.schema import nodata_label

    labels = [made.maps[name] for name in ("label", "label_with_rejection")]
    filled = {label.name: {"_FillValue": nodata_label(label.dtype)} for label in labels}
    made.maps.to_zarr(folder / STORE, encoding=filled, zarr_format=2)  # which GDAL reads as well


def _explore(
    made: SceneMap, page: Path, scene: Path, variable: str | None, band_axis: int | None
) -> Iterator[str]:
    """Write the interactive page of a map; yield why that is not possible, if so.

    Of a map that is reduced to fit, the scene is not read a second time.
    """
    from hsreject.errors import HsrejectError
    from hsreject.io.scene import open_scene
    from hsreject.report.explorer import MOST_PIXELS, write_explorer

    cube = None
    if made.maps["label"].size <= MOST_PIXELS:
        cube = open_scene(scene, chunks="auto", variable=variable, band_axis=band_axis)
    rejection = made.summary.rejection
    try:
        write_explorer(
            made.maps,
            page,
            scene=cube,
            title=scene.name,
            fraction=made.summary.rejected_fraction,
            certified=rejection.threshold if rejection.asked == "certificate" else None,
            overwrite=True,
        )
    except HsrejectError as error:
        yield str(error)


def _map_all(
    scenes: Sequence[Path],
    mapped: Callable[..., SceneMap],
    model: Path,
    out: Path,
    options: Mapping[str, object],
    console: Console,
) -> int:
    """Map several scenes, print what became of each, and return how many failed."""
    from hsreject.mapping.archive import FAILED, SUMMARY, ArchiveRow, find_scenes, map_archive
    from hsreject.mapping.map_scene import open_map_model

    trained = open_map_model(model)

    def map_one(scene: Path, folder: Path, overwrite: bool) -> SceneMap:  # noqa: FBT001
        return mapped(scene, trained, out=folder, overwrite=overwrite)

    def tell(row: ArchiveRow, number: int, total: int) -> None:
        kept = row.cells["kept_share"]
        more = f", kept {100 * float(kept):.1f} %" if kept else f": {row.error}"
        line = f"{number}/{total} {row.scene}: {row.status}{more}"
        console.print(line, soft_wrap=True, markup=False)

    state = model.stat()
    work = (str(model), state.st_size, state.st_mtime_ns, options)
    rows = map_archive(find_scenes(scenes), map_one, out=out, options=work, told=tell)
    failed = sum(row.status == FAILED for row in rows)
    console.print(
        f"{len(rows) - failed} of {len(rows)} scenes are mapped; see {out / SUMMARY}",
        soft_wrap=True,
        markup=False,
    )
    return failed


def show_summary(summary: MapSummary, console: Console) -> None:
    """Print how much of each class is kept, and why the rest was rejected."""
    rows = []
    for share in summary.classes:
        hectares = summary.hectares(share.n_kept)
        rejected = f"{100 * share.n_rejected / share.n_pixels:.1f} %" if share.n_pixels else ""
        kept = "" if hectares is None else f"{hectares:.1f}"
        rows.append((share.name, str(share.n_kept), str(share.n_rejected), rejected, kept))
    headings = ("class", "kept", "rejected", "rejected share", "hectares kept")
    console.print(result_table(console, headings, rows))
    if summary.n_continued:
        console.print(
            f"went on from {summary.n_continued} of {summary.n_blocks} blocks, finished before"
        )
    rejection = summary.rejection
    console.print(
        f"rejected {100 * summary.rejected_fraction:.2f} % of {summary.n_pixels} pixels with data: "
        f"confidence below {rejection.threshold:.6g}, {rejection.source}",
        soft_wrap=True,
        markup=False,
    )
    if summary.kinship is not None:
        console.print(summary.kinship_in_words, soft_wrap=True, markup=False)
