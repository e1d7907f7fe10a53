"""``hsreject map``: map a scene of any size with a trained model, or many of them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hsreject.cli.console import print_line, print_table, progress_on, saying_how_to_go_on
from hsreject.cli.options import (
    BandAxis,
    Flat,
    Overwrite,
    Plugins,
    Probabilities,
    TrustVrt,
    Variable,
    check_there,
    new_folder,
)
from hsreject.errors import InputError
from hsreject.io.remote import as_path

if TYPE_CHECKING:
    from hsreject.mapping.map_scene import SceneMap
    from hsreject.mapping.map_summary import MapSummary

PAGE = "explorer.html"


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
    out: Annotated[Path, new_folder("New folder for the maps.")],
    plugin: Plugins = None,
    fraction: Annotated[
        float | None, typer.Option(help="Share of the pixels to reject, from 0 to 1.")
    ] = None,
    threshold: Annotated[
        float | None, typer.Option(help="Reject the pixels with a confidence below it.")
    ] = None,
    accuracy: Annotated[
        float | None,
        typer.Option(
            help="Accuracy that the kept pixels should have, rejecting no more than that takes on "
            "the --sample."
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
        typer.Option(help="Apply what 'hsreject certify' certified for exactly this map: JSON."),
    ] = None,
    sample: Annotated[
        Path | None,
        typer.Option(
            help="Labelled points of 'hsreject sample' on this scene, which tell what --accuracy "
            "and --rejection-cost ask for."
        ),
    ] = None,
    assume_alike: Annotated[
        bool,
        typer.Option(
            "--assume-alike",
            help="Take --accuracy and --rejection-cost as the training scene's test pixels have "
            "it, and write into all files that this is an assumption.",
        ),
    ] = False,
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
        str,
        typer.Option(
            help="Bound of the resident memory of this process, Python and all its threads "
            "included; with --cluster, of each worker. Such as 500MB."
        ),
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
    variable: Variable = None,
    band_axis: BandAxis = None,
    flat: Flat = False,
    probabilities: Probabilities = False,
    overwrite: Overwrite = False,
    trust_vrt: TrustVrt = False,  # its callback acts
) -> None:
    """Map a scene with a trained model, rejecting its least certain pixels.

    Give one of --fraction, --threshold, --accuracy, --rejection-cost and --certificate. Pixels like
    no training pixel are rejected in addition, as unknown. A model that was trained with [groups]
    answers with a group where the class is unclear. On another scene than the training scene nobody
    knows which threshold an accuracy or a cost asks for: give a --sample of it, or say
    --assume-alike. Scenes larger than memory are mapped in blocks. Of several scenes, those that
    are finished are skipped, and one that fails does not stop the others: the exit code is then 1.
    """
    scenes = [as_path(scene) for scene in scenes]
    lists = [scene for scene in scenes if scene.suffix.lower() == ".txt"]
    # of several scenes, one that is missing fails alone
    check_there(*(scenes if len(scenes) == 1 else lists), model, certificate, sample)
    from hsreject.mapping.archive import SUMMARY, find_scenes, map_archive
    from hsreject.mapping.blocks import Resources, cluster
    from hsreject.mapping.map_scene import Layers, map_scene
    from hsreject.mapping.reading import Reading
    from hsreject.measures.choosing import Goal, only_one
    from hsreject.plugins import load_plugins

    load_plugins(plugin or ())
    requested = {
        "fraction": fraction,
        "threshold": threshold,
        "accuracy": accuracy,
        "rejection_cost": rejection_cost,
    }
    only_one({**requested, "certificate": certificate})
    goal = certificate or Goal(**requested)
    options: dict[str, Any] = {
        "sample": sample,
        "reading": Reading(
            variable=variable,
            band_axis=band_axis,
            match_bands=match_bands,
            foreign=foreign,
            assume_alike=assume_alike,
        ),
        "layers": Layers(flat=flat, probabilities=probabilities),
        "resources": Resources(memory=memory, block_size=block_size, n_workers=n_workers),
    }
    with saying_how_to_go_on(), progress_on() as progress, cluster(address):
        options["progress"] = progress
        found = find_scenes(scenes)
        if found != scenes or len(scenes) > 1:
            rows = map_archive(found, model, goal, out=out, **options)
            _show_archive(rows, len(found), out / SUMMARY)
            return
        page = _Page(scenes[0], variable, band_axis)
        options["layers"] = replace(options["layers"], write_more=page.write)
        result = map_scene(scenes[0], model, goal, out=out, overwrite=overwrite, **options)
    _show_summary(result.summary)
    missing = f", without {PAGE}: {page.fault}"
    print_line(
        f"wrote {out}"
        + (missing if page.fault else f"; move the rejected fraction in {out / PAGE}")
    )


def _show_archive(rows: Iterable[dict[str, str]], n_scenes: int, table: Path) -> None:
    """Print the outcome of each scene as it is mapped, and exit with 1 if some have failed."""
    from hsreject.mapping.archive import FAILED

    n_mapped = 0
    for number, row in enumerate(rows, start=1):
        outcome = f": {row['error']}"
        if row["status"] != FAILED:
            n_mapped += 1
            outcome = f", kept {100 * float(row['kept_share'] or 0):.1f} %"
        print_line(f"{number}/{n_scenes} {row['scene']}: {row['status']}{outcome}")
    print_line(f"{n_mapped} of {n_scenes} scenes are mapped; see {table}")
    if n_mapped < n_scenes:
        raise typer.Exit(1)


@dataclass
class _Page:
    """The interactive page of a map, which appears with it."""

    scene: Path
    variable: str | None
    band_axis: int | None
    fault: str = ""  # why there is none

    def write(self, result: SceneMap, folder: Path) -> None:
        """Write the page; for a map that is reduced to fit, the scene is not read a second time."""
        from hsreject.io.scene import open_scene
        from hsreject.report.explorer import MOST_PIXELS, write_explorer

        cube = None
        summary, rejection = result.summary, result.summary.rejection
        try:
            if result.maps["label"].size <= MOST_PIXELS:
                cube = open_scene(
                    self.scene, chunks="auto", variable=self.variable, band_axis=self.band_axis
                )
            write_explorer(
                result.maps.assign_attrs(note=" ".join(summary.notes)),
                folder / PAGE,
                scene=cube,
                title=self.scene.name,
                fraction=summary.rejected_fraction,
                certified=rejection.threshold if rejection.asked == "certificate" else None,
            )
        except InputError as error:  # the maps are there all the same
            self.fault = str(error)


def _show_summary(summary: MapSummary) -> None:
    """Print how much of each class is kept, and why the rest was rejected."""
    rows = []
    for share in (*summary.classes, *summary.groups):
        hectares = summary.hectares(share.n_kept)
        area = "" if hectares is None else f"{hectares:.1f}"
        if share.level == "class":
            part = f"{100 * share.n_rejected / share.n_pixels:.1f} %" if share.n_pixels else ""
            rows.append((share.name, str(share.n_kept), str(share.n_rejected), part, area))
        else:
            rows.append((f"{share.name} (group)", str(share.n_kept), "", "", area))
    headings = ("class", "kept", "rejected", "rejected share", "hectares kept")
    print_table(headings, rows)
    n_done, n_blocks = summary.n_continued, len(summary.blocks)
    if n_done:
        print_line(f"went on from {n_done} of {n_blocks} blocks, finished before")
    rejection = summary.rejection
    print_line(
        f"rejected {100 * summary.rejected_fraction:.2f} % of {summary.n_pixels} pixels with data: "
        f"confidence below {rejection.threshold:.6g}, {rejection.source}"
    )
    for note in summary.notes:
        print_line(note)
