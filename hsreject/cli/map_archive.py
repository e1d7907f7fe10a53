"""``hsreject map`` of several scenes: each mapped once, one line for each, one table of all."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hsreject.mapping.archive import FAILED, SUMMARY, ArchiveRow, find_scenes, map_archive
from hsreject.mapping.map_scene import SceneMap, map_scene, open_map_model, write_store

if TYPE_CHECKING:
    from rich.console import Console


def map_scenes(
    scenes: Sequence[Path],
    model: Path,
    out: Path,
    options: dict[str, Any],
    running: dict[str, Any],
    console: Console,
    *,
    zarr: bool,
) -> int:
    """Map several scenes, print what became of each, and return how many failed."""
    trained = open_map_model(model)

    def map_one(scene: Path, folder: Path, overwrite: bool) -> SceneMap:  # noqa: FBT001
        result = map_scene(scene, trained, out=folder, overwrite=overwrite, **options, **running)
        if zarr:
            write_store(result, folder)
        return result

    def report(row: ArchiveRow, number: int, total: int) -> None:
        kept = row.cells["kept_share"]
        more = f", kept {100 * float(kept):.1f} %" if kept else f": {row.error}"
        line = f"{number}/{total} {row.scene}: {row.status}{more}"
        console.print(line, soft_wrap=True, markup=False)

    state = model.stat()
    work = (str(model), state.st_size, state.st_mtime_ns, options, zarr)
    rows = map_archive(find_scenes(scenes), map_one, out=out, options=work, report=report)
    n_failed = sum(row.status == FAILED for row in rows)
    console.print(
        f"{len(rows) - n_failed} of {len(rows)} scenes are mapped; see {out / SUMMARY}",
        soft_wrap=True,
        markup=False,
    )
    return n_failed
