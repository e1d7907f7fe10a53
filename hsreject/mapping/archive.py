"""Many scenes with one model: each mapped once, failures collected, one table of results."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from hsreject.errors import FileError, HsrejectError, InputError, shown
from hsreject.files import MANIFEST, check_folder, replacing
from hsreject.io.packed_scenes import unpacked_for_now
from hsreject.io.remote import RemotePath, as_path, is_store
from hsreject.mapping.blocks import Resources
from hsreject.mapping.map_scene import FILES, SUMMARY_FILE, Layers, map_scene, open_map_model
from hsreject.mapping.map_summary import MapSummary
from hsreject.mapping.ranked_blocks import key_of_work
from hsreject.mapping.reading import Reading
from hsreject.measures.choosing import Goal
from hsreject.progress import ProgressCallback, no_progress

SUMMARY = "summary.csv"
MAPPED, FINISHED, FAILED = "mapped", "finished before", "failed"

_HEAD = (
    *("scene", "folder", "status", "pixels", "kept_share", "unknown_share", "seconds", "error"),
    "work",  # a key of scene, model and options: the same work is not done twice
)
_SUFFIXES = (
    *(".tif", ".tiff", ".vrt", ".img", ".dat", ".bsq", ".bil", ".bip", ".jp2", ".mat", ".npy"),
    *(".nc", ".h5", ".hdf5", ".he5"),
)
_FILES = (*(f"{name}.tif" for name in FILES), SUMMARY_FILE)


def find_scenes(paths: Iterable[str | PathLike[str]]) -> list[Path]:
    """Return the scenes that paths stand for: files, folders, lists of paths and URLs (.txt)."""
    scenes: list[Path] = []
    for path in map(as_path, paths):
        if path.is_dir() and not is_store(path):
            inside = [entry for entry in sorted(path.iterdir()) if _is_scene(entry)]
            if not inside:
                raise FileError(f"The folder {path} holds no scene. Give the folder of the files.")
            scenes += inside
        elif path.suffix.lower() == ".txt":
            # paths relative to the list; empty lines and those that begin with a # are skipped
            lines = [line.strip() for line in path.read_text("utf-8").splitlines()]
            named = [as_path(line) for line in lines if line and not line.startswith("#")]
            scenes += [n if isinstance(n, RemotePath) else path.parent / n for n in named]
        else:
            scenes.append(path)
    return scenes


def _is_scene(path: Path) -> bool:
    if path.name.startswith(".") or not path.is_file():
        return is_store(path)
    headed = path.with_name(f"{path.name}.hdr").exists() or path.with_suffix(".hdr").exists()
    return path.suffix.lower() in _SUFFIXES or (not path.suffix and headed)


def map_archive(  # noqa: PLR0913 (those of map_scene)
    scenes: Sequence[Path],
    model: Path,
    goal: Goal | str | PathLike[str],
    *,
    out: Path,
    reading: Reading,
    layers: Layers,
    resources: Resources,
    sample: str | PathLike[str] | None = None,
    progress: ProgressCallback = no_progress,
) -> Iterator[dict[str, str]]:
    """Map every scene into a folder of its own inside `out`, and yield its row of `summary.csv`.

    Scenes that were mapped before with the same model and options are skipped, also those of a call
    that was stopped; a scene that fails does not stop the others. The options are those of
    :func:`hsreject.map_scene`.
    """
    trained = open_map_model(model)
    same_map = replace(resources, n_workers=None)  # of which no map depends
    check_folder(out, overwrite=True)
    out.mkdir(parents=True, exist_ok=True)
    table = {row["scene"]: row for row in _read(out / SUMMARY)}
    for scene, name in zip(scenes, _folders(scenes), strict=True):
        work = key_of_work(scene, model, goal, sample, (reading, layers, same_map))
        title, place = shown(scene), out / name
        row = table.get(title, {})
        if row.get("work") == work and all((place / file).is_file() for file in _FILES):
            row = {**row, "status": FINISHED}
        else:
            row = dict.fromkeys(_HEAD, "") | {"scene": title, "folder": name}
            begun, overwrite = time.perf_counter(), (place / MANIFEST).is_file()
            try:
                with unpacked_for_now():
                    result = map_scene(
                        scene,
                        trained,
                        goal,
                        out=place,
                        sample=sample,
                        reading=reading,
                        layers=layers,
                        resources=resources,
                        overwrite=overwrite,
                        progress=progress,
                    )
                row |= {"status": MAPPED, "work": work, **_numbers(result.summary)}
            except HsrejectError as error:
                row |= {"status": FAILED, "error": str(error)}
            row["seconds"] = f"{time.perf_counter() - begun:.1f}"
        table[title] = row
        _write(out / SUMMARY, table.values())
        yield row


def _folders(scenes: Sequence[Path]) -> list[str]:
    """Return the names of the folders: those of the scenes, with that of their folder if needed."""
    count = Counter(scene.stem for scene in scenes)
    names = [
        scene.stem if count[scene.stem] == 1 else f"{scene.parent.name}_{scene.name}"
        for scene in scenes
    ]
    if twice := [name for name, count in Counter(names).items() if count > 1]:
        raise InputError(
            f"{twice[0]} is there twice. Give each scene once; scenes of the same name in folders "
            "of the same name need separate calls."
        )
    return names


def _numbers(summary: MapSummary) -> dict[str, str]:
    """Return the figures of a map that the table has."""
    cells = {
        "pixels": str(summary.n_pixels),
        "kept_share": f"{1 - summary.rejected_fraction:.6f}",
    }
    if summary.n_unknown is not None:
        cells["unknown_share"] = f"{summary.n_unknown / summary.n_pixels:.6f}"
    for share in (*summary.classes, *summary.groups):
        area = summary.hectares(share.n_kept)
        if area is None:
            cells[f"pixels {share.name}"] = str(share.n_kept)
        else:
            cells[f"hectares {share.name}"] = f"{area:.2f}"
    return cells


def _read(path: Path) -> list[dict[str, str]]:
    """Return the rows of an earlier call."""
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    if not all(set(_HEAD) <= set(row) for row in rows):
        raise FileError(f"{path} is not a summary of hsreject. Choose another folder.")
    return rows


def _write(path: Path, rows: Iterable[Mapping[str, str]]) -> None:
    names = list(dict.fromkeys((*_HEAD, *(name for row in rows for name in row))))
    with replacing(path, overwrite=True) as work, work.open("w", encoding="utf-8", newline="") as s:
        table = csv.DictWriter(s, names, restval="")
        table.writeheader()
        table.writerows(rows)
