"""Many scenes with one model: each mapped once, failures collected, one table of results."""

from __future__ import annotations

import csv
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from os import PathLike
from pathlib import Path
from typing import Any

from dask.base import tokenize

from hsreject import __version__
from hsreject.errors import FileError, HsrejectError, InputError
from hsreject.files import MANIFEST, check_folder, replacing
from hsreject.io.remote import RemotePath, as_path, is_store, state_of
from hsreject.mapping.map_scene import FILES, SUMMARY_FILE, map_scene, open_map_model
from hsreject.mapping.map_summary import MapSummary
from hsreject.progress import ProgressCallback, no_progress

SUMMARY = "summary.csv"
MAPPED, FINISHED, FAILED = "mapped", "finished before", "failed"

_HEAD = (
    *("scene", "folder", "status", "pixels", "kept_share", "unknown_share", "seconds", "error"),
    "work",  # a token of scene, model and options: the same work is not done twice
)
_SUFFIXES = (
    *(".tif", ".tiff", ".vrt", ".img", ".dat", ".bsq", ".bil", ".bip", ".jp2", ".mat", ".npy"),
    *(".nc", ".h5", ".hdf5", ".he5"),
)
_FILES = (*(f"{name}.tif" for name in FILES), SUMMARY_FILE)


def find_scenes(paths: Iterable[str | PathLike[str]]) -> list[Path]:
    """Return the scenes that paths stand for: files, folders of them, lists in text files (.txt).

    A line of a list is a URL, or a path relative to the list; empty lines and those that begin with
    a # are skipped.
    """
    scenes: list[Path] = []
    for path in map(as_path, paths):
        if path.is_dir() and not is_store(path):
            inside = [entry for entry in sorted(path.iterdir()) if _is_scene(entry)]
            if not inside:
                raise FileError(f"The folder {path} holds no scene. Give the folder of the files.")
            scenes += inside
        elif path.suffix.lower() == ".txt":
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


def map_archive(
    scenes: Sequence[str | PathLike[str]],
    model: str | PathLike[str],
    *,
    out: str | PathLike[str],
    options: Mapping[str, Any],
    n_workers: int | None = None,
    progress: ProgressCallback = no_progress,
) -> Iterator[dict[str, str]]:
    """Map every scene into a folder of its own inside `out`, and yield the outcome of each.

    Scenes that were mapped before with the same model and options are skipped, also those of a call
    that was stopped; a scene that fails does not stop the others.

    Parameters
    ----------
    scenes : sequence of path
        What :func:`find_scenes` found.
    model : path
        Of :func:`hsreject.save_model`.
    out : path
        The folder of all folders; `summary.csv` in it has one row per scene: kept share, share of
        unknown pixels, hectares kept of each class, seconds.
    options : mapping
        Those of :func:`hsreject.map_scene` that its map depends on.
    n_workers, progress
        As for :func:`hsreject.map_scene`.

    Yields
    ------
    dict
        The row of a scene as `summary.csv` has it, as soon as it is there.
    """
    folder, trained = Path(out), open_map_model(model)
    check_folder(folder, overwrite=True)
    folder.mkdir(parents=True, exist_ok=True)
    table = {row["scene"]: row for row in _read(folder / SUMMARY)}
    for scene, name in _named([as_path(scene) for scene in scenes]):
        work = tokenize(__version__, _state(scene), _state(as_path(model)), dict(options))
        row, place = table.get(str(scene), {}), folder / name
        if row.get("work") == work and all((place / file).is_file() for file in _FILES):
            row = {**row, "status": FINISHED}
        else:
            row = dict.fromkeys(_HEAD, "") | {"scene": str(scene), "folder": name}
            begun, overwrite = time.perf_counter(), (place / MANIFEST).is_file()
            try:
                result = map_scene(
                    *(scene, trained),
                    out=place,
                    overwrite=overwrite,
                    n_workers=n_workers,
                    progress=progress,
                    **options,
                )
                row |= {"status": MAPPED, "work": work, **_numbers(result.summary)}
            except HsrejectError as error:
                row |= {"status": FAILED, "error": str(error)}
            row["seconds"] = f"{time.perf_counter() - begun:.1f}"
        table[str(scene)] = row
        _write(folder / SUMMARY, table.values())
        yield row


def _named(scenes: Sequence[Path]) -> list[tuple[Path, str]]:
    """Return each scene with the name of its folder: its own, with that of its folder if needed."""
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
    return list(zip(scenes, names, strict=True))


def _state(path: Path) -> tuple[object, ...]:
    """Return what tells a file from what it was before."""
    with suppress(OSError):  # opening it will say why
        return str(path), *state_of(path)
    return (str(path),)


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
        unit, number = (
            ("pixels", f"{share.n_kept}") if area is None else ("hectares", f"{area:.2f}")
        )
        cells[f"{unit} {share.name}"] = number
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
